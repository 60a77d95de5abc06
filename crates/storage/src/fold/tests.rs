//! A small model of a store: a memtable, runs, snapshots and merges of any neighbouring runs, in
//! any order. It is compared with the plain history of its writes.

use super::*;
use crate::combine::Stack;
use crate::combine::tests::join;
use crate::cursor::Cursor;
use crate::memtable::{FoundVersion, KeepFrom, Memtable, range_deletes_key};
use crate::read::vec_cursor::{Owned, VecCursor};
use crate::read::{Hidden, MergingCursor, VisibleIter};
use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use lsmith_tree::{Key, Readers, logical_bytes};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Bound;
use std::sync::Arc;

const KEYS: [&str; 4] = ["", "\0", "k", "key"];

#[derive(Clone, Debug)]
enum Step {
    /// Writes the key; the number chooses among the kinds that are allowed for it.
    Write(usize, usize),
    /// Deletes the keys from the first up to the second.
    DeleteRange(usize, usize),
    /// Takes a snapshot of all writes so far.
    Publish,
    TakeSnapshot,
    DropSnapshot(usize),
    Flush,
    /// Merges neighbouring runs, given as the newest of them and how many.
    Merge(usize, usize),
    /// Folds them as memory is folded.
    Fold(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..KEYS.len(), 0usize..10).prop_map(|(key, choice)| Step::Write(key, choice)),
        2 => (0..KEYS.len(), 0..=KEYS.len()).prop_map(|(from, end)| Step::DeleteRange(from, end)),
        6 => Just(Step::Publish),
        2 => Just(Step::TakeSnapshot),
        2 => (0usize..9).prop_map(Step::DropSnapshot),
        3 => Just(Step::Flush),
        2 => (0usize..9, 1usize..9).prop_map(|(newest, count)| Step::Merge(newest, count)),
        2 => (0usize..9, 1usize..9).prop_map(|(newest, count)| Step::Fold(newest, count)),
    ]
}

#[derive(Default)]
struct Miniature {
    /// Every write, oldest first.
    history: Vec<Owned>,
    /// Every range delete: its keys and its sequence number, oldest first.
    deletes: Vec<(KeyRange, SeqNo)>,
    /// The number of all writes.
    writes: u64,
    /// The range deletes of flushed memtables.
    range_deletes: RangeDeletes,
    /// The number of writes that are flushed.
    flushed: usize,
    visible: AtomicU64,
    memtable: Arc<Memtable>,
    /// Newest first.
    runs: Vec<Vec<Owned>>,
    /// Newest first.
    snapshots: Vec<SeqNo>,
}

impl Miniature {
    fn take(&mut self, step: &Step) {
        let (index, length) = match step {
            Step::Write(key, choice) => return self.write(KEYS[*key], *choice),
            Step::DeleteRange(from, end) => return self.delete_range(*from, *end),
            Step::Publish => return self.visible = AtomicU64::new(self.writes),
            Step::TakeSnapshot => return self.snapshots.insert(0, self.visible_seq()),
            Step::Flush => return self.flush(),
            Step::DropSnapshot(index) => (*index, self.snapshots.len()),
            Step::Merge(newest, _) | Step::Fold(newest, _) => (*newest, self.runs.len()),
        };
        if length > 0 {
            match step {
                Step::Merge(_, count) => self.merge(index % length, *count, true),
                Step::Fold(_, count) => self.merge(index % length, *count, false),
                _ => drop(self.snapshots.remove(index % length)),
            }
        }
    }

    fn visible_seq(&self) -> SeqNo {
        SeqNo(self.visible.load(Ordering::Relaxed))
    }

    fn write(&mut self, key: &str, choice: usize) {
        use EntryKind::{Combine, Delete, Insert, Put, Remove};
        let kind = match self.model(key.as_bytes(), SeqNo::MAX) {
            None => [Insert, Insert, Insert, Insert, Put, Put, Delete, Combine, Combine, Combine]
                [choice],
            Some(_) => {
                [Remove, Remove, Remove, Put, Put, Delete, Delete, Combine, Combine, Combine]
                    [choice]
            }
        };
        self.writes += 1;
        let seq = self.writes;
        let mut write = Owned::put(key.as_bytes(), seq).with(kind);
        if kind == Combine && seq.is_multiple_of(3) {
            // An operand that does not combine with others.
            write.value = Bytes::from([&write.value, &b"."[..]].concat());
        }
        let oldest = self.snapshots.last().copied().unwrap_or(SeqNo::MAX);
        let keep = KeepFrom(oldest.min(self.visible_seq()));
        self.memtable.insert(write.as_ref(), keep);
        self.history.push(write);
    }

    fn delete_range(&mut self, from: usize, end: usize) {
        let key = |index: usize| KEYS.get(index).map(|key| Key::from(*key));
        let range = KeyRange { start: key(from).unwrap(), end: key(end) };
        if range.is_empty() {
            return;
        }
        self.writes += 1;
        let seq = SeqNo(self.writes);
        let visible = self.visible_seq();
        let oldest = self.snapshots.last().copied().unwrap_or(SeqNo::MAX);
        let readers = Readers { visible, snapshots: &self.snapshots };
        self.memtable.delete_range(&range, seq, KeepFrom(oldest.min(visible)), &readers);
        // The tombstone that stands for it.
        let key = range_deletes_key(&range);
        self.history.push(Owned::put(key, seq.0).with(EntryKind::Delete));
        self.deletes.push((range, seq));
    }

    fn flush(&mut self) {
        self.take(&Step::Publish);
        self.check_sizes();
        let memtable = std::mem::take(&mut self.memtable);
        let readers = Readers { visible: self.visible_seq(), snapshots: &self.snapshots };
        self.range_deletes.add(&memtable.range_deletes().without_writes(), &readers);
        let run = self.fold(memtable.cursor(), true, self.runs.len());
        self.runs.insert(0, run);
        self.flushed = self.history.len();
    }

    fn merge(&mut self, newest: usize, count: usize, forgets: bool) {
        let end = (newest + count).min(self.runs.len());
        let runs = self.runs[newest..end].iter();
        let sources = runs.map(|run| Box::new(VecCursor::new(run.clone())) as Box<dyn Cursor>);
        let beneath = self.runs.len() - end;
        let merging = MergingCursor::new(sources.collect());
        let output = self.fold(merging, forgets, beneath);
        self.runs.splice(newest..end, [output]);
    }

    /// Returns the entries that a merge of `cursor` writes above the `beneath` oldest runs.
    /// If `forgets`, as a merge does, otherwise as memory is folded.
    fn fold(&self, cursor: impl Cursor, forgets: bool, beneath: usize) -> Vec<Owned> {
        let snapshots = self.snapshots.clone();
        let beneath = &self.runs[self.runs.len() - beneath..];
        let nothing =
            |key: &[u8]| forgets && beneath.iter().flatten().all(|entry| entry.key != key);
        let fold = Fold::new(cursor, snapshots, nothing).unwrap().forgetting(forgets);
        let hiding = match forgets {
            true => Hiding::new(self.range_deletes.clone(), self.visible_seq()),
            false => Hiding::keeping(self.range_deletes.clone()),
        };
        let mut fold = fold.combining(Some(Operators::for_merges(join()))).hiding(hiding);
        let mut output = Vec::new();
        while let Some(entry) = fold.next_entry().unwrap() {
            let oldest = self.snapshots.last().copied().unwrap_or(SeqNo::MAX);
            let part = self.range_deletes.part_of(entry.key);
            let is_after = part.is_some_and(|part| part.oldest() < entry.seq);
            let is_told = entry.seq > oldest || !entry.kind.is_value() || is_after;
            if !forgets {
                output.push(Owned::from(entry));
                continue;
            }
            assert_eq!(entry.seq > SeqNo(0), is_told, "{entry:?}");
            output.push(Owned::from(entry));
        }
        assert_eq!(fold.counts().entries_out, output.len() as u64);
        output
    }

    /// The memtable counts the entries that a flush without snapshots would write above older runs,
    /// of combines of a key only the newest. Those follow from the writes alone.
    fn check_sizes(&self) {
        let mut fold = Fold::new(self.memtable.cursor(), Vec::new(), |_: &[u8]| false).unwrap();
        let mut bytes = 0;
        let mut entries = 0;
        let mut last = None;
        while let Some(entry) = fold.next_entry().unwrap() {
            if last.replace(entry.key.to_vec()).is_some_and(|last| last == entry.key) {
                continue;
            }
            bytes += logical_bytes(entry.key.len(), entry.value.len());
            entries += 1;
            if entry.kind != EntryKind::Combine {
                assert_eq!(Some(entry.kind), self.net_effect(entry.key));
            }
        }
        assert_eq!(self.memtable.live_bytes(), bytes);
        assert_eq!(self.memtable.entries(), entries);
        let nets = KEYS.iter().filter(|key| self.net_effect(key.as_bytes()).is_some());
        assert_eq!(nets.count() as u64, entries);
    }

    /// Returns the net effect of the writes of `key` since the last flush.
    fn net_effect(&self, key: &[u8]) -> Option<EntryKind> {
        let writes = self.history[self.flushed..].iter().filter(|write| write.key == key);
        writes.fold(None, |net, write| match net {
            Some(older) => write.kind.over(older),
            None => Some(write.kind),
        })
    }

    /// Returns the value of `key` that follows from the history.
    fn model(&self, key: &[u8], snapshot: SeqNo) -> Option<Bytes> {
        let hidden_below = self.hidden_below(key, snapshot);
        let seen = self.history.iter().filter(|write| write.seq <= snapshot && write.key == key);
        let seen = seen.filter(|write| write.seq >= hidden_below);
        seen.fold(None, |value: Option<Bytes>, write| match (write.kind, value) {
            (EntryKind::Combine, Some(value)) => {
                Some(Bytes::from([&value[..], &write.value].join(&b',')))
            }
            (kind, _) => (!kind.is_tombstone()).then(|| write.value.clone()),
        })
    }

    fn hidden_below(&self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let mut deletes = self.deletes.iter().rev();
        let covers = |(range, seq): &&(KeyRange, SeqNo)| *seq <= snapshot && range.contains(key);
        deletes.find(covers).map_or(SeqNo(0), |(_, seq)| *seq)
    }

    /// Returns the range deletes as readers find them.
    fn all_range_deletes(&self) -> RangeDeletes {
        let readers = Readers { visible: SeqNo(0), snapshots: &[] };
        let mut all = self.range_deletes.clone();
        all.add(&self.memtable.range_deletes(), &readers);
        all
    }

    fn point_read(&self, key: &[u8], snapshot: Option<SeqNo>) -> Option<Bytes> {
        let version = match snapshot {
            Some(snapshot) => self.memtable.get(key, snapshot),
            None => self.memtable.get_latest(key, &self.visible),
        };
        let snapshot = snapshot.unwrap_or(self.visible_seq());
        let hidden_below = self.all_range_deletes().newest_at(key, snapshot);
        let mut stack = Stack::default().above(hidden_below);
        self.memtable.push_on(&mut stack, key, || snapshot);
        if let Some(version) = version.filter(|version| version.kind != EntryKind::Combine) {
            let FoundVersion { kind, value, seq } = version;
            assert!(stack.is_whole());
            let expected = (!kind.is_tombstone() && seq >= hidden_below).then_some(value);
            assert_eq!(stack.combine(key, None).unwrap(), expected);
            return expected;
        }
        let entries = self.runs.iter().flatten();
        let seen = entries.filter(|entry| entry.key == key && entry.seq <= snapshot);
        for entry in seen {
            if stack.is_whole() || stack.push(entry.seq, entry.kind, entry.value.clone()) {
                break;
            }
        }
        stack.combine(key, Some(&*join())).unwrap()
    }

    fn scan(&self, snapshot: SeqNo) -> VisibleIter<MergingCursor> {
        let mut sources: Vec<Box<dyn Cursor>> = vec![Box::new(self.memtable.cursor())];
        for run in &self.runs {
            sources.push(Box::new(VecCursor::new(run.clone())));
        }
        let merging = MergingCursor::new(sources);
        VisibleIter::new(merging, snapshot, Bound::Unbounded, Bound::Unbounded)
            .combining(join())
            .hiding(Hidden::new(self.range_deletes.clone(), self.memtable.range_deletes()))
    }

    fn check_reads(&self) {
        let visible = self.visible_seq();
        for key in KEYS.map(str::as_bytes) {
            assert_eq!(self.point_read(key, None), self.model(key, visible));
            for &snapshot in &self.snapshots {
                let found = self.point_read(key, Some(snapshot));
                assert_eq!(found, self.model(key, snapshot), "{key:?} at {snapshot}");
            }
        }
        for &snapshot in self.snapshots.iter().chain([&visible]) {
            let present = |key: &'static str| {
                let value = self.model(key.as_bytes(), snapshot)?;
                Some((Bytes::from(key), value.clone()))
            };
            let expected: Vec<_> = KEYS.into_iter().filter_map(present).collect();
            let forward: Vec<_> = self.scan(snapshot).map(|found| found.unwrap()).collect();
            assert_eq!(forward, expected);
            let backward: Vec<_> = self.scan(snapshot).rev().map(|found| found.unwrap()).collect();
            assert!(backward.iter().rev().eq(&expected));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn merges_change_no_answer(steps in vec(step(), 1..80)) {
        let mut miniature = Miniature::default();
        for step in &steps {
            miniature.take(step);
            miniature.check_reads();
        }
        miniature.check_sizes();
    }

    /// Without snapshots and without older runs, only the entries that a user sees are left.
    #[test]
    fn a_merge_of_everything_leaves_the_present_values_alone(steps in vec(step(), 1..80)) {
        let mut miniature = Miniature::default();
        steps.iter().for_each(|step| miniature.take(step));
        miniature.snapshots.clear();
        miniature.flush();
        miniature.merge(0, miniature.runs.len(), true);
        let entries = miniature.runs[0].iter();
        let present: Vec<_> =
            entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let seen: Vec<_> = miniature.scan(SeqNo::MAX).map(|found| found.unwrap()).collect();
        prop_assert_eq!(present, seen);
    }
}

fn fold_one_key(kinds: &[EntryKind], snapshots: &[u64]) -> (Vec<(u64, EntryKind)>, FoldCounts) {
    let entry = |(i, kind): (usize, &EntryKind)| Owned::put(b"k", i as u64 + 1).with(*kind);
    let cursor = VecCursor::new(kinds.iter().enumerate().map(entry).collect());
    let snapshots = snapshots.iter().copied().map(SeqNo).collect();
    let mut fold = Fold::new(cursor, snapshots, |_: &[u8]| false).unwrap();
    let mut output = Vec::new();
    while let Some(entry) = fold.next_entry().unwrap() {
        output.push((entry.seq.0, entry.kind));
    }
    (output, fold.counts())
}

#[test]
fn snapshot_keeps_its_version() {
    use EntryKind::Put;
    let (output, counts) = fold_one_key(&[Put; 5], &[4, 1]);
    assert_eq!(output, [(5, Put), (4, Put), (1, Put)]);
    assert_eq!(counts.superseded, 2);
}

#[test]
fn pair_vanishes_only_if_no_snapshot_lies_between() {
    use EntryKind::{Insert, Remove};
    let (output, counts) = fold_one_key(&[Insert, Remove], &[]);
    assert_eq!((output.len(), counts.pairs_cancelled), (0, 1));
    assert_eq!(counts.dropped_below, SeqNo(2));
    let (output, counts) = fold_one_key(&[Insert, Remove], &[1]);
    assert_eq!((output.len(), counts.pairs_cancelled), (2, 0));
    let (output, _) = fold_one_key(&[Insert, Remove], &[2]);
    assert_eq!(output, []);
}

#[test]
fn tombstone_above_a_snapshot_always_stays() {
    let entries = vec![
        Owned::put(b"a", 1),
        Owned::put(b"a", 3).with(EntryKind::Delete),
        Owned::put(b"b", 2).with(EntryKind::Delete),
    ];
    let mut asked = Vec::new();
    let ask = |key: &[u8]| {
        asked.push(key.to_vec());
        true
    };
    let mut fold = Fold::new(VecCursor::new(entries), vec![SeqNo(2)], ask).unwrap();
    assert_eq!(fold.next_entry().unwrap().map(|entry| entry.seq), Some(SeqNo(3)));
    assert_eq!(fold.next_entry().unwrap().map(|entry| entry.seq), Some(SeqNo(1)));
    assert_eq!(fold.next_entry().unwrap(), None);
    assert_eq!(fold.counts().tombstones_dropped, 1);
    assert_eq!(fold.counts().dropped_below, SeqNo(2));
    assert_eq!(asked, [b"b"]);
}

#[test]
fn error_of_the_cursor_is_returned() {
    let entries = vec![Owned::put(b"a", 1), Owned::put(b"b", 2)];
    let cursor = VecCursor::new(entries).failing_after(2);
    let mut fold = Fold::new(cursor, Vec::new(), |_: &[u8]| true).unwrap();
    assert!(fold.next_entry().unwrap().is_some());
    assert!(fold.next_entry().is_err());
}

fn combines(values: &[(EntryKind, &'static str)], bottom: bool) -> Vec<(u64, EntryKind, String)> {
    let entry = |(i, (kind, value)): (usize, &(EntryKind, &'static str))| Owned {
        value: Bytes::from_static(value.as_bytes()),
        ..Owned::put(b"k", i as u64 + 1).with(*kind)
    };
    let cursor = VecCursor::new(values.iter().enumerate().map(entry).collect());
    let fold = Fold::new(cursor, Vec::new(), |_: &[u8]| bottom).unwrap();
    let mut fold = fold.combining(Some(Operators::for_memory(join())));
    let mut output = Vec::new();
    while let Some(entry) = fold.next_entry().unwrap() {
        let value = String::from_utf8(entry.value.to_vec()).unwrap();
        output.push((entry.seq.0, entry.kind, value));
    }
    output
}

#[test]
fn combines_become_a_value_only_if_all_that_they_lie_on_is_met() {
    use EntryKind::{Combine, Delete, Insert, Put};
    let stack = [(Combine, "a"), (Combine, "b"), (Combine, "c.")];
    assert_eq!(combines(&stack, false), [(3, Combine, "c.".into()), (2, Combine, "a,b".into())]);
    assert_eq!(combines(&stack, true), [(3, Put, "a,b,c.".into())]);
    for (below, value, kind) in [(Put, "v", Put), (Insert, "v", Insert), (Delete, "", Put)] {
        let written = combines(&[&[(below, value)], &stack[..]].concat(), false);
        let joined = if value.is_empty() { "a,b,c.".into() } else { format!("{value},a,b,c.") };
        assert_eq!(written, [(4, kind, joined)]);
    }
}

/// What broke: a merge failed because an operator did, and so did each later one.
#[test]
fn fold_keeps_what_the_operator_fails_on() {
    use EntryKind::{Combine, Put};
    let stack = [(Put, "v"), (Combine, "!"), (Combine, "b")];
    let kept = [(3, Combine, "!,b".into()), (1, Put, "v".into())];
    assert_eq!(combines(&stack, false), kept);
    let stack = [(Put, "v"), (Combine, "a."), (Combine, "!"), (Combine, "b.")];
    let kept = ["b.", "!", "a.", "v"];
    assert!(combines(&stack, true).iter().map(|(_, _, value)| value).eq(kept));
    let entry = Owned::put(b"k", 1).with(Combine);
    let broken = Owned { value: Bytes::from_static(b"?"), ..entry };
    let fold = Fold::new(VecCursor::new(vec![broken]), Vec::new(), |_: &[u8]| true).unwrap();
    let mut fold = fold.combining(Some(Operators::for_merges(join())));
    let entry = fold.next_entry().unwrap().unwrap();
    assert_eq!((entry.kind, entry.value), (Combine, &b"?"[..]));
    assert!(fold.next_entry().unwrap().is_none());
}
