//! The figures of a store as text that Prometheus reads.

use super::{KeyspaceStats, Store};
use crate::keyspace::KeyspaceShared;
use crate::stats::{Histogram, MetricsText, StoreStats};
use lsmith_tree::{Causes, Counters, Level, Tree};
use std::sync::Arc;

/// The quantiles that a summary has.
const QUANTILES: [&str; 5] = ["0.5", "0.9", "0.99", "0.999", "1"];

/// A figure of a keyspace: its name, what it is, and its value.
type OfKeyspace = (&'static str, &'static str, fn(&KeyspaceStats) -> f64);

/// A figure of a level: its name, what it is, and its value.
type OfLevel = (&'static str, &'static str, fn(&Counters) -> u64);

const OF_KEYSPACES: [OfKeyspace; 16] = [
    ("keyspace_memory_bytes", "Logical bytes in memtables.", |it| it.memory_bytes as f64),
    ("keyspace_runs", "Runs on storage.", |it| it.runs as f64),
    ("keyspace_tables", "Table files.", |it| it.tables as f64),
    ("keyspace_table_bytes", "Bytes that table files occupy.", |it| it.table_bytes as f64),
    ("keyspace_live_bytes", "Bytes of table files that the tree needs.", |it| it.live_bytes as f64),
    ("keyspace_dead_bytes", "Bytes of table files that nothing needs.", |it| it.dead_bytes as f64),
    ("keyspace_punched_bytes", "Bytes of holes in table files.", |it| it.punched_bytes as f64),
    ("keyspace_value_files", "Value files.", |it| it.value_files as f64),
    ("keyspace_value_bytes", "Bytes that value files occupy.", |it| it.value_bytes as f64),
    ("keyspace_value_garbage_bytes", "Bytes of value files that no table refers to.", |it| {
        it.value_garbage_bytes as f64
    }),
    ("keyspace_logical_bytes", "Logical bytes in tables.", |it| it.logical_bytes as f64),
    ("keyspace_entries", "Entries in tables.", |it| it.entries as f64),
    ("keyspace_tombstones", "Tombstones in tables.", |it| it.tombstones as f64),
    ("keyspace_memtable_limit_bytes", "Logical bytes at which a memtable is sealed.", |it| {
        it.memtable_bytes as f64
    }),
    ("keyspace_pressure", "How hard the policy holds writers back, 0 to 1.", |it| it.pressure),
    ("keyspace_failures", "Failed plans and panics that wait for a retry.", |it| {
        it.failures.len() as f64
    }),
];

const OF_LEVELS: [OfLevel; 7] = [
    ("level_flushes_total", "Memtables flushed to the level.", |it| it.flushes),
    ("level_merges_total", "Merges into the level.", |it| it.merges),
    ("level_moves_total", "Moves to the level.", |it| it.moves),
    ("level_logical_bytes_from_memory_total", "Input bytes of merges, from memory.", |it| {
        it.bytes_from_memory
    }),
    ("level_logical_bytes_read_total", "Input bytes of merges, from storage.", |it| it.bytes_in),
    ("level_logical_bytes_written_total", "Bytes written to the level.", |it| it.bytes_written),
    ("level_logical_bytes_reused_total", "Bytes of blocks and tables kept as they were.", |it| {
        it.bytes_reused
    }),
];

/// A tree at one moment.
struct TreeNow {
    name: String,
    tree: Tree,
    /// Why merges have written what they wrote. `None` if nobody asked for it.
    causes: Option<Causes>,
}

impl Store {
    /// Returns the figures of the store as text in the exposition format of Prometheus, version
    /// 0.0.4: one line for each value, ready for a program to serve under `/metrics`.
    ///
    /// Counters without a keyspace count since the store was opened. Counters of levels count
    /// logical bytes since the keyspace was made. Looks at every table. docs/metrics.md lists all
    /// names.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = lsmith::Store::builder(dir.path()).open()?;
    /// store.keyspace("fruit")?.put("apple", "red")?;
    /// let text = store.metrics();
    /// assert!(text.contains("\nlsmith_entries_written_total 1\n"));
    /// assert!(text.contains("\nlsmith_keyspace_runs{keyspace=\"fruit\"} 0\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn metrics(&self) -> String {
        let mut text = MetricsText::default();
        self.put_counters(&mut text);
        self.put_memory(&mut text);
        self.put_keyspaces(&mut text);
        let trees: Vec<TreeNow> = self.engine().keyspaces.all().iter().map(tree_now).collect();
        put_levels(&mut text, &trees);
        put_causes(&mut text, &trees);
        self.put_histograms(&mut text);
        text.finish()
    }

    fn put_counters(&self, text: &mut MetricsText) {
        let stats = self.stats();
        for ((name, value), help) in stats.fields().zip(StoreStats::helps()) {
            let (name, value) = match in_seconds(name) {
                Some((name, unit)) => (name, (value as f64 * unit).to_string()),
                None => (name.to_string(), value.to_string()),
            };
            text.counter(&format!("{name}_total"), help);
            text.value(&format!("{name}_total"), &[], value);
        }
        text.gauge("last_write", "The sequence number of the last write.");
        text.value("last_write", &[], self.next_seq().0 - 1);
    }

    fn put_memory(&self, text: &mut MetricsText) {
        let memory = self.memory();
        text.gauge("memory_bytes", "Bytes that the store holds in memory, by part.");
        for (part, bytes) in memory.parts() {
            text.value("memory_bytes", &[("part", part)], bytes);
        }
        if let Some(limit) = memory.limit {
            text.gauge("memory_limit_bytes", "The limit on those bytes.");
            text.value("memory_limit_bytes", &[], limit);
        }
        if let Some(space) = self.space() {
            text.gauge("space_bytes", "Bytes that the files of the store take.");
            text.value("space_bytes", &[], space.used);
            text.gauge("space_limit_bytes", "The limit on those bytes.");
            text.value("space_limit_bytes", &[], space.limit);
        }
        text.gauge("poisoned", "1 if the store refuses writes until it is opened again.");
        text.value("poisoned", &[], u8::from(self.context().is_poisoned()));
    }

    fn put_keyspaces(&self, text: &mut MetricsText) {
        // A keyspace may go between the two calls.
        let keyspaces = self.keyspaces();
        let keyspaces = keyspaces.iter().filter_map(|name| self.existing_keyspace(name).ok());
        let stats: Vec<KeyspaceStats> = keyspaces.map(|keyspace| keyspace.stats()).collect();
        for (name, help, figure) in OF_KEYSPACES {
            text.gauge(name, help);
            for stats in &stats {
                text.value(name, &[("keyspace", &stats.name)], figure(stats));
            }
        }
    }

    fn put_histograms(&self, text: &mut MetricsText) {
        let Some(histograms) = self.histograms() else { return };
        for (name, histogram) in histograms.fields() {
            put_histogram(text, name, histogram);
        }
    }
}

/// Returns the name of a figure in seconds, and the seconds of its unit, if it is a time.
fn in_seconds(name: &str) -> Option<(String, f64)> {
    let micros = name.strip_suffix("_micros").map(|stem| (stem, 1e-6));
    let unit = micros.or_else(|| name.strip_suffix("_nanos").map(|stem| (stem, 1e-9)));
    unit.map(|(stem, seconds)| (format!("{stem}_seconds"), seconds))
}

fn put_histogram(text: &mut MetricsText, name: &str, histogram: &Histogram) {
    let (name, unit) = in_seconds(name).unwrap_or((name.to_string(), 1.0));
    text.summary(&name, "A summary of what the histograms of the store hold.");
    for quantile in QUANTILES {
        let share = quantile.parse().expect("a number");
        let value = histogram.quantile(share) as f64 * unit;
        text.value(&name, &[("quantile", quantile)], value);
    }
    let count = histogram.count();
    text.value(&format!("{name}_sum"), &[], histogram.mean() * count as f64 * unit);
    text.value(&format!("{name}_count"), &[], count);
}

fn tree_now(keyspace: &Arc<KeyspaceShared>) -> TreeNow {
    let state = keyspace.state.lock();
    TreeNow { name: keyspace.name.to_string(), tree: state.view.tree.clone(), causes: state.causes }
}

fn put_levels(text: &mut MetricsText, trees: &[TreeNow]) {
    for (name, help, figure) in OF_LEVELS {
        text.counter(name, help);
        put_level(text, trees, name, |level| figure(level.counters()));
    }
    text.gauge("level_runs", "Runs of the level.");
    put_level(text, trees, "level_runs", |level| level.runs().len() as u64);
    text.gauge("level_logical_bytes", "Logical bytes of the level.");
    put_level(text, trees, "level_logical_bytes", Level::bytes);
}

fn put_level(
    text: &mut MetricsText,
    trees: &[TreeNow],
    name: &str,
    figure: impl Fn(&Level) -> u64,
) {
    for TreeNow { name: keyspace, tree, .. } in trees {
        for (index, level) in tree.levels().iter().enumerate() {
            let labels = [("keyspace", &**keyspace), ("level", &*index.to_string())];
            text.value(name, &labels, figure(level));
        }
    }
}

/// Puts the bytes that merges wrote, and the bytes that they saved, by cause.
fn put_causes(text: &mut MetricsText, trees: &[TreeNow]) {
    if trees.iter().all(|tree| tree.causes.is_none()) {
        return;
    }
    for (name, help, saves) in [
        ("written_logical_bytes_total", "Logical bytes that merges wrote, by cause.", false),
        ("saved_logical_bytes_total", "Logical bytes that merges did not write, by cause.", true),
    ] {
        text.counter(name, help);
        for TreeNow { name: keyspace, causes, .. } in trees {
            let causes = causes.iter().flat_map(|causes| causes.each());
            for (cause, bytes) in causes.filter(|(cause, _)| cause.saves() == saves) {
                let labels = [("keyspace", &**keyspace), ("cause", cause.name())];
                text.value(name, &labels, bytes.unsigned_abs());
            }
        }
    }
}
