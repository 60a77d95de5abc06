//! Parts of memory that plans took by key range: writes that are in tables, although the log still
//! has them.

use lsmith_tree::{Key, KeyRange, SeqNo};
use std::collections::BinaryHeap;

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
    /// Adds marks, in any order. The work is that of sorting them, and of going once over what was
    /// there: a record may have as many as fit into a file.
    pub(crate) fn extend<'a>(&mut self, marks: impl IntoIterator<Item = &'a Mark>) {
        let covered = covered(marks.into_iter().collect());
        self.steps = simplified(higher(std::mem::take(&mut self.steps), covered));
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
        let (mut taken, marks) = (Taken::default(), Vec::from_iter(marks));
        taken.extend(&marks);
        taken
    }
}

/// The greatest number of `marks` from each of their borders on, up to the next.
fn covered(mut marks: Vec<&Mark>) -> Vec<(Key, SeqNo)> {
    let ends = marks.iter().filter_map(|mark| mark.range.end.clone());
    let starts = marks.iter().map(|mark| mark.range.start.clone());
    let mut borders: Vec<Key> = starts.chain(ends).collect();
    borders.sort_unstable();
    borders.dedup();
    marks.sort_unstable_by(|left, right| left.range.start.cmp(&right.range.start));
    let mut marks = marks.into_iter().peekable();
    // Those that have begun, the greatest on top. One that is over goes when it gets there.
    let mut begun = BinaryHeap::new();
    let step = |border: Key| {
        while let Some(mark) = marks.next_if(|mark| mark.range.start <= border) {
            begun.push((mark.upto, mark.range.end.as_ref()));
        }
        let is_over = |end: Option<&Key>| end.is_some_and(|end| *end <= border);
        while begun.peek().is_some_and(|(_, end)| is_over(*end)) {
            begun.pop();
        }
        let upto = begun.peek().map_or(SeqNo(0), |(upto, _)| *upto);
        (border, upto)
    };
    borders.into_iter().map(step).collect()
}

/// The greater of two numbers for every key.
fn higher(left: Vec<(Key, SeqNo)>, right: Vec<(Key, SeqNo)>) -> Vec<(Key, SeqNo)> {
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let (mut of_left, mut of_right) = (SeqNo(0), SeqNo(0));
    let mut steps = Vec::new();
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => return steps,
            (Some((left, _)), Some((right, _))) => left.min(right),
            (Some((start, _)), None) | (None, Some((start, _))) => start,
        };
        let start = next.clone();
        if let Some((_, upto)) = left.next_if(|(key, _)| *key == start) {
            of_left = upto;
        }
        if let Some((_, upto)) = right.next_if(|(key, _)| *key == start) {
            of_right = upto;
        }
        steps.push((start, of_left.max(of_right)));
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
        taken.extend(&[mark("b..k", 9)]);
        assert_eq!(told(&taken), ["a..b 2", "b..k 9", "k..z 2"]);
        taken.forget(SeqNo(2));
        assert_eq!(told(&taken), ["b..k 9"]);
        taken.extend(&[mark("..", 10)]);
        assert_eq!(told(&taken), [".. 10"]);
        taken.forget(SeqNo(10));
        assert_eq!(taken, Taken::default());
    }

    /// Each mark that was added went over all that were there. A manifest of a few megabytes, of
    /// which all checksums are right, kept whoever opened it busy for hours.
    #[test]
    fn marks_by_the_hundred_thousand_are_taken_in() {
        const MARKS: u32 = 200_000;
        let key = |number: u32| Key::copy_from_slice(&number.to_be_bytes());
        let narrow = (0..MARKS).map(|number| Mark {
            range: KeyRange { start: key(2 * number), end: Some(key(2 * number + 1)) },
            upto: SeqNo(1 << 30),
        });
        // Each lies around all of those before, and says more.
        let wide = (1..MARKS).map(|number| Mark {
            range: KeyRange { start: key(MARKS - number), end: Some(key(MARKS + number)) },
            upto: SeqNo(u64::from(MARKS - number)),
        });
        let taken: Taken = narrow.chain(wide).collect();
        assert_eq!(taken.upto(&key(MARKS)), SeqNo(1 << 30));
        assert_eq!(taken.upto(&key(MARKS + 1)), SeqNo(u64::from(MARKS - 2)));
        assert_eq!(taken.upto(&key(2 * MARKS - 2)), SeqNo(1 << 30));
        assert_eq!(taken.upto(&key(2 * MARKS - 1)), SeqNo(0));
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
            let (one, two) = marks.split_at(marks.len() / 2);
            let mut parts: Taken = one.iter().cloned().collect();
            parts.extend(two);
            prop_assert_eq!(&parts, &taken);
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
