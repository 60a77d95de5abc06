//! Parts of memory that plans took by key range: writes that are in tables, although the log still
//! has them.

use lsmith_tree::{Key, KeyRange, SeqNo};

/// One mark: of the keys in `range`, every write up to number `upto` is in tables, or has left
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) range: KeyRange,
    pub(crate) upto: SeqNo,
}

/// All marks of a keyspace: a number for every key. Where marks meet, the greater number counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// From each of these keys on the number holds, up to the next; 0 below the first. Keys
    /// ascend, and neighbours have different numbers.
    steps: Vec<(Key, SeqNo)>,
}

impl Taken {
    /// Adds a mark.
    pub(crate) fn add(&mut self, mark: &Mark) {
        let mut starts: Vec<Key> = self.steps.iter().map(|(start, _)| start.clone()).collect();
        starts.push(mark.range.start.clone());
        starts.extend(mark.range.end.clone());
        starts.sort_unstable();
        starts.dedup();
        let raised = starts.into_iter().map(|start| {
            let old = self.upto(&start);
            let upto = if mark.range.contains(&start) { old.max(mark.upto) } else { old };
            (start, upto)
        });
        self.steps = simplified(raised.collect());
    }

    /// Forgets the marks up to number `upto`.
    pub(crate) fn forget(&mut self, upto: SeqNo) {
        let mut steps = std::mem::take(&mut self.steps);
        steps.iter_mut().filter(|step| step.1 <= upto).for_each(|step| step.1 = SeqNo(0));
        self.steps = simplified(steps);
    }

    /// Up to which number writes of `key` have left memory.
    pub(crate) fn upto(&self, key: &[u8]) -> SeqNo {
        let after = self.steps.partition_point(|(start, _)| **start <= *key);
        after.checked_sub(1).map_or(SeqNo(0), |index| self.steps[index].1)
    }

    /// The greatest number of all marks.
    pub(crate) fn newest(&self) -> SeqNo {
        self.steps.iter().map(|(_, upto)| *upto).max().unwrap_or_default()
    }

    /// The least marks that say all this, in key order.
    pub(crate) fn marks(&self) -> impl Iterator<Item = Mark> + '_ {
        let ends = self.steps.iter().skip(1).map(|(start, _)| Some(start.clone()));
        let ends = ends.chain(std::iter::once(None));
        self.steps.iter().zip(ends).filter(|((_, upto), _)| *upto > SeqNo(0)).map(
            |((start, upto), end)| Mark {
                range: KeyRange { start: start.clone(), end },
                upto: *upto,
            },
        )
    }
}

impl FromIterator<Mark> for Taken {
    fn from_iter<I: IntoIterator<Item = Mark>>(marks: I) -> Taken {
        let mut taken = Taken::default();
        marks.into_iter().for_each(|mark| taken.add(&mark));
        taken
    }
}

/// Leaves out steps that change nothing.
fn simplified(mut steps: Vec<(Key, SeqNo)>) -> Vec<(Key, SeqNo)> {
    let mut before = SeqNo(0);
    steps.retain(|(_, upto)| std::mem::replace(&mut before, *upto) != *upto);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(text: &str, upto: u64) -> Mark {
        Mark { range: text.parse().unwrap(), upto: SeqNo(upto) }
    }

    fn told(taken: &Taken) -> Vec<String> {
        taken.marks().map(|mark| format!("{} {}", mark.range, mark.upto)).collect()
    }

    #[test]
    fn a_greater_number_covers_a_smaller_one_and_not_the_other_way_round() {
        let mut taken: Taken =
            [mark("c..h", 5), mark("e..k", 9), mark("a..z", 2)].into_iter().collect();
        assert_eq!(told(&taken), ["a..c 2", "c..e 5", "e..k 9", "k..z 2"]);
        taken.add(&mark("b..k", 9));
        assert_eq!(told(&taken), ["a..b 2", "b..k 9", "k..z 2"]);
        taken.forget(SeqNo(2));
        assert_eq!(told(&taken), ["b..k 9"]);
        taken.add(&mark("..", 10));
        assert_eq!(told(&taken), [".. 10"]);
        taken.forget(SeqNo(10));
        assert_eq!(taken, Taken::default());
    }

    proptest! {
        #[test]
        fn every_key_has_the_greatest_number_of_its_marks(
            marks in proptest::collection::vec((0..30_u8, 0..30_u8, 1..20_u64), 0..12),
            forgotten in 0..20_u64,
        ) {
            let marks: Vec<Mark> = marks
                .into_iter()
                .map(|(start, end, upto)| {
                    let end = (end > start).then(|| Key::from(vec![end]));
                    let start = if start == 0 { Key::new() } else { Key::from(vec![start]) };
                    Mark { range: KeyRange { start, end }, upto: SeqNo(upto) }
                })
                .collect();
            let mut taken: Taken = marks.iter().cloned().collect();
            let mut again: Taken = taken.marks().collect();
            prop_assert_eq!(&again, &taken);
            taken.forget(SeqNo(forgotten));
            again.forget(SeqNo(0));
            for key in 0..32_u8 {
                let of_key = marks.iter().filter(|mark| mark.range.contains(&[key]));
                let most = of_key.map(|mark| mark.upto).max().unwrap_or_default();
                prop_assert_eq!(again.upto(&[key]), most);
                let left = if most > SeqNo(forgotten) { most } else { SeqNo(0) };
                prop_assert_eq!(taken.upto(&[key]), left);
            }
            prop_assert!(taken.marks().count() <= 2 * marks.len() + 1);
        }
    }
}
