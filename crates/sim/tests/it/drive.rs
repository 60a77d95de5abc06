//! The drive with misbehaving policies, and the events that observers receive.

use crate::common::{ALL, policy, unit};
use lsmith_policy::{Load, MergePolicy, Shape};
use lsmith_sim::{Drive, Event, SimError, UNIT_BYTES, UnitContent, simulate_unit};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, PlanError, Reason, RunId, TreeView, check_tree};
use std::sync::Arc;

/// A policy that always returns the same plan.
#[derive(Debug)]
struct Stubborn(fn(&TreeView) -> Option<MergePlan>);

impl MergePolicy for Stubborn {
    fn spec(&self) -> Spec {
        Spec::bare("stubborn")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        (self.0)(view)
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        0.0
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

fn error_of(next_merge: fn(&TreeView) -> Option<MergePlan>) -> SimError {
    let policy: Arc<dyn MergePolicy> = Arc::new(Stubborn(next_merge));
    let sizes = std::iter::repeat_n(UNIT_BYTES, 10);
    simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {}).expect_err("it misbehaves")
}

const REASON: Reason = Reason::new("because", [0; 3]);

#[test]
fn an_illegal_plan_ends_the_simulation_with_policy_plan_and_rule() {
    let error = error_of(|_| Some(MergePlan::merge([RunId(99)], Place::Oldest, REASON)));
    let SimError::IllegalPlan { policy, rule, .. } = &error else { panic!("{error}") };
    assert_eq!(
        (policy.to_string(), rule),
        ("stubborn".into(), &PlanError::UnknownRun { run: RunId(99) })
    );
    assert_eq!(
        error.to_string(),
        "policy stubborn proposed an illegal plan: the tree has no run r99: \
         merge r99 over .. in place # because"
    );
}

#[test]
fn a_policy_that_never_rests_is_stopped() {
    let error = error_of(|view| {
        let newest = view.tree.disk_runs().next()?.id();
        Some(MergePlan::merge([newest], Place::Oldest, REASON))
    });
    assert!(matches!(error, SimError::Restless { plans: 100_000, .. }), "{error}");
}

#[test]
fn observers_see_every_edit_in_order() {
    let mut plans = Vec::new();
    let mut rests = 0_u64;
    let mut flushes = 0_u64;
    let mut observe = |event: Event<'_>| match event {
        Event::Sealed { tree, .. } => assert_eq!(tree.memory().runs().len(), 1),
        Event::Merge { tree, plan, edit } => {
            let mut after = tree.clone();
            lsmith_tree::apply(&mut after, edit).expect("it is about to be applied");
            assert_eq!(check_tree(&after), Ok(()));
            plans.push(plan.to_string());
        }
        Event::Rest { tree } => {
            assert!(tree.memory().runs().is_empty());
            rests += 1;
        }
        Event::Flushed { tree } => {
            flushes += 1;
            assert_eq!((flushes, tree.flushes()), (rests, rests));
        }
    };
    let sizes = std::iter::repeat_n(UNIT_BYTES, 4);
    simulate_unit(&policy("tiered(ratio=2)"), sizes, UNIT_BYTES, &mut observe).expect("legal");
    assert_eq!((rests, flushes), (4, 4));
    assert_eq!(
        plans,
        [
            "merge r0 over .. into new run at L0 # a sealed memtable waits for room",
            "merge r2 r1 over .. into new run at L1 # level 0 has 2 runs of 2",
            "merge r4 over .. into new run at L0 # a sealed memtable waits for room",
            "merge r6 r5 over .. into new run at L1 # level 0 has 2 runs of 2",
            "merge r7 r3 over .. into new run at L2 # level 1 has 2 runs of 2",
        ]
    );
}

/// Nothing overlaps in unit content, so whatever is merged, nothing appears and nothing goes.
#[test]
fn unit_content_conserves_bytes_under_every_policy() {
    for spec in ALL {
        for flushes in [1, 2, 7, 60] {
            let result = unit(spec, flushes);
            assert_eq!(result.tree.disk_bytes(), flushes as u64 * UNIT_BYTES, "{spec}");
            assert_eq!(result.tree.flushes(), flushes as u64, "{spec}");
            assert_eq!(result.figures.parts.flush_bytes, result.tree.disk_bytes(), "{spec}");
        }
    }
}

/// Flushes of many sizes, in an order that looks like no order.
#[test]
fn flushes_need_not_be_of_one_size() {
    for spec in ALL {
        let sizes = (0..200u64).map(|flush| flush * 7919 % 1000 + 1);
        let total: u64 = sizes.clone().sum();
        let result = simulate_unit(&policy(spec), sizes, 500, &mut |_| {}).expect("legal");
        assert_eq!(result.tree.disk_bytes(), total, "{spec}");
    }
}

#[test]
fn a_tree_can_be_handed_to_another_policy() {
    let first = policy("none");
    let mut drive = Drive::new(Arc::clone(&first), UnitContent::of(&*first), UNIT_BYTES);
    for _ in 0..20 {
        let memtable = UnitContent::memtable(drive.tree(), UNIT_BYTES);
        drive.flush(memtable, &mut |_| {}).expect("legal");
    }
    assert_eq!(drive.tree().disk_run_count(), 20);
    drive.set_policy(policy("bigtable(k=3)"));
    drive.settle(&mut |_| {}).expect("legal");
    assert!(drive.tree().disk_run_count() <= 3);
    assert_eq!(drive.tree().disk_bytes(), 20 * UNIT_BYTES);
}

/// Windows of keys mean nothing in tables that all cover all keys.
#[test]
fn unit_content_refuses_policies_that_take_windows_of_keys() {
    for spec in ["sweep", "hbase_stripe", "full", "rr", "choose_best", "test_mixed", "mixed"] {
        let sizes = std::iter::repeat_n(UNIT_BYTES, 2);
        let error = simulate_unit(&policy(spec), sizes, UNIT_BYTES, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("takes windows of keys"), "{spec}: {error}");
    }
}
