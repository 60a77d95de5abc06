//! Reads before and after random plans that `check_plan` lets pass, one by one and side by side.

use crate::model::{Model, key};
use crate::random::{self, Random};
use lsmith_tree::{
    MergePlan, Mode, Outcome, PlanError, Reservation, ReservationState, TreeEdit, TreeView, apply,
    check_plan,
};
use std::collections::BTreeMap;

/// Trees made and changed by each test; `LSMITH_SEEDS` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("LSMITH_SEEDS").ok().and_then(|text| text.parse().ok());
    0..asked.unwrap_or(4000)
}

/// Seals a memtable, which changes answers, and says what they are now.
fn seal(random: &mut Random, model: &mut Model) {
    let memtable = random::memtable(random, model);
    let edit = TreeEdit::seal(model.tree.next_run(), memtable);
    apply(&mut model.tree, &edit).expect("fits");
}

/// Returns true if `plan` has changed no answer. A drop may make keys of its input absent.
fn is_unchanged(plan: &MergePlan, before: &[Option<u64>], after: &[Option<u64>]) -> bool {
    let is_dropped =
        |number: usize| plan.mode == Mode::Drop && plan.inputs[0].range.contains(&key(number));
    let mut pairs = before.iter().zip(after).enumerate();
    pairs.all(|(number, (before, after))| before == after || after.is_none() && is_dropped(number))
}

#[test]
fn no_legal_plan_changes_an_answer() {
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    for seed in seeds() {
        let random = &mut Random(seed);
        let mut model = random::model(random);
        for _ in 0..40 {
            if random.chance(10) {
                seal(random, &mut model);
            }
            let Some(plan) = random::plan(random, &model) else { continue };
            let view = TreeView::new(model.tree.clone(), 1);
            if let Err(error) = check_plan(&view, &plan) {
                *outcomes.entry(kind(&error)).or_default() += 1;
                continue;
            }
            let before = model.answers();
            let outcome = model.outcome(&plan, random);
            model.commit(&plan, outcome);
            let kind = format!("ok {:?} {:?}", plan.mode, plan.place);
            *outcomes.entry(kind.split('(').next().unwrap().to_string()).or_default() += 1;
            let is_right = is_unchanged(&plan, &before, &model.answers());
            assert!(is_right, "seed {seed}: {plan}\n{}after\n{view}", model.tree);
        }
    }
    // Every kind of plan was tried, and every kind was also refused.
    for expected in [
        "ok Merge Oldest",
        "ok Merge NewRun",
        "ok Merge Into",
        "ok Merge Append",
        "ok Drop Into",
        "ok Move Oldest",
        "ok Move NewRun",
        "ok Move Into",
        "SkipsRun",
        "Straddles",
        "TearsKnot",
        "CannotDrop",
        "CannotMove",
        "CannotAppend",
        "OutputInMemory",
    ] {
        let count = outcomes.get(expected).copied().unwrap_or(0);
        assert!(count >= 5, "{expected}: {count} in {outcomes:?}");
    }
}

fn kind(error: &PlanError) -> String {
    let text = format!("{error:?}");
    text.split(' ').next().unwrap_or_default().to_string()
}

/// A plan under way: what will come out of it was settled when it began.
struct UnderWay {
    plan: MergePlan,
    outcome: Outcome,
}

fn view(model: &Model, under_way: &[UnderWay]) -> TreeView {
    let mut view = TreeView::new(model.tree.clone(), 1);
    view.reservations = under_way
        .iter()
        .map(|one| Reservation { plan: one.plan.clone(), state: ReservationState::UnderWay })
        .collect();
    view
}

/// Plans that began side by side commit in any order, whatever was sealed meanwhile: none is
/// refused, and no answer changes, though each settled what it may drop when it began.
#[test]
fn plans_that_keep_clear_of_reservations_commit_in_any_order() {
    let mut began_beside = 0;
    let mut refused = 0;
    for seed in seeds() {
        let random = &mut Random(seed);
        let mut model = random::model(random);
        let mut under_way: Vec<UnderWay> = Vec::new();
        for _ in 0..60 {
            match random.below(10) {
                0 => seal(random, &mut model),
                1 | 2 if !under_way.is_empty() => {
                    let one = under_way.remove(random.below(under_way.len()));
                    let view = view(&model, &under_way);
                    let before = model.answers();
                    assert_eq!(
                        check_plan(&view, &one.plan).err(),
                        None,
                        "seed {seed}: {}\n{view}",
                        one.plan
                    );
                    model.commit(&one.plan, one.outcome);
                    let is_right = is_unchanged(&one.plan, &before, &model.answers());
                    assert!(is_right, "seed {seed}: {}\n{view}", one.plan);
                }
                _ => {
                    let Some(plan) = random::plan(random, &model) else { continue };
                    match check_plan(&view(&model, &under_way), &plan) {
                        Ok(_) => {
                            began_beside += usize::from(!under_way.is_empty());
                            let outcome = model.outcome(&plan, random);
                            under_way.push(UnderWay { plan, outcome });
                        }
                        Err(PlanError::Reserved { .. }) => refused += 1,
                        Err(_) => {}
                    }
                }
            }
        }
    }
    assert!(
        began_beside > 1000 && refused > 1000,
        "{began_beside} began beside, {refused} refused"
    );
}
