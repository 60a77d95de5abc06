//! Merge policies and observers that panic, and policies that return nonsense.
//!
//! Promised: whatever they do, no writer, no flush and no closing waits for ever, and no answer is
//! wrong. A panic on a merging thread is reported to callers who wait for rest. The policy is not
//! asked again until a caller requests it; memory is flushed meanwhile. A panic on a writer's
//! thread reaches that writer, and the store goes on.

use crate::frame::contents::default_keyspace;
use crate::frame::small::{open, threaded};
use crate::frame::watchdog::ends;
use crate::opening::close::write;
use lsmith::env::MemEnv;
use lsmith::{Builder, Event, Keyspace, Observer, Store};
use lsmith_policy::{Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, Reason, Reuse, RunId, TreeView};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

/// A policy whose parameters say what it does.
#[derive(Debug)]
struct Hostile {
    /// The method that panics.
    panics: String,
    /// The threads on which it panics.
    on: String,
    /// The kind of plans that it proposes.
    plans: String,
    /// The pressure that it returns.
    pressure: f64,
    seal_bytes: Option<u64>,
    blocks: bool,
}

const fn param(name: &'static str, default: &'static str) -> ParamInfo {
    ParamInfo { name, default, meaning: "what this test wants" }
}

const INFO: PolicyInfo = PolicyInfo {
    name: "hostile",
    source: "this test",
    summary: "panics and talks nonsense",
    params: &[
        param("panics", "never"),
        param("on", "all"),
        param("plans", "none"),
        param("pressure", "0"),
        param("seal", "none"),
        param("blocks", "false"),
    ],
    build: |params| {
        let text = |name, default: &str| params.text(name).unwrap_or(default).to_string();
        Ok(Arc::new(Hostile {
            panics: text("panics", "never"),
            on: text("on", "all"),
            plans: text("plans", "none"),
            pressure: text("pressure", "0").parse().unwrap(),
            seal_bytes: text("seal", "none").parse().ok(),
            blocks: params.flag("blocks", false)?,
        }))
    },
};

fn is_merging_thread() -> bool {
    thread::current().name().is_some_and(|name| name.starts_with("lsmith-merge"))
}

impl Hostile {
    fn may_panic(&self, method: &str) {
        let here = match &*self.on {
            "merging" => is_merging_thread(),
            "writing" => !is_merging_thread(),
            _ => true,
        };
        assert!(!here || self.panics != method, "{method} is hostile");
    }
}

const WHY: Reason = Reason::new("why not", [0; 3]);

impl MergePolicy for Hostile {
    fn spec(&self) -> Spec {
        self.may_panic("spec");
        let Hostile { panics, on, plans, pressure, seal_bytes, blocks } = self;
        let spec = Spec::bare("hostile").with("panics", panics).with("on", on);
        let spec = spec.with("plans", plans).with("pressure", pressure).with("blocks", blocks);
        seal_bytes.iter().fold(spec, |spec, bytes| spec.with("seal", bytes))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.may_panic("next_merge");
        let oldest = view.tree.disk_runs().last()?.id();
        let merge = |run, place| MergePlan::merge([run], place, WHY);
        let plan = match &*self.plans {
            "refused" => merge(RunId(u64::MAX), Place::Oldest),
            // Again and again.
            "same" => merge(oldest, Place::Oldest),
            // From one level to another and back.
            "circle" if view.tree.disk_run_count() == 1 => {
                let away = view.tree.levels()[0].runs().is_empty();
                merge(oldest, Place::NewRun(if away { 0 } else { 7 }))
            }
            // All that memory holds, into the one run that there is.
            "blocks" | "keep" | "crumbs" => {
                let memory = view.tree.memory().runs().last()?.id();
                let mut plan = MergePlan::merge([memory, oldest], Place::Into(oldest), WHY);
                let (piece_bytes, full_bytes, slack_bytes) = match &*self.plans {
                    "keep" => (1, u64::MAX, Some(u64::MAX)),
                    "crumbs" => (1, 1, Some(0)),
                    _ => (u64::MAX, u64::MAX, None),
                };
                plan.reuse = Some(Reuse { piece_bytes, full_bytes, slack_bytes });
                plan.cut_bytes = Some(1);
                plan
            }
            "memo" => {
                let mut plan = merge(view.tree.memory().runs().last()?.id(), Place::NewRun(0));
                let name = "\"a\nname\" = \\x00 é \u{7f}\u{0}";
                plan.memo.push((name.into(), Some(name.repeat(300))));
                plan.memo.push(("".into(), Some(String::new())));
                plan
            }
            _ => return None,
        };
        (self.plans == "refused" || view.is_free_for(&plan)).then_some(plan)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        self.may_panic("seal_bytes");
        self.seal_bytes.unwrap_or(view.memtable_bytes)
    }

    fn needs(&self) -> Needs {
        self.may_panic("needs");
        Needs { blocks: self.blocks, ..Needs::default() }
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        self.may_panic("pressure");
        self.pressure
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

fn builder(disk: &MemEnv, policy: &str) -> Builder {
    let mut registry = Registry::builtin();
    registry.register(INFO);
    threaded(disk).memtable_bytes(2000).registry(registry).policy(policy)
}

fn check(disk: &MemEnv, store: Store, count: u64) {
    assert_eq!(default_keyspace(&store).iter().map(Result::unwrap).count() as u64, count);
    assert_eq!(store.verify().unwrap().len(), 0);
    drop(store);
    let store = builder(disk, "none").open().unwrap();
    assert_eq!(default_keyspace(&store).iter().map(Result::unwrap).count() as u64, count);
}

/// What broke: a merging thread panicked and ended, and all waiting threads hung.
#[test]
fn panics_of_a_policy_on_merging_threads_are_told_to_who_waits_for_rest() {
    for method in ["next_merge", "pressure", "seal_bytes"] {
        for (threads, blocks) in [(1, false), (3, false), (3, true)] {
            ends(move || {
                let disk = MemEnv::new();
                let policy = format!("hostile(panics={method}, on=merging, blocks={blocks})");
                let builder = builder(&disk, &policy).memory_bytes(1 << 20).memtable_bytes(2000);
                // Keys come in order: merges that keep tables would write nothing.
                let builder = builder.threads(threads).keep_tables(false);
                let store = builder.open().unwrap();
                write(&store, 0..1000);
                let keyspace = default_keyspace(&store);
                let told = keyspace.flush().unwrap_err().to_string();
                assert!(told.contains(&format!("{method} is hostile")), "{told}");
                assert_eq!(store.settle().unwrap_err().to_string(), told);
                let failures = keyspace.stats().failures;
                assert!(failures.iter().any(|failure| failure.contains("is hostile")), "{method}");
                write(&store, 1000..2000);
                // It is asked again.
                store.retry();
                write(&store, 2000..2500);
                store.flush().unwrap_err();
                keyspace.set_merge_policy("tiered(ratio=2)").unwrap();
                store.flush().unwrap();
                assert_eq!(keyspace.stats().failures, [""; 0]);
                assert!(store.stats().merge_bytes_written > 0);
                drop(keyspace);
                check(&disk, store, 2500);
            });
        }
    }
}

/// These methods describe the policy, and are called when it is chosen.
#[test]
fn a_policy_is_asked_once_what_it_wants() {
    for method in ["spec", "needs"] {
        ends(move || {
            let disk = MemEnv::new();
            let policy = format!("hostile(panics={method}, on=merging, plans=same)");
            let store = builder(&disk, &policy).open().unwrap();
            write(&store, 0..1000);
            store.flush().unwrap();
            check(&disk, store, 1000);
        });
    }
}

/// An observer that panics at the event `at` on a merging thread, while it is switched on.
#[derive(Debug)]
struct Clumsy {
    at: &'static str,
    panics: AtomicBool,
}

impl Observer for Clumsy {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let name = match event {
            Event::Sealed { .. } => "sealed",
            Event::Planned { .. } => "planned",
            Event::Committed { .. } => "committed",
            Event::Rest { .. } => "rest",
            _ => return,
        };
        assert!(name != self.at || !self.panics.load(SeqCst), "{name} is hostile");
    }
}

#[test]
fn panics_of_an_observer_on_merging_threads_are_told_to_who_waits_for_rest() {
    for at in ["planned", "committed", "rest"] {
        for threads in [1, 3] {
            ends(move || {
                let disk = MemEnv::new();
                let clumsy = Arc::new(Clumsy { at, panics: AtomicBool::new(true) });
                let observer = Arc::clone(&clumsy) as Arc<dyn Observer>;
                let builder = builder(&disk, "tiered(ratio=2)").observer(observer);
                let store = builder.threads(threads).open().unwrap();
                write(&store, 0..1000);
                // Rest may be told after it was waited for.
                let told = loop {
                    if let Err(error) = store.flush() {
                        break error.to_string();
                    }
                };
                assert!(told.contains(&format!("{at} is hostile")), "{told}");
                assert!(!default_keyspace(&store).stats().failures.is_empty());
                clumsy.panics.store(false, SeqCst);
                store.retry();
                write(&store, 1000..2000);
                store.flush().unwrap();
                check(&disk, store, 2000);
            });
        }
    }
}

#[test]
fn panics_of_an_observer_on_a_writers_thread_are_the_writers() {
    for (at, lockstep) in [
        ("sealed", false),
        ("sealed", true),
        ("planned", true),
        ("committed", true),
        ("rest", true),
    ] {
        ends(move || {
            let disk = MemEnv::new();
            let clumsy = Arc::new(Clumsy { at, panics: AtomicBool::new(true) });
            let observer = Arc::clone(&clumsy) as Arc<dyn Observer>;
            let builder = builder(&disk, "tiered(ratio=2)").observer(observer);
            let store = builder.lockstep(lockstep).open().unwrap();
            let panics = write_in_spite(&default_keyspace(&store), 500);
            assert!(panics > 0, "{at} panics");
            clumsy.panics.store(false, SeqCst);
            // A merging thread seals what a writer could not, and keeps the panic for others.
            store.retry();
            write(&store, 0..1000);
            store.flush().unwrap();
            check(&disk, store, 1000);
        });
    }
}

/// Writes so many entries. Asserts that the acknowledged ones are there. Returns how many writes
/// panicked, whose outcome is unknown.
fn write_in_spite(keyspace: &Keyspace, count: u64) -> u32 {
    let mut panics = 0;
    for number in 0..count {
        let put = || keyspace.put(number.to_be_bytes(), [1; 50]);
        match catch_unwind(AssertUnwindSafe(put)) {
            Ok(result) => {
                result.unwrap();
                assert!(keyspace.contains(number.to_be_bytes()).unwrap());
            }
            Err(_) => panics += 1,
        }
    }
    panics
}

/// The panic of a policy on a writer's thread reaches that writer, and tears nothing.
#[test]
fn panics_of_a_policy_on_a_writers_thread_are_the_writers() {
    for (method, lockstep) in [
        ("seal_bytes", false),
        ("seal_bytes", true),
        ("pressure", false),
        ("pressure", true),
        ("next_merge", true),
    ] {
        ends(move || {
            let disk = MemEnv::new();
            let policy = format!("hostile(panics={method}, on=writing)");
            let (store, keyspace) = open(builder(&disk, "none").lockstep(lockstep));
            // It panics here if it is told of the tree.
            let _ = catch_unwind(AssertUnwindSafe(|| keyspace.set_merge_policy(&policy)));
            assert!(write_in_spite(&keyspace, 500) > 0, "{method} panics");
            keyspace.set_merge_policy("tiered(ratio=2)").unwrap();
            write(&store, 0..1000);
            store.flush().unwrap();
            assert_eq!(keyspace.stats().failures, [""; 0]);
            drop(keyspace);
            check(&disk, store, 1000);
        });
    }
}

/// What broke: a pressure that is not a number held writers back for ever, and so did full pressure
/// of a policy without a plan.
#[test]
fn pressure_alone_never_stops_writers_for_ever() {
    for pressure in ["NaN", "1", "inf", "-inf", "1e300"] {
        for plans in ["none", "refused", "same"] {
            ends(move || {
                let disk = MemEnv::new();
                let policy = format!("hostile(pressure={pressure}, plans={plans})");
                let store = builder(&disk, &policy).open().unwrap();
                write(&store, 0..200);
                let told = default_keyspace(&store).stats().pressure;
                assert!((0.0..=1.0).contains(&told), "{pressure} is {told}");
                store.flush().unwrap();
                check(&disk, store, 200);
            });
        }
    }
}

#[test]
fn a_memtable_is_sealed_whatever_the_policy_says() {
    for (seal, lockstep) in [(0, true), (0, false), (u64::MAX, true), (u64::MAX, false)] {
        ends(move || {
            let disk = MemEnv::new();
            let policy = format!("hostile(seal={seal})");
            let (store, keyspace) = open(builder(&disk, &policy).lockstep(lockstep));
            // Nothing comes of these two.
            keyspace.put_new_unchecked("key", "value").unwrap();
            keyspace.delete_single_unchecked("key").unwrap();
            write(&store, 0..200);
            store.flush().unwrap();
            let flushes = keyspace.stats().flushes;
            let expected = if seal == 0 { 10..=202 } else { 3..=7 };
            assert!(expected.contains(&flushes), "{flushes} flushes sealed at {seal}");
            drop(keyspace);
            check(&disk, store, 200);
        });
    }
}

#[test]
fn wild_memos_survive_reopening() {
    let disk = MemEnv::new();
    let policy = "hostile(plans=memo)";
    let store = builder(&disk, policy).lockstep(true).open().unwrap();
    write(&store, 0..100);
    let memo = |store: &Store| default_keyspace(store).tree().memo().clone();
    let before = memo(&store);
    assert_eq!(before.iter().count(), 2);
    drop(store);
    let store = builder(&disk, policy).lockstep(true).open().unwrap();
    assert_eq!(memo(&store), before);
    write(&store, 100..200);
    store.flush().unwrap();
    check(&disk, store, 200);
}

/// Sizes of blocks that no block can have.
#[test]
fn any_size_of_blocks_and_tables_costs_bytes_only() {
    for plans in ["blocks", "keep", "crumbs"] {
        for (blocks, lockstep) in [(false, true), (true, true), (true, false)] {
            ends(move || {
                let disk = MemEnv::new();
                let policy = format!("hostile(plans={plans}, blocks={blocks})");
                let store = builder(&disk, &policy).lockstep(lockstep).open().unwrap();
                write(&store, 0..300);
                write(&store, 0..200);
                store.flush().unwrap();
                check(&disk, store, 300);
            });
        }
    }
}

/// A policy is a pure function: for the same tree it returns the same plan.
#[test]
fn a_refused_plan_is_not_asked_for_again_before_something_has_changed() {
    ends(|| {
        let disk = MemEnv::new();
        let store = builder(&disk, "hostile(plans=refused)").open().unwrap();
        write(&store, 0..1000);
        store.flush().unwrap();
        let refused = store.stats().plans_refused;
        assert!(refused > 0);
        (0..1000).for_each(|_| store.settle().unwrap());
        // A merging thread may have asked meanwhile, once.
        let again = store.stats().plans_refused;
        assert!(again <= refused + 1, "{refused}, then {again}");
        check(&disk, store, 1000);
    });
}

/// What broke: such a policy kept the only thread busy while writers waited for it, and kept a
/// writer in lockstep busy for ever.
#[test]
fn plans_without_end_that_change_nothing_keep_nobody_waiting() {
    for plans in ["same", "circle"] {
        for threads in 0..3 {
            ends(move || {
                let disk = MemEnv::new();
                let builder = builder(&disk, &format!("hostile(plans={plans})"));
                let builder = builder.threads(threads).lockstep(threads == 0);
                let store = builder.open().unwrap();
                let rest = || match plans {
                    "circle" => default_keyspace(&store).merge().unwrap(),
                    _ => store.flush().unwrap(),
                };
                write(&store, 0..300);
                rest();
                // It is asked again when something has happened.
                let before = store.stats().plans;
                write(&store, 300..301);
                rest();
                let plans = store.stats().plans - before;
                assert!((3..1000).contains(&plans), "{plans} plans");
                check(&disk, store, 301);
            });
        }
    }
}
