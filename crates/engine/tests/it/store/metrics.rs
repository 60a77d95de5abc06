//! Figures for Prometheus, why writers are held back, and spans of `tracing`.

use crate::frame::batches::{Batches, Progress};
use crate::frame::gate::{Gate, Step};
use crate::frame::small::{fill, open, plain};
use lsmith::env::MemEnv;
use lsmith::{Backups, IngestOptions, PersistMode, Store, TableWriter, TableWriterOptions};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Reads `text` as the exposition format says. Returns the value of each line by name and labels.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let mut types = BTreeMap::new();
    let mut helps = BTreeSet::new();
    let mut current = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.trim().is_empty() && helps.insert(name), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helps.contains(name) && types.insert(name, kind).is_none(), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            current = name;
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let stem = name.trim_end_matches("_sum").trim_end_matches("_count");
        let own = name == current || types[current] == "summary" && stem == current;
        assert!(own, "{line} stands under {current}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let value: f64 = value.parse().unwrap();
        assert!(value >= 0.0, "{line}");
        assert!(values.insert(series.to_string(), value).is_none(), "{line} is there twice");
    }
    values
}

/// Returns the sum of all values of `name`.
fn sum(values: &BTreeMap<String, f64>, name: &str) -> f64 {
    let prefix = format!("lsmith_{name}{{");
    values.iter().filter(|(series, _)| series.starts_with(&prefix)).map(|(_, value)| value).sum()
}

#[test]
fn all_figures_are_there_and_agree() {
    for policy in ["leveled(ratio=2, l0=1, table=2kB)", "choose_best(ratio=2, rate=0.2)"] {
        let builder = plain(&MemEnv::new()).lockstep(true);
        let builder = builder.policy(policy).memtable_bytes(2000).block_bytes(200);
        let store = builder.histograms(true).open().unwrap();
        let batches = Batches { keys: 500, ..Batches::new(2) };
        let mut progress = Progress::default();
        for _ in 0..200 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        store.flush().unwrap();
        assert!(store.keyspace("left").unwrap().contains("last").unwrap());
        let values = parse(&store.metrics());
        let stats = store.stats();
        assert_eq!(values["lsmith_entries_written_total"], stats.entries_written as f64);
        assert_eq!(values["lsmith_merge_bytes_written_total"], stats.merge_bytes_written as f64);
        assert_eq!(values["lsmith_planning_seconds_total"], stats.planning_nanos as f64 * 1e-9);
        assert_eq!(values["lsmith_last_write"], stats.entries_written as f64);
        assert_eq!(values["lsmith_get_seconds_count"], 1.0);
        for name in ["left", "right"] {
            let stats = store.keyspace(name).unwrap().stats();
            let of = |figure: &str| values[&format!("lsmith_{figure}{{keyspace=\"{name}\"}}")];
            assert_eq!(of("keyspace_table_bytes"), stats.table_bytes as f64);
            assert_eq!(of("keyspace_entries"), stats.entries as f64);
            assert_eq!(of("keyspace_failures"), 0.0);
        }
        let names = store.keyspaces();
        let stats = names.iter().map(|name| store.keyspace(name).unwrap().stats());
        let logical: u64 = stats.map(|stats| stats.logical_bytes).sum();
        assert_eq!(sum(&values, "level_logical_bytes"), logical as f64);
        // The causes sum to what was written, level by level, since the store was made.
        let written = sum(&values, "level_logical_bytes_written_total");
        let (paid, saved) = (
            sum(&values, "written_logical_bytes_total"),
            sum(&values, "saved_logical_bytes_total"),
        );
        assert!(written > 40_000.0, "{written}");
        assert_eq!(paid - saved, written, "{policy}: {paid} - {saved}");
        assert!(
            values["lsmith_written_logical_bytes_total{keyspace=\"left\",cause=\"flushed\"}"] > 0.0
        );
    }
}

#[test]
fn without_histograms_no_cause_is_counted() {
    let builder = plain(&MemEnv::new()).lockstep(true);
    let store = builder.open().unwrap();
    store.keyspace("default").unwrap().put("key", "value").unwrap();
    let values = parse(&store.metrics());
    assert!(!values.keys().any(|series| series.contains("cause=")));
    assert_eq!(values["lsmith_poisoned"], 0.0);
}

/// Flushes are blocked, so memory fills up and writers stop.
#[test]
fn writers_that_are_stopped_say_why() {
    let env = Gate::over(MemEnv::new());
    let builder = plain(&env).memtable_bytes(20_000);
    let (store, space) = open(builder.threads(1));
    env.hold_at(Step::Create, 1);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            fill(&space, 0..400, [7; 1000]);
        });
        while store.stats().stopped_by_memory_micros == 0 {
            std::thread::yield_now();
        }
        env.release();
        writer.join().unwrap();
    });
    let stats = store.stats();
    let parts = [
        stats.slowed_by_memory_micros,
        stats.slowed_by_merges_micros,
        stats.stopped_by_memory_micros,
        stats.stopped_by_merges_micros,
    ];
    assert_eq!(parts.iter().sum::<u64>(), stats.held_back_micros);
    let text = store.metrics();
    assert!(parse(&text)["lsmith_stopped_by_memory_seconds_total"] > 0.0, "{text}");
}

/// Notes the spans and events that it receives, with their fields.
#[derive(Clone, Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    ids: Arc<AtomicU64>,
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        *self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("lsmith")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = span.metadata().name().to_string();
        span.record(&mut Fields(&mut line));
        self.lines.lock().push(line);
        Id::from_u64(self.ids.fetch_add(1, Relaxed) + 1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = "event".to_string();
        event.record(&mut Fields(&mut line));
        self.lines.lock().push(line);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn openings_merges_and_copies_are_spans() {
    // With one subscriber alone, `tracing` lets the thread that comes to an event first decide for
    // all threads whether anybody listens. That may be the thread of another test.
    let _other = tracing::Dispatch::new(Notes::default());
    let notes = Notes::default();
    tracing::subscriber::with_default(notes.clone(), || {
        let env = Arc::new(MemEnv::new());
        let builder = Store::builder("/store").env(Arc::clone(&env) as _).lockstep(true);
        let store = builder.policy("tiered(ratio=2)").open().unwrap();
        let fruit = store.keyspace("fruit").unwrap();
        for value in ["red", "green", "blue"] {
            fruit.put("apple", value).unwrap();
            fruit.flush().unwrap();
        }
        store.checkpoint("/then").unwrap();
        let backups = Backups::with_env("/backups", Arc::clone(&env) as _);
        let backup = store.backup(&backups).unwrap();
        backups.restore(backup.id, "/restored").unwrap();
        let options =
            TableWriterOptions { env: Arc::clone(&env) as _, ..TableWriterOptions::default() };
        let mut writer = TableWriter::create_with("/pears.table", &options).unwrap();
        writer.put("pear", "green").unwrap();
        writer.finish().unwrap();
        store.ingest(&fruit, &["/pears.table"], &IngestOptions::default()).unwrap();
    });
    let lines = notes.lines.lock();
    for (start, part) in [
        ("open", "dir=/store"),
        ("merge", "keyspace=fruit"),
        ("event", "bytes_written="),
        ("checkpoint", "to=/then"),
        ("event", "linked_bytes="),
        ("backup", "to=/backups"),
        ("restore", "number=1"),
        ("ingest", "files=1"),
    ] {
        let found = lines.iter().any(|line| line.starts_with(start) && line.contains(part));
        assert!(found, "{start} {part}: {lines:#?}");
    }
}
