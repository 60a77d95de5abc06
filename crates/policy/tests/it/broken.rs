//! The law suite finds policies that break laws.

use lsmith_policy::laws::{self, Law, LawError};
use lsmith_policy::{Load, MergePolicy, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, Reason, TreeView};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A way to break a law.
type Fault = fn(&Faulty, &TreeView) -> Option<MergePlan>;

/// A sound policy with a fault.
struct Faulty {
    sound: Arc<dyn MergePolicy>,
    fault: Fault,
    calls: AtomicU64,
    shape: Shape,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl MergePolicy for Faulty {
    fn spec(&self) -> Spec {
        Spec::bare("faulty")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        (self.fault)(self, view)
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.sound.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.shape
    }
}

fn broken_law(sound: &str, shape: Shape, fault: Fault) -> Option<Law> {
    Some(error_of(sound, shape, fault)?.law())
}

fn error_of(sound: &str, shape: Shape, fault: Fault) -> Option<LawError> {
    let sound = Registry::builtin().build(sound).expect(sound);
    let policy = Faulty { sound, fault, calls: AtomicU64::new(0), shape };
    let error = laws::check(&policy).err()?;
    assert!(error.to_string().starts_with("faulty breaks the law"), "{error}");
    assert!(error.view().parse::<TreeView>().is_ok(), "{error}");
    Some(error)
}

const STACK: Shape = Shape::Stack { runs_max: 3 };

#[test]
fn a_sound_policy_passes() {
    assert_eq!(broken_law("constant(k=3)", STACK, |it, view| it.sound.next_merge(view)), None);
}

#[test]
fn a_plan_that_skips_a_run_is_found() {
    let law = broken_law("constant(k=3)", STACK, |it, view| {
        let mut plan = it.sound.next_merge(view)?;
        if plan.inputs.len() > 4 {
            plan.inputs.remove(1);
        }
        Some(plan)
    });
    assert_eq!(law, Some(Law::Legal));
}

#[test]
fn a_plan_that_ignores_reservations_is_found() {
    let law = broken_law("constant(k=3)", STACK, |it, view| {
        let mut alone = view.clone();
        alone.reservations.clear();
        it.sound.next_merge(&alone)
    });
    assert_eq!(law, Some(Law::Legal));
}

#[test]
fn a_memory_beside_the_memo_is_found() {
    let law = broken_law("constant(k=3)", STACK, |it, view| {
        let calls = it.calls.fetch_add(1, Ordering::Relaxed);
        it.sound.next_merge(view).filter(|_| calls % 7 > 0)
    });
    assert!(matches!(law, Some(Law::Pure | Law::Words)), "{law:?}");
}

#[test]
fn a_plan_without_a_reason_is_found() {
    let law = broken_law("constant(k=3)", STACK, |it, view| {
        let plan = it.sound.next_merge(view)?;
        Some(MergePlan { reason: Reason::new("", [0; 3]), ..plan })
    });
    assert_eq!(law, Some(Law::Words));
}

#[test]
fn a_panic_is_found() {
    let law = broken_law("constant(k=3)", STACK, |it, view| {
        assert!(view.tree.disk_run_count() < 50, "too many runs");
        it.sound.next_merge(view)
    });
    assert_eq!(law, Some(Law::Total));
}

/// The trees of the suite have dozens of slices with profiles. What a person sees has only what the
/// law needs.
#[test]
fn view_of_a_broken_law_is_small() {
    let error = error_of("constant(k=3)", STACK, |it, view| {
        assert!(view.tree.disk_run_count() < 4, "too many runs");
        it.sound.next_merge(view)
    });
    let error = error.expect("it panics");
    assert_eq!(error.law(), Law::Total);
    assert!(error.to_string().contains("a panic: too many runs"), "{error}");
    let view: TreeView = error.view().parse().expect("the text of a view");
    assert_eq!(view.tree.disk_run_count(), 4, "{error}");
    let slices: Vec<_> = view.tree.runs().flat_map(|(_, run)| run.slices()).collect();
    assert!(slices.iter().all(|slice| slice.table().profile.is_empty()), "{error}");
    assert_eq!(slices.len(), 4, "{error}");
    assert_eq!((view.tree.memory().runs().len(), view.tree.flushes()), (0, 0), "{error}");
    assert!(!error.view().contains(" of ") && !error.view().contains(" s"), "{error}");

    let error = error_of("constant(k=3)", STACK, |it, view| {
        it.sound.next_merge(view).or_else(|| {
            let oldest = view.tree.disk_runs().last()?.id();
            let again = MergePlan::merge([oldest], Place::Oldest, Reason::new("again", [0; 3]));
            lsmith_tree::check_plan(view, &again).is_ok().then_some(again)
        })
    });
    let error = error.expect("it makes plans for ever");
    let view: TreeView = error.view().parse().expect("the text of a view");
    assert_eq!((error.law(), view.tree.runs().count()), (Law::Rest, 1), "{error}");
}

/// A reservation that the law needs stays, and so do the runs of its plan.
#[test]
fn small_view_keeps_the_reservation_that_matters() {
    let error = error_of("constant(k=3)", STACK, |it, view| {
        let mut alone = view.clone();
        alone.reservations.clear();
        it.sound.next_merge(&alone)
    });
    let error = error.expect("it takes reserved runs");
    let view: TreeView = error.view().parse().expect("the text of a view");
    assert_eq!((error.law(), view.reservations.len()), (Law::Legal, 1), "{error}");
    assert!(view.tree.runs().count() <= 4, "{error}");
}

#[test]
fn endless_plans_are_found() {
    let law = broken_law("constant(k=3)", STACK, |it, view| {
        it.sound.next_merge(view).or_else(|| {
            let oldest = view.tree.disk_runs().last()?.id();
            let again = MergePlan::merge([oldest], Place::Oldest, Reason::new("again", [0; 3]));
            lsmith_tree::check_plan(view, &again).is_ok().then_some(again)
        })
    });
    assert_eq!(law, Some(Law::Rest));
}

#[test]
fn a_bound_that_is_not_kept_is_found() {
    let law = broken_law("constant(k=4)", STACK, |it, view| it.sound.next_merge(view));
    assert_eq!(law, Some(Law::Progress));
    let tiered = Shape::Tiered { ratio: 3 };
    let law = broken_law("tiered(ratio=4)", tiered, |it, view| it.sound.next_merge(view));
    assert_eq!(law, Some(Law::Progress));
    let leveled = Shape::Leveled { ratio: 10.0, level0_runs: 1 };
    let law = broken_law("leveled(l0=2)", leveled, |it, view| it.sound.next_merge(view));
    assert_eq!(law, Some(Law::Progress));
}

/// A sound policy with a pressure that never changes.
#[derive(Debug)]
struct Pressing(Arc<dyn MergePolicy>, f64);

impl MergePolicy for Pressing {
    fn spec(&self) -> Spec {
        self.0.spec()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.choose_merge(view)
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        self.1
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

#[test]
fn a_pressure_that_is_none_or_stays_at_rest_is_found() {
    let law = |pressure| {
        let sound = Registry::builtin().build("constant(k=3)").expect("a policy of this crate");
        laws::check(&Pressing(sound, pressure)).err().map(|error| error.law())
    };
    // Writers who are never held back run ahead of merges.
    assert_eq!(law(0.0), Some(Law::Free));
    for pressure in [0.01, 1.0, -0.01, 1.01, f64::NAN] {
        assert_eq!(law(pressure), Some(Law::Pressure), "{pressure}");
    }
}

/// A sound policy that puts off some of its plans as long as a memtable waits, and whose pressure
/// speaks of memory alone.
struct Starving {
    sound: Arc<dyn MergePolicy>,
    puts_off: fn(&TreeView, &MergePlan) -> bool,
    pressure: fn(&Starving, &TreeView, &Load) -> f64,
}

impl fmt::Debug for Starving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starving")
    }
}

impl MergePolicy for Starving {
    fn spec(&self) -> Spec {
        self.sound.spec()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let waits = !view.tree.memory().runs().is_empty() || !view.reservations.is_empty();
        let plan = self.sound.choose_merge(view)?;
        (!waits || !(self.puts_off)(view, &plan)).then_some(plan)
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        (self.pressure)(self, view, load)
    }

    fn shape(&self) -> Shape {
        self.sound.shape()
    }
}

fn law_of_starving(
    sound: &str,
    puts_off: fn(&TreeView, &MergePlan) -> bool,
    pressure: fn(&Starving, &TreeView, &Load) -> f64,
) -> Option<(Law, String)> {
    let sound = Registry::builtin().build(sound).expect(sound);
    let error = laws::check(&Starving { sound, puts_off, pressure }).err()?;
    Some((error.law(), error.to_string()))
}

fn of_memory(_: &Starving, _: &TreeView, load: &Load) -> f64 {
    (load.waiting_memtables.saturating_sub(1) as f64 / 3.0).min(1.0)
}

fn is_large(view: &TreeView, plan: &MergePlan) -> bool {
    plan.size_taken(&view.tree).bytes > 4 * view.memtable_bytes
}

#[test]
fn large_merges_that_starve_behind_small_ones_are_found() {
    for sound in ["tiered(ratio=4)", "constant(k=5)", "exploring"] {
        let found = law_of_starving(sound, is_large, of_memory);
        let (law, error) = found.expect(sound);
        assert!(law == Law::Free && error.contains("runs in the mean"), "{error}");
        // Where writers wait for what they owe, the large merges get their turn.
        let found =
            law_of_starving(sound, is_large, |it, view, load| it.sound.pressure(view, load));
        assert_eq!(found, None, "{sound}");
    }
}

/// The young runs of `sweep` may hold a fifth of the oldest run. That bounds bytes, so a pressure
/// that speaks of runs alone lets young runs grow.
#[test]
fn a_pressure_that_ignores_bytes_is_found() {
    let found = law_of_starving(
        "sweep(k=12)",
        |_, _| false,
        |_, view, load| {
            let load = Load { owed_bytes: 0, ..*load };
            Registry::builtin().build("bigtable(k=12)").expect("is known").pressure(view, &load)
        },
    );
    let (law, error) = found.expect("is found");
    assert!(law == Law::Free, "{error}");
}
