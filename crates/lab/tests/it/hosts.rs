//! The same sizes in, the same picks out: the simulation makes the file that every host checks.
//!
//! `hosts/conformance/picks.txt` has these lines:
//!
//! | line | means |
//! |---|---|
//! | `policy SPEC` | an empty tree under this policy |
//! | `flush BYTES` | a memtable becomes the newest run, in level 0 |
//! | `look FLUSHES BYTES NAME=NOTE ... LEVEL:BYTES ... -> FROM..END LEVEL` | the policy sees a tree that had so many flushes of so many bytes together, with these notes and these runs, newest first, and merges the runs from index `FROM` up to, not including, `END` into one of `LEVEL` |
//! | `look ... -> none` | no merge is due |
//!
//! A memtable is as large as the mean flush, because hosts know no other size. Hosts show no
//! memtables, so policies take none into a merge: `eager=never`. `BLESS=1` writes the file anew.
//!
//! `hosts/conformance/cassandra.txt` is what a node of Cassandra did: `flush BYTES` and `merge
//! FROM..END LEVEL`, and the bytes that it wrote.

use lsmith::env::MemEnv;
use lsmith::{Event, Observer, Store};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Drive, Event as Step, UnitContent};
use lsmith_tree::{LevelId, MergePlan, Mode, Place, Run, RunId, Tree};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Policies that merge neighbouring whole runs by size, age and level.
const POLICIES: &[&str] = &[
    "tiered(ratio=4, eager=never)",
    "bigtable(k=4, largest=1200kB, eager=never)",
    "bigtable(k=5, eager=never)",
    "constant(k=3, eager=never)",
    "exploring(k=4, eager=never)",
    "minlatency(k=4, eager=never)",
    "binomial(k=4, eager=never)",
    "auto(runs=6, eager=never)",
    "ucs(w=T3/N, eager=never)",
    "arce(runs=6, eager=never)",
    "samt(ratio=3, eager=never)",
    "universal(trigger=4, eager=never)",
    "fluid(ratio=4, inner=1, eager=never)",
    "lazy_leveling(ratio=3, eager=never)",
    "autumn(ratio=3, c=0.4, eager=never)",
    "moose(price=0.3, eager=never)",
    "clickhouse(base=3, few=2, many=8, fixed=1KiB, largest=2MB, eager=never)",
    "ics(eager=never)",
    "none",
];

const FLUSHES: usize = 40;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hosts/conformance")
}

fn policy(spec: &str) -> Arc<dyn MergePolicy> {
    Registry::builtin().build(spec).unwrap()
}

/// Returns the sizes of flushes: around 200 kB, no two alike.
fn sizes() -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    let next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(150_000 + (state >> 33) % 100_000)
    };
    std::iter::from_fn(next).take(FLUSHES)
}

/// Returns name, level and bytes of the runs on storage, newest first.
fn runs(tree: &Tree) -> Vec<(RunId, usize, u64)> {
    let on_storage = |(level, run): (LevelId, &Arc<Run>)| match level {
        LevelId::Disk(level) => Some((run.id(), level, run.bytes())),
        LevelId::Memory => None,
    };
    tree.runs().filter_map(on_storage).collect()
}

/// A merge of storage runs by their indexes, newest first, and the level of the output.
#[derive(Debug, PartialEq)]
struct Pick {
    from: usize,
    end: usize,
    level: usize,
}

impl Pick {
    /// Returns `None` if the plan is no merge of neighbouring whole runs on storage.
    fn of(tree: &Tree, plan: &MergePlan) -> Option<Pick> {
        let runs = runs(tree);
        let index = |id| runs.iter().position(|run| run.0 == id);
        let inputs: Vec<usize> =
            plan.inputs.iter().map(|input| index(input.run)).collect::<Option<_>>()?;
        let (from, last) = (*inputs.first()?, *inputs.last()?);
        let level = match plan.place {
            Place::NewRun(level) => level,
            Place::Oldest => runs[last].1,
            Place::Into(run) if index(run) == Some(last) => runs[last].1,
            _ => return None,
        };
        let is_merge = plan.mode == Mode::Merge && inputs.iter().copied().eq(from..=last);
        is_merge.then_some(Pick { from, end: last + 1, level })
    }
}

/// Returns the line of a look at `tree`.
fn look(tree: &Tree, pick: Option<&Pick>) -> String {
    let mut line = format!("look {} {}", tree.flushes(), tree.flushed().bytes);
    for (name, note) in tree.memo().iter() {
        assert!(!name.contains([' ', '=', ':']) && !note.contains([' ', ':']), "{name}={note}");
        write!(line, " {name}={note}").unwrap();
    }
    for (_, level, bytes) in runs(tree) {
        write!(line, " {level}:{bytes}").unwrap();
    }
    match pick {
        Some(Pick { from, end, level }) => writeln!(line, " -> {from}..{end} {level}").unwrap(),
        None => line.push_str(" -> none\n"),
    }
    line
}

/// Flushes memtables of these sizes in the simulation. Calls `observe` with each step. The memtable
/// that the policy sees is as large as the mean flush.
fn simulate(
    policy: &Arc<dyn MergePolicy>,
    sizes: impl Iterator<Item = u64>,
    mut observe: impl FnMut(u64, &Step<'_>),
) {
    let mut drive = Drive::new(Arc::clone(policy), UnitContent::of(&**policy), 0);
    let mut flushed = 0;
    for (index, bytes) in sizes.enumerate() {
        flushed += bytes;
        drive.set_memtable_bytes(flushed / (index as u64 + 1));
        let memtable = UnitContent::memtable(drive.tree(), bytes);
        drive.flush(memtable, &mut |step| observe(bytes, &step)).unwrap();
    }
}

/// A flush of what is in memory.
fn is_flush(tree: &Tree, plan: &MergePlan) -> bool {
    let memory = tree.memory().runs();
    plan.inputs.iter().all(|input| memory.iter().any(|run| run.id() == input.run))
}

/// Returns the part of the file about one policy.
fn part(spec: &str) -> String {
    let mut text = format!("policy {spec}\n");
    simulate(&policy(spec), sizes(), |bytes, step| match step {
        Step::Merge { tree, plan, .. } if is_flush(tree, plan) => {
            writeln!(text, "flush {bytes}").unwrap();
        }
        Step::Merge { tree, plan, .. } => {
            assert!(tree.memory().runs().is_empty(), "{spec} looks at memory: {plan}");
            let pick = Pick::of(tree, plan);
            assert!(pick.is_some(), "{spec} asks for more than hosts can: {plan}");
            text.push_str(&look(tree, pick.as_ref()));
        }
        Step::Rest { tree } => text.push_str(&look(tree, None)),
        _ => {}
    });
    text
}

#[test]
fn hosts_have_the_picks_of_the_simulation() {
    let text: String = POLICIES.iter().map(|spec| part(spec)).collect();
    let file = folder().join("picks.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    for spec in POLICIES {
        let picks = part(spec).lines().filter(|line| line.contains("..")).count();
        assert!(*spec == "none" || picks >= 5, "{spec} merges {picks} times");
    }
    let kept = fs::read_to_string(file).unwrap();
    for (index, (kept, line)) in kept.lines().zip(text.lines()).enumerate() {
        assert_eq!(kept, line, "line {}: BLESS=1 writes picks.txt anew", index + 1);
    }
    assert_eq!(kept.lines().count(), text.lines().count(), "BLESS=1 writes picks.txt anew");
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { plan, .. } = event {
            self.0.lock().unwrap().push(plan.to_string());
        }
    }
}

/// The store has the same sizes: of each entry its key, its value and 8. Its memtable has a fixed
/// size, which is the one that the policy sees.
#[test]
fn store_has_the_picks_of_the_simulation() {
    const MEMTABLE_BYTES: u64 = 300_000;
    for spec in POLICIES {
        let mut expected = Vec::new();
        let policy = policy(spec);
        let mut drive = Drive::new(Arc::clone(&policy), UnitContent::of(&*policy), MEMTABLE_BYTES);
        let recorder = Arc::new(Recorder::default());
        let observer: Arc<dyn Observer> = Arc::<Recorder>::clone(&recorder);
        let store = Store::builder("/store").env(Arc::new(MemEnv::new())).policy(*spec);
        let store = store.memtable_bytes(MEMTABLE_BYTES).lockstep(true).observer(observer);
        let store = store.open().unwrap();
        let keyspace = store.keyspace("default").unwrap();
        for (number, bytes) in sizes().enumerate() {
            let memtable = UnitContent::memtable(drive.tree(), bytes);
            let note = &mut |step: Step<'_>| {
                if let Step::Merge { plan, .. } = step {
                    expected.push(plan.to_string());
                }
            };
            drive.flush(memtable, note).unwrap();
            let key = (number as u64).to_be_bytes();
            keyspace.put(key, vec![7; bytes as usize - key.len() - 8]).unwrap();
            store.flush().unwrap();
        }
        drop((keyspace, store));
        assert_eq!(*recorder.0.lock().unwrap(), expected, "{spec}");
    }
}

/// The simulation makes the decisions that a node of Cassandra made, line by line, and predicts
/// the bytes that its merges wrote.
#[test]
fn cassandra_has_the_picks_of_the_simulation() {
    let text = fs::read_to_string(folder().join("cassandra.txt")).unwrap();
    let nodes: Vec<&str> = text.split("policy ").skip(1).collect();
    assert!(nodes.len() >= 3, "{} policies are recorded", nodes.len());
    for node in nodes {
        let mut lines = node.lines();
        let spec = lines.next().unwrap();
        let written = node.lines().find_map(|line| line.strip_prefix("written ")).unwrap();
        let written: f64 = written.parse().unwrap();
        let flushes: Vec<u64> = node
            .lines()
            .filter_map(|line| line.strip_prefix("flush "))
            .map(|bytes| bytes.parse().unwrap())
            .collect();
        let mut steps = Vec::new();
        let mut predicted = 0;
        simulate(&policy(spec), flushes.iter().copied(), |bytes, step| {
            let Step::Merge { tree, plan, .. } = step else { return };
            if is_flush(tree, plan) {
                steps.push(format!("flush {bytes}"));
                return;
            }
            let Pick { from, end, level } = Pick::of(tree, plan).unwrap();
            steps.push(format!("merge {from}..{end} {level}"));
            predicted +=
                tree.disk_runs().skip(from).take(end - from).map(|r| r.bytes()).sum::<u64>();
        });
        let recorded: Vec<&str> = lines.filter(|line| !line.starts_with("written ")).collect();
        assert_eq!(steps, recorded, "{spec}");
        let share = predicted as f64 / written;
        assert!((0.95..1.05).contains(&share), "{spec}: predicted {predicted}, written {written}");
    }
}
