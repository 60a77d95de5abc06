use super::*;
use crate::read::vec_cursor::{Owned, VecCursor, calls, compare, key, sort};
use proptest::collection::vec;
use proptest::prelude::*;

fn boxed(sources: Vec<VecCursor>) -> Vec<Box<dyn Cursor>> {
    sources.into_iter().map(|source| Box::new(source) as Box<dyn Cursor>).collect()
}

proptest! {
    #[test]
    fn cursor_walks_like_one_sorted_vector(
        keys in vec((key(), 0usize..7), 0..40),
        sources in 1usize..8,
        calls in calls(),
    ) {
        let mut parts = vec![Vec::new(); sources];
        let mut all = Vec::new();
        for (seq, (key, source)) in keys.iter().enumerate() {
            let entry = Owned::put(key, seq as u64 + 1);
            parts[source % sources].push(entry.clone());
            all.push(entry);
        }
        let mut merging =
            MergingCursor::new(boxed(parts.into_iter().map(VecCursor::new).collect()));
        compare(&mut VecCursor::new(all), &mut merging, &calls);
    }

    /// Sources by age; the oldest version of a key in each has its sequence number or not.
    #[test]
    fn entries_without_numbers_are_as_old_as_their_sources(
        writes in vec((key(), any::<bool>()), 0..40),
        forgets in vec(any::<bool>(), 40),
        calls in calls(),
    ) {
        let mut sources = vec![Vec::new()];
        let mut all = Vec::new();
        for (index, (key, seal)) in writes.iter().enumerate() {
            let entry = Owned::put(key, index as u64 + 1);
            let newest: &mut Vec<Owned> = sources.last_mut().unwrap();
            let oldest = !newest.iter().any(|entry| entry.key == key);
            let seq = SeqNo(if oldest && forgets[index] { 0 } else { entry.seq.0 });
            newest.push(Owned { seq, ..entry.clone() });
            all.push((entry.clone(), seq));
            if *seal {
                sources.push(Vec::new());
            }
        }
        all.sort_by_key(|(entry, _)| (entry.key.clone(), std::cmp::Reverse(entry.seq)));
        let numbered = all.into_iter().map(|(entry, seq)| Owned { seq, ..entry }).collect();
        let cursors = sources.into_iter().rev().map(VecCursor::new).collect();
        let mut merging = MergingCursor::new(boxed(cursors));
        compare(&mut VecCursor::sorted(numbered), &mut merging, &calls);
    }

    /// Knots: the same key and sequence number in several sources.
    #[test]
    fn newer_source_comes_first_among_equal_entries(
        entries in vec((0u64..3, 1u64..4, 0usize..4), 0..20),
        calls in calls(),
    ) {
        let mut parts = vec![Vec::new(); 4];
        for &(key, seq, source) in &entries {
            let mut entry = Owned::put(&[key as u8], seq);
            entry.value = Bytes::from(vec![source as u8]);
            if !parts[source].contains(&entry) {
                parts[source].push(entry);
            }
        }
        let mut all = parts.concat();
        sort(&mut all);
        let mut merging =
            MergingCursor::new(boxed(parts.into_iter().map(VecCursor::new).collect()));
        compare(&mut VecCursor::new(all), &mut merging, &calls);
    }
}

#[test]
fn cursor_without_sources_is_empty() {
    let mut merging = MergingCursor::new(boxed(Vec::new()));
    merging.seek_first().unwrap();
    assert_eq!(merging.entry(), None);
    merging.seek_before(b"z").unwrap();
    assert_eq!(merging.entry(), None);
}

/// Every call that can fail fails once. The cursor is then on no entry, and works again once the
/// source does.
#[test]
fn cursor_is_on_no_entry_after_an_error() {
    let good = || VecCursor::new(vec![Owned::put(b"a", 1), Owned::put(b"c", 2)]);
    let bad = || VecCursor::new(vec![Owned::put(b"b", 3), Owned::put(b"d", 4)]);
    let mut failures = 0;
    for calls in 0..6 {
        let mut merging = MergingCursor::new(boxed(vec![good(), bad().failing_after(calls)]));
        let mut walk = || -> Result<()> {
            merging.seek_first()?;
            merging.next()?;
            merging.prev()?;
            merging.next()?;
            merging.next()
        };
        if walk().is_err() {
            failures += 1;
            assert_eq!(merging.entry(), None);
        } else {
            assert_eq!(merging.entry().map(|entry| entry.key), Some(&b"c"[..]));
        }
    }
    assert!((1..6).contains(&failures), "{failures} of 6");
}

/// A source that gains entries on both sides of its position at every step, as a memtable may.
struct Growing(VecCursor);

impl Growing {
    fn grow(&mut self) {
        let here = Owned::from(self.0.entry().unwrap());
        let entries = ["a", "b", "d", "e"].map(|key| Owned::put(key.as_bytes(), 9));
        self.0 = VecCursor::new(entries.to_vec());
        self.0.seek(&here.key).unwrap();
    }
}

impl Cursor for Growing {
    fn seek_first(&mut self) -> Result<()> {
        self.0.seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.0.seek_last()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.0.seek(key)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.0.seek_before(key)
    }

    fn next(&mut self) -> Result<()> {
        self.grow();
        self.0.next()
    }

    fn prev(&mut self) -> Result<()> {
        self.grow();
        self.0.prev()
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.0.entry()
    }

    fn value(&self) -> Bytes {
        self.0.value()
    }
}

/// The cursor is on "c" of one source when it turns. The other source has "a" and "e" and, from
/// then on, "b" and "d". No entry that the cursor has left is shown again.
#[test]
fn turn_over_entries_added_meanwhile_keeps_the_order() {
    let merging = || {
        let growing = Growing(VecCursor::new(vec![Owned::put(b"a", 9), Owned::put(b"e", 9)]));
        let still = VecCursor::new(vec![Owned::put(b"c", 1)]);
        let sources: Vec<Box<dyn Cursor>> = vec![Box::new(growing), Box::new(still)];
        MergingCursor::new(sources)
    };
    let key = |merging: &MergingCursor| merging.entry().map(|entry| entry.key.to_vec());

    let mut backward = merging();
    backward.seek(b"c").unwrap();
    backward.prev().unwrap();
    assert_eq!(key(&backward), Some(b"b".to_vec()));

    let mut forward = merging();
    forward.seek_before(b"d").unwrap();
    forward.next().unwrap();
    assert_eq!(key(&forward), Some(b"d".to_vec()));
}
