//! Marks for parts of memory that plans took by key range. Writes under a mark are in tables,
//! although the log still has them.

use lsmith_tree::{Key, KeyRange, SeqNo};
use std::collections::BinaryHeap;

/// One mark: all writes to keys in `range` up to `newest`, inclusive, are in tables or have left
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) range: KeyRange,
    pub(crate) newest: SeqNo,
}

/// All marks of a keyspace: a sequence number for every key. Where marks overlap, the greatest
/// sequence number counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TakenMarks {
    /// Each sequence number holds from its key up to the next key. Below the first key the sequence
    /// number is 0. Keys ascend, and neighbours have different sequence numbers.
    steps: Vec<(Key, SeqNo)>,
}

impl TakenMarks {
    /// Adds marks, in any order. Sorts them, and walks the present steps once: a record may hold as
    /// many marks as fit into a file.
    pub(crate) fn extend<'a>(&mut self, marks: impl IntoIterator<Item = &'a Mark>) {
        let covered = covered(marks.into_iter().collect());
        self.steps = simplified(higher(std::mem::take(&mut self.steps), covered));
    }

    /// Forgets marks whose sequence number is at most `newest`.
    pub(crate) fn forget(&mut self, newest: SeqNo) {
        let mut steps = std::mem::take(&mut self.steps);
        steps.iter_mut().filter(|step| step.1 <= newest).for_each(|step| step.1 = SeqNo(0));
        self.steps = simplified(steps);
    }

    /// Returns the sequence number up to which writes to `key` have left memory, or 0.
    pub(crate) fn newest_of(&self, key: &[u8]) -> SeqNo {
        let after = self.steps.partition_point(|(start, _)| **start <= *key);
        after.checked_sub(1).map_or(SeqNo(0), |index| self.steps[index].1)
    }

    /// Returns the greatest sequence number of all marks, or 0 if there are none.
    pub(crate) fn newest_of_all(&self) -> SeqNo {
        self.steps.iter().map(|(_, newest)| *newest).max().unwrap_or_default()
    }

    /// Returns the fewest marks that give every key its sequence number, in key order.
    pub(crate) fn marks(&self) -> impl Iterator<Item = Mark> + '_ {
        let starts = self.steps.iter().skip(1).map(|(start, _)| Some(start.clone()));
        let ends = starts.chain(std::iter::once(None));
        self.steps.iter().zip(ends).filter(|((_, newest), _)| *newest > SeqNo(0)).map(
            |((start, newest), end)| Mark {
                range: KeyRange { start: start.clone(), end },
                newest: *newest,
            },
        )
    }
}

impl FromIterator<Mark> for TakenMarks {
    fn from_iter<I: IntoIterator<Item = Mark>>(marks: I) -> TakenMarks {
        let mut taken = TakenMarks::default();
        taken.extend(&Vec::from_iter(marks));
        taken
    }
}

/// Returns steps: each start or end of a mark, with the greatest sequence number of the marks that
/// cover the keys from there up to the next step.
fn covered(mut marks: Vec<&Mark>) -> Vec<(Key, SeqNo)> {
    let ends = marks.iter().filter_map(|mark| mark.range.end.clone());
    let starts = marks.iter().map(|mark| mark.range.start.clone());
    let mut borders: Vec<Key> = starts.chain(ends).collect();
    borders.sort_unstable();
    borders.dedup();
    marks.sort_unstable_by(|left, right| left.range.start.cmp(&right.range.start));
    let mut marks = marks.into_iter().peekable();
    // Marks that have begun, the greatest sequence number on top. A mark that has ended is removed
    // when it reaches the top.
    let mut begun = BinaryHeap::new();
    let step = |border: Key| {
        while let Some(mark) = marks.next_if(|mark| mark.range.start <= border) {
            begun.push((mark.newest, mark.range.end.as_ref()));
        }
        let is_over = |end: Option<&Key>| end.is_some_and(|end| *end <= border);
        while begun.peek().is_some_and(|(_, end)| is_over(*end)) {
            begun.pop();
        }
        let newest = begun.peek().map_or(SeqNo(0), |(newest, _)| *newest);
        (border, newest)
    };
    borders.into_iter().map(step).collect()
}

/// Returns steps that give every key the greater of its two sequence numbers.
fn higher(left: Vec<(Key, SeqNo)>, right: Vec<(Key, SeqNo)>) -> Vec<(Key, SeqNo)> {
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    let mut of_left = SeqNo(0);
    let mut of_right = SeqNo(0);
    let mut steps = Vec::new();
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => return steps,
            (Some((left, _)), Some((right, _))) => left.min(right),
            (Some((start, _)), None) | (None, Some((start, _))) => start,
        };
        let start = next.clone();
        if let Some((_, newest)) = left.next_if(|(key, _)| *key == start) {
            of_left = newest;
        }
        if let Some((_, newest)) = right.next_if(|(key, _)| *key == start) {
            of_right = newest;
        }
        steps.push((start, of_left.max(of_right)));
    }
}

/// Removes steps with the same sequence number as the step before.
fn simplified(mut steps: Vec<(Key, SeqNo)>) -> Vec<(Key, SeqNo)> {
    let mut before = SeqNo(0);
    steps.retain(|(_, newest)| std::mem::replace(&mut before, *newest) != *newest);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(text: &str, newest: u64) -> Mark {
        Mark { range: text.parse().unwrap(), newest: SeqNo(newest) }
    }

    fn marks_as_text(taken: &TakenMarks) -> Vec<String> {
        taken.marks().map(|mark| format!("{} {}", mark.range, mark.newest)).collect()
    }

    #[test]
    fn greater_numbers_cover_smaller_ones() {
        let mut taken: TakenMarks =
            [mark("c..h", 5), mark("e..k", 9), mark("a..z", 2)].into_iter().collect();
        assert_eq!(marks_as_text(&taken), ["a..c 2", "c..e 5", "e..k 9", "k..z 2"]);
        taken.extend(&[mark("b..k", 9)]);
        assert_eq!(marks_as_text(&taken), ["a..b 2", "b..k 9", "k..z 2"]);
        taken.forget(SeqNo(2));
        assert_eq!(marks_as_text(&taken), ["b..k 9"]);
        taken.extend(&[mark("..", 10)]);
        assert_eq!(marks_as_text(&taken), [".. 10"]);
        taken.forget(SeqNo(10));
        assert_eq!(taken, TakenMarks::default());
    }

    /// Adding a mark walked all present marks. A manifest of a few megabytes, with valid checksums,
    /// took hours to open.
    #[test]
    fn hundreds_of_thousands_of_marks_are_added_quickly() {
        const MARKS: u32 = 200_000;
        let key = |index: u32| Key::copy_from_slice(&index.to_be_bytes());
        let narrow = (0..MARKS).map(|index| Mark {
            range: KeyRange { start: key(2 * index), end: Some(key(2 * index + 1)) },
            newest: SeqNo(1 << 30),
        });
        // Each covers all earlier ones, with a greater sequence number.
        let wide = (1..MARKS).map(|index| Mark {
            range: KeyRange { start: key(MARKS - index), end: Some(key(MARKS + index)) },
            newest: SeqNo(u64::from(MARKS - index)),
        });
        let taken: TakenMarks = narrow.chain(wide).collect();
        assert_eq!(taken.newest_of(&key(MARKS)), SeqNo(1 << 30));
        assert_eq!(taken.newest_of(&key(MARKS + 1)), SeqNo(u64::from(MARKS - 2)));
        assert_eq!(taken.newest_of(&key(2 * MARKS - 2)), SeqNo(1 << 30));
        assert_eq!(taken.newest_of(&key(2 * MARKS - 1)), SeqNo(0));
    }

    proptest! {
        #[test]
        fn every_key_has_the_greatest_number_of_its_marks(
            marks in proptest::collection::vec((0..30_u8, 0..30_u8, 1..20_u64), 0..12),
            forgotten in 0..20_u64,
        ) {
            let marks: Vec<Mark> = marks
                .into_iter()
                .map(|(start, end, newest)| {
                    let end = (end > start).then(|| Key::from(vec![end]));
                    let start = if start == 0 { Key::new() } else { Key::from(vec![start]) };
                    Mark { range: KeyRange { start, end }, newest: SeqNo(newest) }
                })
                .collect();
            let mut taken: TakenMarks = marks.iter().cloned().collect();
            let (one, two) = marks.split_at(marks.len() / 2);
            let mut parts: TakenMarks = one.iter().cloned().collect();
            parts.extend(two);
            prop_assert_eq!(&parts, &taken);
            let mut again: TakenMarks = taken.marks().collect();
            prop_assert_eq!(&again, &taken);
            taken.forget(SeqNo(forgotten));
            again.forget(SeqNo(0));
            for key in 0..32_u8 {
                let of_key = marks.iter().filter(|mark| mark.range.contains(&[key]));
                let most = of_key.map(|mark| mark.newest).max().unwrap_or_default();
                prop_assert_eq!(again.newest_of(&[key]), most);
                let left = if most > SeqNo(forgotten) { most } else { SeqNo(0) };
                prop_assert_eq!(taken.newest_of(&[key]), left);
            }
            prop_assert!(taken.marks().count() <= 2 * marks.len() + 1);
        }
    }
}
