//! Store and keyed simulation make the same decisions.
//!
//! Both run the same workload. Each executed plan is recorded as text with the counts of its edit:
//! policy, plan, place and reason, runs by name, logical bytes and entries. The simulation's ranks
//! are converted to keys first.

mod kept;
mod lives;
mod names;
mod values;

use lsmith::env::MemEnv;
use lsmith::{Builder, Event, Keyspace, KeyspaceOptions, Observer, Store};
use lsmith_lab::{FileInputs, Newest};
use lsmith_policy::{MergePolicy, Registry, check_group_policy};
use lsmith_sim::{KeyedWorkload, simulate_keyed};
use lsmith_spec::Spec;
use lsmith_tree::{Counters, Slice, TreeEdit};
use lsmith_workload::{Inputs, Lives, OpKind, Workload, fill_value};
use names::Names;
use std::fmt::Write;
use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The executed plans in order, each with its edit as text.
type Steps = Vec<(String, String)>;

/// Every policy that merges whole tables, in its variants.
pub(crate) const POLICIES: &[&str] = &[
    "none",
    "auto",
    "auto(runs=3, price=20, eager=always)",
    "auto(runs=20, price=0.1, largest=400KiB)",
    "auto(runs=20, price=reads, get=3kB, scan=50kB)",
    "auto(reads=as_leveled)",
    "auto(runs=16, price=0.05, space=1.4)",
    "auto(runs=16, price=0.05, deletes_within=400kB)",
    "arce",
    "arce(runs=3, price=0, eager=always)",
    "arce(runs=20, price=0.3, horizon=12, eager=never)",
    "arce(runs=12, price=reads, get=3kB, scan=50kB)",
    "minlatency(k=4, largest=300KiB)",
    "exploring(k=4, largest=300KiB)",
    "fifo",
    "fifo(bytes=200KiB)",
    "bigtable(k=3)",
    "constant(k=3)",
    "exploring(k=4)",
    "exploring(k=5, min=2, max=4, lambda=1.1)",
    "minlatency(k=3)",
    "minlatency(k=3, count=size)",
    "binomial(k=3)",
    "binomial(k=4, count=size)",
    "bigtable(k=3, eager=always)",
    "binomial(k=3, eager=never)",
    "minlatency(k=2, eager=always)",
    "hbase_stripe(l0=2, split_size=200KiB)",
    "hbase_stripe(l0=3, k=2, min=2, split_size=300KiB)",
    "tiered(ratio=3)",
    "tiered(ratio=2, eager=always)",
    "tiered(ratio=3, eager=never)",
    "sweep(k=7, young=0.2, least=3)",
    "leveled(ratio=3)",
    "leveled(ratio=2.5, l0=1, pick=round_robin)",
    "leveled(ratio=3, pick=narrowest)",
    "leveled(ratio=3, pick=best_ratio)",
    "leveled(ratio=3, pick=oldest)",
    "leveled(ratio=3, pick=oldest_smallest, sizes=dynamic)",
    "leveled(ratio=3, l0=3, pick=largest)",
    "leveled(ratio=2, pick=whole_level)",
    "leveled(ratio=3, l0=3, table=100KiB)",
    "leveled(ratio=3, pick=in_turn)",
    "lethe(delete_within=6, ratio=3)",
    "leveldb(l0=2, level1=150KiB, ratio=3, table=50KiB)",
    "rocksdb(l0=3, sizes=100KiB:500KiB, table=40KiB)",
    "cola(ratio=2)",
    "samt(ratio=3, eager=always)",
    "universal(trigger=4)",
    "universal(trigger=3, space_max=30, incremental=true)",
    "universal(trigger=6, incremental=true, eager=never)",
    "fluid(ratio=4, inner=1)",
    "fluid(ratio=5, inner=2, last=3, eager=always)",
    "lazy_leveling(ratio=3)",
    "autumn(ratio=2, c=0.7)",
    "autumn(ratio=3, c=0.4, eager=never)",
    "moose(price=0.3)",
    "moose(price=reads, get=3kB, scan=50kB, space=1.5)",
    "moose(price=1, size=1MiB, eager=never)",
    "vertiorizon(levels=2, ratio=2)",
    "vertiorizon(merge=leveling, ratio=3, eager=never)",
    "spooky(ratio=3, l0=1)",
    "spooky(ratio=2, l0=0, eager=never)",
    "ucs(w=L3)",
    "ucs(w=T3/N)",
    "ucs(w=adaptive)",
    "lucene_tiered(tier=3, floor=20KiB, largest=1MiB)",
    "lucene_tiered(tier=2, eager=never)",
    "clickhouse(base=3, few=2, many=8, fixed=1KiB, largest=1MiB)",
    "clickhouse(base=2.5, eager=always)",
    "ics",
    "ics(threshold=0.6, min=3, goal=1.4)",
    "triangular",
    "triangular(score=bytes)",
    "triangular(max_bytes=150KiB, max_files=9)",
    "triangular(max_bytes=150KiB, max_files=9, score=bytes)",
    "jungle",
    "jungle(c=1, ratio=2)",
    "jungle(c=2, ratio=3, table=40KiB)",
    "jungle(c=10, ratio=4, table=100KiB)",
    "jungle(c=8/2, ratio=2)",
    "jungle(space=1.3, ratio=2)",
];

/// Every policy that counts in blocks, in its variants.
pub(crate) const BLOCK_POLICIES: &[&str] = &[
    "full(ratio=3)",
    "rr(ratio=3, rate=0.2)",
    "choose_best(ratio=3, rate=0.2)",
    "test_mixed(ratio=3, rate=0.2)",
    "mixed(ratio=3, rate=0.2)",
    "full(ratio=3, reuse=false)",
    "rr(ratio=3, rate=0.2, reuse=false)",
    "choose_best(ratio=3, rate=0.2, reuse=false)",
    "test_mixed(ratio=3, rate=0.2, reuse=false)",
    "mixed(ratio=3, rate=0.2, reuse=false)",
    "choose_best(ratio=4, rate=0.1, piece=16kB)",
    "choose_best(ratio=3, rate=0.2, slices_max=4)",
];

#[derive(Debug, Default)]
struct Recorder {
    /// True if the text of edits includes blocks.
    blocks: bool,
    steps: Mutex<Steps>,
    bytes: Mutex<(u64, u64)>,
}

impl Observer for Recorder {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { plan, edit, bytes_written, .. } = event {
            self.steps.lock().unwrap().push((plan.to_string(), edit_text(edit, self.blocks)));
            let mut bytes = self.bytes.lock().unwrap();
            bytes.0 +=
                edit.counters.iter().map(|(_, counters)| counters.bytes_written).sum::<u64>();
            bytes.1 += bytes_written;
        }
    }
}

/// Returns the effects of an edit as text. Leaves out counts that only the store has, for versions
/// overwritten in memory (entries read, tombstones dropped). Includes blocks only if `blocks`.
fn edit_text(edit: &TreeEdit, blocks: bool) -> String {
    let known = |counters: Counters| {
        let Counters { entries_in, blocks_in, blocks_written, blocks_reused, .. } =
            Counters::default();
        if blocks {
            counters
        } else {
            Counters { entries_in, blocks_in, blocks_written, blocks_reused, ..counters }
        }
    };
    let counters = edit.counters.iter().map(|(level, counters)| (level, known(*counters)));
    let counters: Vec<_> = counters.collect();
    let sizes: Vec<Vec<_>> = edit
        .add
        .iter()
        .map(|addition| {
            let slices = addition.slices.iter();
            let deleted = |slice: &Slice| slice.table().oldest_tombstone;
            slices.map(|slice| (slice.size(), slice.dead_bytes(), deleted(slice))).collect()
        })
        .collect();
    format!("{} {} {counters:?} {sizes:?}", edit.flushes, edit.flushed.bytes)
}

/// Returns true if the simulation knows which blocks a policy that counts in blocks or not reads. A
/// merge that passes over a deleted range looks again at the block in which it ends.
fn knows_blocks(by_block: bool, workload: &Workload) -> bool {
    by_block && !workload.deletes_ranges()
}

fn simulated(
    policy: &Arc<dyn MergePolicy>,
    workload: &KeyedWorkload,
    names: &Names,
    memtable: u64,
) -> Steps {
    let mut steps = Steps::new();
    simulate_keyed(policy, workload, memtable, &mut |event| {
        if let lsmith_sim::Event::Merge { plan, edit, .. } = event {
            let effects = edit_text(edit, knows_blocks(policy.needs().blocks, workload.workload()));
            steps.push((names.plan(plan).to_string(), effects));
        }
    })
    .unwrap();
    steps
}

/// Returns the keyspaces of `workload`: one, or all keyspaces of a group.
fn keyspaces(store: &Store, workload: &Workload) -> Vec<Keyspace> {
    let Some(items) = workload.keyspace_items() else {
        return vec![store.keyspace_with("default", &Newest::options(workload)).unwrap()];
    };
    let group = KeyspaceOptions { group: Some("all".into()), ..Newest::options(workload) };
    let make = |index| store.keyspace_with(&format!("keyspace-{index}"), &group).unwrap();
    (0..workload.items() / items).map(make).collect()
}

pub(crate) fn play(store: &Store, workload: &Workload, writes: &AtomicU64) {
    let keyspaces = keyspaces(store, workload);
    let mut key = Vec::new();
    let mut value = Vec::new();
    for op in workload.ops() {
        let op = op.unwrap();
        workload.key(op.item, &mut key);
        value.resize(op.value_bytes as usize, 0);
        fill_value(op.item, &mut value);
        // In a group the keyspace puts its number in front of its keys itself.
        let (keyspace, key) = match workload.keyspace_items() {
            None => (&keyspaces[0], &key[..]),
            Some(items) => (&keyspaces[(op.item / items) as usize], &key[1..]),
        };
        let is_write = op.writes_value() || op.deletes();
        writes.fetch_add(u64::from(is_write), Ordering::SeqCst);
        let own_life = matches!(workload.lives(), Lives::Each(_)) && op.life > 0;
        if matches!(op.kind, OpKind::Read | OpKind::ReadModifyWrite) {
            keyspace.get(key).unwrap();
        }
        match op.kind {
            OpKind::Put | OpKind::ReadModifyWrite if own_life => {
                keyspace.put_with_ttl(key, &value, Duration::from_secs(op.life)).unwrap();
            }
            OpKind::Put | OpKind::ReadModifyWrite => keyspace.put(key, &value).unwrap(),
            OpKind::Insert => keyspace.put_new_unchecked(key, &value).unwrap(),
            OpKind::Delete => keyspace.delete(key).unwrap(),
            OpKind::Remove => keyspace.delete_single_unchecked(key).unwrap(),
            OpKind::Combine => keyspace.combine(key, &value).unwrap(),
            OpKind::DeleteRange => {
                let mut end = Vec::new();
                workload.key(op.end(), &mut end);
                keyspace.delete_range(key..&end[..]).unwrap();
            }
            OpKind::Scan => drop(keyspace.range(key..).take(op.items as usize).last()),
            OpKind::Read => {}
        }
    }
}

fn stored(policy: &str, workload: &Workload, memtable: u64) -> (Steps, (u64, u64)) {
    stored_with(policy, workload, memtable, |builder| builder)
}

/// Runs `workload` in a store with these `options`.
fn stored_with(
    policy: &str,
    workload: &Workload,
    memtable: u64,
    options: impl FnOnce(Builder) -> Builder,
) -> (Steps, (u64, u64)) {
    let blocks = knows_blocks(BLOCK_POLICIES.contains(&policy), workload);
    let recorder = Arc::new(Recorder { blocks, ..Recorder::default() });
    let observer: Arc<dyn Observer> = Arc::<Recorder>::clone(&recorder);
    let store = Store::builder("/store").env(Arc::new(MemEnv::new())).policy(policy);
    let store = store.memtable_bytes(memtable).lockstep(true).observer(observer);
    let writes = Arc::new(AtomicU64::new(0));
    // The store also works when a log file begins, and may find then that tables have expired.
    let store = store.log_bytes(16 << 20);
    let store = options(store).operator(Newest).clock(Newest::clock(&writes)).open().unwrap();
    play(&store, workload, &writes);
    let stats = store.stats();
    assert_eq!((stats.plans_failed, stats.plans_refused), (0, 0), "{policy}");
    drop(store);
    let recorder = Arc::into_inner(recorder).expect("the store is closed");
    (recorder.steps.into_inner().unwrap(), recorder.bytes.into_inner().unwrap())
}

/// Runs `workload` under every policy on both sides.
fn check(workload: &str, memtable: u64) {
    check_policies(POLICIES, workload, memtable);
}

fn check_policies(policies: &[&str], workload: &str, memtable: u64) {
    let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
    check_workload(policies, workload, memtable);
}

/// Expired entries become tombstones in the same merges, and tables of them go unread at the same
/// moments.
#[test]
fn entries_expire_in_the_store_as_in_the_simulation() {
    for workload in [
        "churn(keys=6k, ops=20k, value=100B, expire=3k)",
        "churn(keys=3k, ops=20k, value=100B, deletes=0.3, expire=8k)",
        "load(keys=20k, value=100B, order=sequential, expire=4k)",
        "uniform(keys=6k, ops=14k, value=100B, expire=7k)",
    ] {
        check(workload, 50 << 10);
        check_policies(BLOCK_POLICIES, workload, 50 << 10);
    }
}

/// Reads are counted alike, so that they price runs alike: lookups of present and absent keys,
/// range reads, and lookups before writes.
#[test]
fn reads_price_runs_in_the_store_as_in_the_simulation() {
    let policy = "auto(runs=20, price=reads, get=3kB, scan=50kB)";
    let steps = |workload: &str| {
        let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
        let keyed = KeyedWorkload::new(workload);
        check_policy(policy, &keyed, &Names::of(&keyed), 50 << 10).len()
    };
    let without = steps("mix(put=1, keys=6k, ops=30k, value=100B)");
    for workload in [
        "mix(put=0.5, get_absent=0.5, keys=6k, ops=60k, value=100B)",
        "mix(put=0.9, scan=0.1, keys=6k, ops=33k, value=100B)",
        "ycsb(f, records=6k, ops=40k)",
        "ycsb(a, records=6k, ops=50k)",
        "ycsb(d, records=6k, ops=100k)",
    ] {
        let with = steps(workload);
        assert!(with > without + 10, "{workload}: {with} steps, {without} without reads");
    }
}

/// Trees go unread at the same moments too. Trees that merges append to expire later and later.
#[test]
fn trees_expire_in_the_store_as_in_the_simulation() {
    for (policy, workload, least) in [
        ("jungle", "load(keys=20k, value=100B, order=sequential, expire=4k)", 100),
        ("jungle(c=1000, ratio=3)", "load(keys=20k, value=100B, order=sequential, expire=4k)", 100),
        ("jungle(c=2, ratio=2, table=40KiB)", "load(keys=20k, value=100B, expire=4k)", 20),
        ("jungle(c=1000, ratio=2)", "churn(keys=3k, ops=20k, value=100B, expire=1k)", 10),
    ] {
        let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
        let keyed = KeyedWorkload::new(workload);
        let steps = check_policy(policy, &keyed, &Names::of(&keyed), 50 << 10);
        let drops = steps.iter().filter(|(plan, _)| plan.contains("has expired")).count();
        assert!(drops >= least, "{policy}, {}: {drops} drops", keyed.workload().spec());
    }
}

/// Merges drop the same entries under range deletes, tables go unread at the same moments, and
/// range deletes are done at the same moments. Append tables are left out: what a merge drops of a
/// tree depends on the nodes that it changes.
#[test]
fn ranges_are_deleted_in_the_store_as_in_the_simulation() {
    let is_sorted = |spec: &&str| !Registry::builtin().build(spec).unwrap().needs().appends;
    let policies: Vec<&str> = POLICIES.iter().copied().filter(is_sorted).collect();
    for workload in [
        "churn(keys=6k, ops=20k, value=100B, ranges=0.002, span=600)",
        "churn(keys=3k, ops=20k, value=100B, deletes=0.3, ranges=0.02, span=20)",
        "queue(keys=20k, keep=4k, purge=1k, value=100B)",
        "churn(keys=6k, ops=20k, value=100B, ranges=0.002, span=600, expire=9k)",
    ] {
        check_policies(&policies, workload, 50 << 10);
        check_policies(BLOCK_POLICIES, workload, 50 << 10);
    }
}

/// The store has a group of keyspaces, the simulation one tree of all their keys.
#[test]
fn groups_merge_in_the_store_as_in_the_simulation() {
    let is_for_groups =
        |spec: &&str| check_group_policy(&*Registry::builtin().build(spec).unwrap()).is_ok();
    let policies: Vec<&str> = POLICIES.iter().copied().filter(is_for_groups).collect();
    assert!(policies.len() > 15 && !policies.contains(&"leveled(ratio=3)"), "{policies:?}");
    for (spec, shares) in [
        ("load(keys=20k, value=100B)", &[1.0, 0.2, 0.05][..]),
        ("churn(keys=3k, ops=20k, value=100B, deletes=0.3)", &[1.0, 0.01]),
        ("uniform(keys=10k, ops=15k, value=100B)", &[0.3, 1.0]),
    ] {
        let workload = Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap();
        check_workload(&policies, workload.in_group(shares).unwrap(), 50 << 10);
    }
}

/// The keyspaces of a group write together what the group writes.
#[test]
fn costs_of_keyspaces_sum_to_the_cost_of_their_group() {
    let workload = "churn(keys=5k, ops=40k, value=100B, deletes=0.2)".parse().unwrap();
    let workload = Workload::from_spec(&workload, &FileInputs).unwrap();
    let workload = KeyedWorkload::new(workload.in_group(&[1.0, 0.2, 0.05]).unwrap());
    for spec in ["minlatency(k=4)", "binomial(k=3, eager=always)", "tiered(ratio=3)", "cola"] {
        let policy = Registry::builtin().build(spec).unwrap();
        let done = simulate_keyed(&policy, &workload, 64 << 10, &mut |_| {}).unwrap();
        let flushed: Vec<u64> = done.keyspaces.iter().map(|bytes| bytes.flushed).collect();
        let written: u64 = done.keyspaces.iter().map(|bytes| bytes.written).sum();
        let all: u64 = flushed.iter().sum();
        assert_eq!(all, done.figures.parts.flush_bytes, "{spec}");
        assert_eq!(written as f64 / all as f64, done.figures.write_cost_system, "{spec}");
        let share = flushed[1] as f64 / flushed[0] as f64;
        assert!((0.18..0.22).contains(&share) && flushed.len() == 3, "{flushed:?}");
    }
}

fn check_workload(policies: &[&str], workload: Workload, memtable: u64) {
    let keyed = KeyedWorkload::new(workload);
    let workload = keyed.workload();
    let names = Names::of(&keyed);
    for spec in policies {
        let steps = check_policy(spec, &keyed, &names, memtable);
        assert!(steps.len() >= 20, "{spec}, {}: {} steps", workload.spec(), steps.len());
    }
}

/// Runs `keyed` under one policy on both sides. Returns the steps.
fn check_policy(spec: &str, keyed: &KeyedWorkload, names: &Names, memtable: u64) -> Steps {
    let workload = keyed.workload();
    let policy = Registry::builtin().build(spec).unwrap();
    let expected = simulated(&policy, keyed, names, memtable);
    let (steps, _) = stored(spec, workload, memtable);
    for (index, (expected, step)) in expected.iter().zip(&steps).enumerate() {
        assert_eq!(step, expected, "{spec}, {}, step {index}", workload.spec());
    }
    let more = steps.get(expected.len()).or(expected.get(steps.len()));
    assert_eq!(more, None, "{spec}, {}", workload.spec());
    steps
}

/// Policies that can keep blocks are listed both with and without.
#[test]
fn no_policy_is_left_out() {
    let policies: Vec<Spec> =
        POLICIES.iter().chain(BLOCK_POLICIES).map(|p| p.parse().unwrap()).collect();
    for info in Registry::builtin().infos() {
        let mut reuses = vec![None];
        if Registry::builtin().build(info.name).unwrap().needs().blocks {
            reuses.push(Some("false"));
        }
        for reuse in reuses {
            let is_it = |spec: &Spec| spec.name == info.name && spec.param("reuse") == reuse;
            assert!(policies.iter().any(is_it), "{}, reuse {reuse:?}", info.name);
        }
    }
}

/// Entry heads, checksums, filters and fences need at least two bytes per entry, and less than the
/// eight that logical bytes count besides key and value. Common prefixes of neighbouring keys are
/// written once. Nothing else makes files smaller than their content.
#[test]
fn files_are_as_large_as_their_content() {
    for (workload, memtable, saved) in [
        ("load(keys=6k, value=1000B)", 1 << 20, 6.0 / 1031.0),
        ("update(keys=6k, share=0.7, dist=latest, value=1000B)", 1 << 20, 6.0 / 1031.0),
        ("uniform(keys=20k, ops=20k, value=100B)", 1 << 20, 6.0 / 112.0),
        // Nine bytes of a key of 23, which takes 131 bytes with its value.
        ("load(keys=40k, value=100B)", 1 << 20, (6.0 + 9.0) / 131.0),
    ] {
        let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
        for policy in ["binomial(k=3)", "leveled(ratio=3)"] {
            let (_, (logical, physical)) = stored(policy, &workload, memtable);
            let ratio = physical as f64 / logical as f64;
            let expected = 0.98 - saved..=1.02;
            assert!(expected.contains(&ratio), "{policy}, {}: {ratio:.4}", workload.spec());
        }
    }
}

#[test]
fn a_load_in_random_order() {
    check("load(keys=20k, value=100B)", 64 << 10);
}

#[test]
fn a_load_in_key_order() {
    check("load(keys=10k, value=100B, order=sequential)", 32 << 10);
}

#[test]
fn large_values_of_which_few_fit() {
    check("load(keys=3k, value=5kB)", 200 << 10);
}

#[test]
fn updates_of_old_keys() {
    check("update(keys=30k, share=0.7, dist=zipf, value=100B)", 32 << 10);
}

#[test]
fn updates_of_new_keys() {
    check("update(keys=30k, share=0.7, dist=latest, value=100B)", 32 << 10);
}

#[test]
fn puts_and_deletes() {
    check("churn(keys=3k, ops=40k, deletes=0.3, value=100B, key_bytes=40B)", 32 << 10);
}

#[test]
fn inserts_and_removes() {
    check("uniform(domain=20k, keys=5k, ops=30k)", 32 << 10);
}

#[test]
fn a_recorded_history() {
    check("trace(../workload/data/small-trace.csv)", 64 << 10);
}

/// A trace in memory.
struct Trace(String);

impl Inputs for Trace {
    fn open<'a>(&'a self, _file: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

/// Returns a trace of counters: three of four operations are combines, the others puts and deletes.
fn combines() -> Workload {
    let mut text = String::from("timestamp,op,key,value_size\n");
    let mut number = 1_u64;
    for at in 0..30_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let draw = number >> 33;
        let op = ["combine", "combine", "combine", "put", "combine", "delete"][draw as usize % 6];
        let value_bytes = 60 + draw / 6 % 50;
        writeln!(text, "{at},{op},key{:05},{value_bytes}", draw / 300 % 4000).unwrap();
    }
    Workload::from_spec(&"trace(combines)".parse().unwrap(), &Trace(text)).unwrap()
}

#[test]
fn combines_of_whole_runs() {
    check_workload(POLICIES, combines(), 32 << 10);
}

#[test]
fn blocks_of_combines() {
    check_workload(BLOCK_POLICIES, combines(), 32 << 10);
}

#[test]
fn ycsb() {
    check("ycsb(a, records=3k, ops=20k, value=100B)", 32 << 10);
}

#[test]
fn blocks_of_a_load_in_random_order() {
    check_policies(BLOCK_POLICIES, "load(keys=20k, value=100B)", 32 << 10);
}

#[test]
fn blocks_of_a_load_in_key_order() {
    check_policies(BLOCK_POLICIES, "load(keys=10k, value=100B, order=sequential)", 32 << 10);
}

#[test]
fn blocks_of_inserts_and_removes() {
    check_policies(BLOCK_POLICIES, "uniform(domain=20k, keys=5k, ops=40k, value=100B)", 32 << 10);
}

#[test]
fn blocks_of_puts_and_deletes() {
    check_policies(BLOCK_POLICIES, "churn(keys=3k, ops=40k, deletes=0.3, value=100B)", 32 << 10);
}

#[test]
fn blocks_of_updates_of_old_keys() {
    check_policies(BLOCK_POLICIES, "update(keys=30k, share=0.7, dist=zipf, value=100B)", 32 << 10);
}

#[test]
fn blocks_of_ycsb() {
    check_policies(BLOCK_POLICIES, "ycsb(a, records=3k, ops=20k, value=100B)", 32 << 10);
}

#[test]
fn blocks_of_values_of_many_sizes() {
    check_policies(BLOCK_POLICIES, "trace(../workload/data/small-trace.csv)", 32 << 10);
}

/// An entry is looked at when it comes into memory, and later only when a block begins with it.
/// Memory is folded about twenty times until it leaves.
#[test]
fn entries_are_folded_hardly_more_than_once() {
    let spec = "uniform(domain=10M, keys=30k, ops=30k, value=92B)".parse().unwrap();
    let workload = Workload::from_spec(&spec, &FileInputs).unwrap();
    for policy in ["full", "rr(rate=0.05)", "choose_best(rate=0.05)"] {
        let store = Store::builder("/store").env(Arc::new(MemEnv::new())).policy(policy);
        let store = store.memtable_bytes(600_000).lockstep(true).open().unwrap();
        play(&store, &workload, &AtomicU64::new(0));
        let stats = store.stats();
        let times = stats.entries_folded as f64 / stats.entries_written as f64;
        assert!((0.8..2.0).contains(&times), "{policy}: {times}");
    }
}
