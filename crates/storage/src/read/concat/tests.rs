use super::*;
use crate::error::{Error, ErrorKind};
use crate::read::vec_cursor::{Owned, VecCursor, calls, compare, key};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

/// Parts with the same entries in every source, so that only the clipping decides what shows.
struct Clips {
    entries: Vec<Owned>,
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The number of sources.
    sources: usize,
    /// The part that cannot be opened, if any.
    broken: Option<usize>,
}

impl Parts for Clips {
    type Cursor = VecCursor;

    fn count(&self) -> usize {
        self.ranges.len()
    }

    fn start(&self, index: usize) -> &[u8] {
        &self.ranges[index].0
    }

    fn end(&self, index: usize) -> Option<&[u8]> {
        self.ranges[index].1.as_deref()
    }

    /// Some parts share a cursor, some do not.
    fn source(&self, index: usize) -> usize {
        index % self.sources
    }

    fn open(&self, index: usize) -> Result<VecCursor> {
        if self.broken == Some(index) {
            return Err(Error::new(ErrorKind::Io, "cannot open"));
        }
        Ok(VecCursor::new(self.entries.clone()))
    }

    fn enter(&self, _: usize, _: &mut VecCursor) {}
}

proptest! {
    /// Borders cut the keys into ranges; every other range, or any choice, is a part.
    #[test]
    fn cursor_shows_exactly_the_entries_in_the_ranges(
        keys in vec(key(), 0..30),
        borders in btree_set(key(), 0..8),
        chosen in vec(any::<bool>(), 9),
        sources in 1..12usize,
        calls in calls(),
    ) {
        let entries: Vec<Owned> =
            keys.iter().enumerate().map(|(seq, key)| Owned::put(key, seq as u64)).collect();
        let starts = std::iter::once(Vec::new()).chain(borders.iter().cloned());
        let ends = borders.iter().cloned().map(Some).chain([None]);
        let ranges: Vec<_> =
            starts.zip(ends).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(r, _)| r).collect();
        let shown = |entry: &Owned| {
            ranges.iter().any(|(start, end)| {
                *start <= entry.key && end.as_ref().is_none_or(|end| entry.key < end)
            })
        };
        let shown: Vec<_> = entries.iter().filter(|entry| shown(entry)).cloned().collect();
        let mut model = VecCursor::new(shown);
        let mut concat =
            ConcatCursor::new(Clips { entries, ranges: ranges.clone(), sources, broken: None });
        compare(&mut model, &mut concat, &calls);
    }
}

fn three_parts(broken: Option<usize>) -> ConcatCursor<Clips> {
    let range = |start: &str, end: &str| (start.into(), Some(end.into()));
    ConcatCursor::new(Clips {
        entries: ["a", "b", "c"].map(|key| Owned::put(key.as_bytes(), 1)).to_vec(),
        ranges: vec![range("a", "b"), range("b", "c"), range("c", "d")],
        sources: 3,
        broken,
    })
}

#[test]
fn a_part_is_opened_only_when_it_is_reached() {
    let mut concat = three_parts(Some(2));
    concat.seek(b"a").unwrap();
    concat.next().unwrap();
    assert_eq!(concat.entry().map(|entry| entry.key), Some(&b"b"[..]));
    assert!(concat.next().is_err());
    assert_eq!(concat.entry(), None);
    concat.seek(b"b").unwrap();
    assert_eq!(concat.entry().map(|entry| entry.key), Some(&b"b"[..]));
}

#[test]
fn seek_into_a_broken_part_ends_on_no_entry() {
    let mut concat = three_parts(Some(1));
    concat.seek_first().unwrap();
    assert!(concat.seek(b"b").is_err());
    assert_eq!(concat.entry(), None);
    assert!(concat.seek_before(b"c").is_err());
    assert_eq!(concat.entry(), None);
}
