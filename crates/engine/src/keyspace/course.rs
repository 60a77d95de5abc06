//! Detects a merge policy whose plans lead in a circle.

use lsmith_tree::Tree;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The number of returns to the same tree, without a flush, after which a policy is taken to go in
/// a circle. The laws of policies allow none.
const RETURNS_MAX: u32 = 16;

/// Detects whether plans lead in a circle while no memtable is flushed. Each tree is compared with
/// the tree at a mark. The mark moves ahead after 1, 2, 4, ... plans without a return, so that it
/// reaches a circle of any length, and at last stays until the circle closes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlanCourse {
    /// The number of memtables flushed before the course.
    flushes: u64,
    /// The shape of the tree at the mark.
    mark: u64,
    /// Plans since the mark was set, or since the last return to it.
    steps: u64,
    /// Plans without a return after which the mark moves. 0 before the first plan.
    span: u64,
    /// Returns to a mark.
    returns: u32,
    /// The shape of the tree for which the policy is not asked any more.
    rest: Option<u64>,
}

impl PlanCourse {
    /// Follows a plan that led to `tree`.
    pub(super) fn step(&mut self, tree: &Tree) {
        let shape = shape_of(tree);
        if self.span == 0 || self.flushes != tree.flushes() || self.rest.is_some() {
            *self = PlanCourse {
                flushes: tree.flushes(),
                mark: shape,
                span: 1,
                ..PlanCourse::default()
            };
            return;
        }
        self.steps += 1;
        if shape == self.mark {
            self.returns += 1;
            self.steps = 0;
        } else if self.steps == self.span {
            self.mark = shape;
            self.steps = 0;
            self.span *= 2;
        }
        self.rest = (self.returns > RETURNS_MAX).then_some(shape);
    }

    /// Returns true if the plans so far lead in a circle.
    pub(super) fn is_circle(&self) -> bool {
        self.rest.is_some()
    }

    /// Returns true if the policy must not be asked for `tree`.
    pub(super) fn rests_at(&self, tree: &Tree) -> bool {
        self.rest.is_some_and(|shape| shape == shape_of(tree))
    }
}

/// Returns a hash of the shape of `tree`: level, size, dead bytes and number of slices of each run.
/// Numbers of runs and tables and the memo do not count, because each plan can change them. Dead
/// bytes do: to be rid of them may be all that a plan is for.
fn shape_of(tree: &Tree) -> u64 {
    let mut hasher = FxHasher::default();
    for (level, run) in tree.runs() {
        (level, run.size(), run.dead_bytes(), run.slices().len()).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        format!("tree\n{text}").parse().unwrap()
    }

    /// Returns the number of plans that lead through `trees`, over and over, before the course
    /// ends.
    fn plans_until_rest(trees: &[&str]) -> Option<usize> {
        let trees: Vec<Tree> = trees.iter().map(|text| tree(text)).collect();
        let mut course = PlanCourse::default();
        (0..10_000).find(|plan| {
            course.step(&trees[plan % trees.len()]);
            course.rests_at(&trees[plan % trees.len()])
        })
    }

    /// What broke: many trees of one level were rewritten to be rid of dead bytes. As sizes and
    /// numbers of slices stayed as they were, the policy was taken to go in a circle.
    #[test]
    fn plans_that_only_take_dead_bytes_away_are_no_circle() {
        let text = |rewritten: usize| {
            let dead = |at: usize| if at < rewritten { "" } else { " dead 9kB" };
            let slice =
                |at: usize| format!("t{at}:k{at:02}..k{:02} 1kB root 1{}", at + 1, dead(at));
            format!("L1 r1[{}]", (10..70).map(slice).collect::<Vec<_>>().join(", "))
        };
        let mut course = PlanCourse::default();
        for rewritten in 10..70 {
            let tree = tree(&text(rewritten));
            course.step(&tree);
            assert!(!course.rests_at(&tree), "{rewritten}");
        }
    }

    #[test]
    fn circles_of_any_length_are_detected() {
        let one = "L0 r1[t1:a..z 1MB]";
        assert_eq!(plans_until_rest(&[one]), Some(RETURNS_MAX as usize + 1));
        // Other numbers of runs and tables make no difference.
        assert_eq!(plans_until_rest(&[one, "L0 r7[t9:a..z 1MB]"]), plans_until_rest(&[one]));
        for length in 2..40 {
            let trees: Vec<String> =
                (0..length).map(|level| format!("L{level} r1[t1:a..z 1MB]")).collect();
            let trees: Vec<&str> = trees.iter().map(String::as_str).collect();
            let plans = plans_until_rest(&trees).unwrap();
            assert!(plans < (RETURNS_MAX as usize + 8) * length, "{plans} for {length}");
        }
    }

    #[test]
    fn trees_that_never_recur_are_no_circle() {
        let mut course = PlanCourse::default();
        for bytes in 1..1000 {
            let tree = tree(&format!("L0 r1[t1:a..z {bytes}kB]"));
            course.step(&tree);
            assert!(!course.rests_at(&tree));
        }
    }

    #[test]
    fn policy_is_asked_again_for_another_tree() {
        let one = tree("L0 r1[t1:a..z 1MB]");
        let other = tree("L1 r1[t1:a..z 1MB]");
        let mut course = PlanCourse::default();
        (0..=RETURNS_MAX + 1).for_each(|_| course.step(&one));
        assert!(course.rests_at(&one) && !course.rests_at(&other));
        course.step(&other);
        assert!(!course.rests_at(&other));
    }
}
