//! The laws, each as one test of a policy.

use super::law::{Law, LawError};
use super::odd;
use super::random::{self, Random};
use super::store::{Sizes, Store};
use crate::{Load, MergePolicy, Registry, Shape};
use lsmith_tree::{MergePlan, Place, Reason, ReservationState, Tree, TreeView, check_plan};

/// Random trees per law.
const TREES: u64 = 20;

/// What a memtable can add to the plans that bring a tree to rest.
const PLANS_MAX_PER_MEMTABLE: u64 = 2 * 64 * 10;

/// Bytes of a memtable where all have the same size.
const MEMTABLE_BYTES: u64 = 1 << 20;

fn store<'a>(policy: &'a dyn MergePolicy, seed: u64, random: &'a mut Random) -> Store<'a> {
    let view = random::view(random);
    let sizes = match seed % 3 {
        0 => Sizes::EXACT,
        1 => Sizes::ROUGH,
        _ => Sizes { kept_per_mille: random.below(1001), off_per_mille: 100 },
    };
    Store::new(view, policy, sizes, random)
}

/// Checks that what a policy says of itself agrees.
pub(super) fn words(policy: &dyn MergePolicy) -> Result<(), LawError> {
    let random = &mut Random::new(0);
    let empty = Store::new(TreeView::default(), policy, Sizes::EXACT, random);
    let spec = policy.spec();
    if spec.to_string().parse().as_ref() != Ok(&spec) {
        return Err(empty.broken(Law::Words, "its spelling does not survive being read"));
    }
    if policy.seal_bytes(&TreeView::new(Tree::new(), MEMTABLE_BYTES)) == 0 {
        return Err(empty.broken(Law::Words, "it seals memtables of 0 bytes"));
    }
    for seed in 0..TREES {
        let random = &mut Random::new(seed);
        words_on(&store(policy, seed, random))?;
    }
    Ok(())
}

/// Checks on one view that the explanation is of the plan, and that the pressure is sound.
pub(super) fn words_on(store: &Store<'_>) -> Result<(), LawError> {
    let policy = store.policy();
    let explained = store.guarded(|| policy.explain(&store.view))?;
    if explained.plan != store.guarded(|| policy.next_merge(&store.view))? {
        return Err(store.broken(Law::Words, "it explains another plan than it makes"));
    }
    // If the policy has none, the store flushes a memtable.
    let no_plan = explained.plan.is_none() && MergePlan::flush(&store.view.tree).is_none();
    let mut least = 0.0;
    for waiting_memtables in 0..8 {
        let load = Load { waiting_memtables, ..Load::default() };
        let pressure = store.guarded(|| policy.pressure(&store.view, &load))?;
        if !(0.0..=1.0).contains(&pressure) || pressure < least {
            let what = format!("its pressure is {pressure}, where {least} to 1 is expected");
            return Err(store.broken(Law::Pressure, what));
        }
        if waiting_memtables == 0 && pressure >= 1.0 && no_plan {
            return Err(store.broken(Law::Pressure, "its pressure is 1, but it has no plan"));
        }
        least = pressure;
    }
    let mut least = 0.0;
    for memtables in 0..8 {
        let owed_bytes = store.view.memtable_bytes.saturating_mul(memtables);
        let load = Load { owed_bytes, ..Load::default() };
        let pressure = store.guarded(|| policy.pressure(&store.view, &load))?;
        if !(0.0..=1.0).contains(&pressure) || pressure < least {
            let what = format!(
                "its pressure is {pressure} for {owed_bytes} bytes owed, where {least} to 1 is \
                 expected"
            );
            return Err(store.broken(Law::Pressure, what));
        }
        least = pressure;
    }
    Ok(())
}

/// Random trees come to rest, plan by plan.
pub(super) fn any_tree(policy: &dyn MergePolicy) -> Result<(), LawError> {
    for seed in 0..TREES {
        let random = &mut Random::new(seed);
        let mut store = store(policy, seed, random);
        store.settle()?;
        let keys = 0..10 + 100 * seed;
        random::seal(store.random, &mut store.view.tree, keys);
        store.settle()?;
    }
    Ok(())
}

/// So do odd ones.
pub(super) fn odd_trees(policy: &dyn MergePolicy) -> Result<(), LawError> {
    let random = &mut Random::new(1);
    for view in odd::views(random) {
        for sizes in [Sizes::EXACT, Sizes::ROUGH] {
            Store::new(view.clone(), policy, sizes, random).settle()?;
        }
    }
    Ok(())
}

/// From an empty tree, with memtables of one size and of any size, in random and in ascending
/// order of keys, the bound holds after every flush.
pub(super) fn growth(policy: &dyn MergePolicy) -> Result<(), LawError> {
    for (seed, kept_per_mille) in [1000, 1000, 1000, 500, 0].into_iter().enumerate() {
        let random = &mut Random::new(seed as u64);
        let sizes = Sizes { kept_per_mille, off_per_mille: 50 * (seed as u64 % 3) };
        let view = TreeView::new(Tree::new(), MEMTABLE_BYTES);
        let mut store = Store::new(view, policy, sizes, random);
        for flush in 0..60 {
            let keys = if seed == 1 { 100 * flush..100 * flush + 100 } else { 0..10_000 };
            match seed {
                2 => random::seal(store.random, &mut store.view.tree, keys),
                _ => write(&mut store, keys),
            }
            store.settle()?;
            store.bounded()?;
        }
    }
    Ok(())
}

fn write(store: &mut Store<'_>, keys: std::ops::Range<u64>) {
    random::seal_bytes(store.random, &mut store.view.tree, keys, MEMTABLE_BYTES);
}

/// Reserves as many plans as the policy makes, and commits them in any order while memtables
/// arrive. Every plan must keep clear of the others, none may be refused when it commits, and the
/// tree must come to rest.
pub(super) fn side_by_side(policy: &dyn MergePolicy) -> Result<(), LawError> {
    for seed in 0..TREES {
        let random = &mut Random::new(seed);
        let mut store = store(policy, seed, random);
        let mut plans_max = store.plans_max();
        let mut made = 0;
        let mut sealed = 0;
        loop {
            while let Some(plan) = store.next_plan()? {
                store.reserve(plan, ReservationState::UnderWay);
                made += 1;
                if made > plans_max {
                    return Err(store.broken(Law::Rest, format!("no rest after {made} plans")));
                }
            }
            if sealed < 8 && store.random.chance(20) {
                let bytes = store.view.memtable_bytes;
                random::seal_bytes(store.random, &mut store.view.tree, 0..1000, bytes);
                sealed += 1;
                plans_max += PLANS_MAX_PER_MEMTABLE;
            }
            if store.view.reservations.is_empty() {
                if store.view.tree.memory().runs().is_empty() {
                    break;
                }
                continue;
            }
            let done = store.random.below(store.view.reservations.len() as u64) as usize;
            let plan = store.view.reservations.remove(done).plan;
            check_plan(&store.view, &plan).map_err(|error| store.refused(&plan, &error))?;
            store.commit(&plan)?;
        }
    }
    Ok(())
}

/// Plans of somebody else, failed and never tried again: the policy keeps clear of them.
pub(super) fn blocked(policy: &dyn MergePolicy) -> Result<(), LawError> {
    for seed in 0..TREES {
        let random = &mut Random::new(seed);
        let mut store = store(policy, seed, random);
        for _ in 0..4 {
            if let Some(plan) = foreign(&mut store) {
                let states = [ReservationState::Blocked, ReservationState::UnderWay];
                store.reserve(plan, states[(seed % 2) as usize]);
            }
        }
        store.settle()?;
    }
    Ok(())
}

/// Returns a legal plan over neighbouring runs and any of the keys, if the first that comes to mind
/// is one.
fn foreign(store: &mut Store<'_>) -> Option<MergePlan> {
    let runs: Vec<_> = store.view.tree.runs().map(|(_, run)| run.id()).collect();
    let random = &mut *store.random;
    let from = random.below(runs.len().max(1) as u64) as usize;
    let count = 1 + random.below(3) as usize;
    let ids = runs.into_iter().skip(from).take(count);
    let mut plan = MergePlan::merge(ids, Place::Oldest, Reason::new("of another", [0; 3]));
    if random.chance(70) {
        let start = random.below(10_000);
        let (start, end) = (random::key(start), random::key(start + 1 + random.below(5000)));
        plan.inputs.iter_mut().for_each(|input| {
            input.range = lsmith_tree::KeyRange::new(start.clone(), end.clone());
        });
        let tree = &store.view.tree;
        plan.inputs.retain(|input| {
            tree.run(input.run).is_some_and(|(_, run)| !run.overlapping(&input.range).is_empty())
        });
    }
    check_plan(&store.view, &plan).is_ok().then_some(plan)
}

/// Takes over the trees that other policies left.
pub(super) fn switches(policy: &dyn MergePolicy) -> Result<(), LawError> {
    let registry = Registry::builtin();
    let others = registry.infos().iter().map(|info| info.name).chain([
        "leveled(ratio=3, l0=1, pick=whole_level)",
        "leveled(ratio=2, l0=4, pick=round_robin, table=100kB)",
        "tiered(ratio=2)",
        "minlatency(k=3, count=size)",
    ]);
    for (seed, other) in others.enumerate() {
        let before = registry.build(other).expect("a policy of this crate");
        let random = &mut Random::new(seed as u64);
        let view = TreeView::new(Tree::new(), MEMTABLE_BYTES);
        let mut store = Store::new(view, before.as_ref(), Sizes::EXACT, random);
        for flush in 0..40 {
            let keys = if seed % 3 == 2 { 100 * flush..100 * flush + 300 } else { 0..10_000 };
            write(&mut store, keys);
            store.settle()?;
        }
        let view = store.view;
        let sizes = if seed % 2 == 0 { Sizes::EXACT } else { Sizes::ROUGH };
        takes_over(Store::new(view, policy, sizes, random))?;
    }
    Ok(())
}

/// Within its bound once the tree's bytes plus one ratio of new data have been merged, and at the
/// latest when as much has been written.
fn takes_over(mut store: Store<'_>) -> Result<(), LawError> {
    let ratio = match store.shape() {
        Shape::Unmerged => 1,
        Shape::Stack { runs_max } => runs_max,
        Shape::Tiered { ratio } => ratio,
        Shape::Leveled { ratio, .. } => ratio.ceil() as u64,
    };
    let bytes = store.view.tree.disk_bytes() + ratio.min(64) * MEMTABLE_BYTES;
    let mut written_bytes = 0;
    store.settle()?;
    while store.merged_bytes < bytes && written_bytes < bytes {
        write(&mut store, 0..10_000);
        written_bytes += MEMTABLE_BYTES;
        store.settle()?;
    }
    for _ in 0..4 {
        store.bounded()?;
        write(&mut store, 0..10_000);
        store.settle()?;
    }
    store.bounded()
}
