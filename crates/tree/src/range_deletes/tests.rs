//! Range deletes are compared with a list of all range deletes.

use super::*;
use crate::key::Key;
use proptest::collection::vec;
use proptest::prelude::*;

fn range(start: u8, end: Option<u8>) -> KeyRange {
    let key = |byte: u8| Key::copy_from_slice(&[byte]);
    KeyRange { start: key(start), end: end.map(key) }
}

fn ranges() -> impl Strategy<Value = KeyRange> {
    (0..60u8, proptest::option::weighted(0.9, 0..40u8))
        .prop_map(|(start, length)| range(start, length.map(|more| start.saturating_add(more))))
}

#[derive(Clone, Debug)]
enum Step {
    DeleteRange(KeyRange),
    /// All range deletes so far become visible.
    Publish,
    TakeSnapshot,
    DropSnapshot(usize),
    /// Nothing in the range is hidden any more, by as many of the oldest range deletes.
    Forget(KeyRange, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => ranges().prop_map(Step::DeleteRange),
        4 => Just(Step::Publish),
        2 => Just(Step::TakeSnapshot),
        2 => (0..8usize).prop_map(Step::DropSnapshot),
        1 => (ranges(), 0..8usize).prop_map(|(range, count)| Step::Forget(range, count)),
    ];
    vec(step, 1..300)
}

/// Every range delete, oldest first, with its sequence number and the keys that it still counts
/// for.
#[derive(Default)]
struct Plain {
    all: Vec<(SeqNo, Vec<bool>)>,
    visible: SeqNo,
    snapshots: Vec<SeqNo>,
}

impl Plain {
    fn newest_at(&self, key: u8, at: SeqNo) -> SeqNo {
        let covers = |(seq, keys): &&(SeqNo, Vec<bool>)| *seq <= at && keys[usize::from(key)];
        self.all.iter().rev().find(covers).map_or(SeqNo(0), |(seq, _)| *seq)
    }
}

fn check(range_deletes: &RangeDeletes, plain: &Plain) {
    let mut walk = RangeDeleteWalk::new(range_deletes.clone());
    for at in plain.snapshots.iter().chain([&plain.visible]) {
        for key in 0..=120u8 {
            let expected = plain.newest_at(key, *at);
            assert_eq!(
                range_deletes.newest_at(&[key], *at),
                expected,
                "{key} at {at}: {range_deletes:?}"
            );
            let walked = walk.part_of(&[key]).map_or(SeqNo(0), |part| part.newest_at(*at));
            assert_eq!(walked, expected);
        }
    }
    let parts: Vec<&RangeDeletePart> = range_deletes.parts().collect();
    for pair in parts.windows(2) {
        assert!(pair[0].range.lies_below(&pair[1].range.start));
        let touch = pair[0].range.end.as_ref() == Some(&pair[1].range.start);
        let [left, right] = [pair[0], pair[1]];
        // Neighbours that touch are joined, unless they lie in two chunks.
        assert!(!touch || !left.is_like(right) || parts.len() > CHUNK_MAX);
    }
    for part in parts {
        assert!(!part.range.is_empty() && !part.seqs.is_empty());
        assert!(part.seqs.is_sorted_by(|newer, older| newer > older));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn every_reader_finds_the_newest_range_delete_of_a_key(steps in steps()) {
        let mut range_deletes = RangeDeletes::default();
        let mut plain = Plain::default();
        for step in steps {
            match step {
                Step::DeleteRange(range) => {
                    let seq = SeqNo(plain.all.len() as u64 + 1);
                    let Plain { visible, snapshots, .. } = &plain;
                    let readers = Readers { visible: *visible, snapshots };
                    range_deletes.delete_range(&range, seq, &readers);
                    let keys = (0..=255u8).map(|key| range.contains(&[key])).collect();
                    plain.all.push((seq, keys));
                }
                Step::Publish => plain.visible = SeqNo(plain.all.len() as u64),
                Step::TakeSnapshot => plain.snapshots.push(plain.visible),
                Step::DropSnapshot(index) => {
                    if !plain.snapshots.is_empty() {
                        plain.snapshots.swap_remove(index % plain.snapshots.len());
                    }
                }
                Step::Forget(range, count) => {
                    let upto = SeqNo(count as u64);
                    range_deletes.forget(&range, upto);
                    for (_, keys) in plain.all.iter_mut().filter(|(seq, _)| *seq <= upto) {
                        for (key, covered) in keys.iter_mut().enumerate() {
                            *covered &= !range.contains(&[key as u8]);
                        }
                    }
                }
            }
            check(&range_deletes, &plain);
        }
    }
}

/// A queue that is deleted from its start, further and further.
#[test]
fn range_deletes_that_grow_leave_two_parts() {
    let mut range_deletes = RangeDeletes::default();
    for seq in 1..1000u64 {
        let range = KeyRange { start: Key::new(), end: Some(Key::of_number(seq)) };
        let readers = Readers { visible: SeqNo(seq - 1), snapshots: &[] };
        range_deletes.delete_range(&range, SeqNo(seq), &readers);
        assert!(range_deletes.len() <= 2, "{range_deletes:?}");
        assert!(range_deletes.parts().all(|part| part.seqs.len() <= 2), "{range_deletes:?}");
    }
}

/// A change copies a chunk or two, not all parts.
#[test]
fn many_parts_lie_in_chunks_of_bounded_size() {
    let mut range_deletes = RangeDeletes::default();
    let only = |n: u64| KeyRange::new(Key::of_number(2 * n), Key::of_number(2 * n + 1));
    for n in 0..10_000 {
        // Not in order.
        let n = n * 7919 % 10_000;
        let before = range_deletes.clone();
        range_deletes.delete_range(&only(n), SeqNo(n + 1), &Readers::ANY);
        let kept = |chunk: &&Arc<Vec<RangeDeletePart>>| {
            before.chunks.iter().any(|b| Arc::ptr_eq(b, chunk))
        };
        if n % 100 == 0 {
            assert!(range_deletes.chunks.iter().filter(|chunk| !kept(chunk)).count() <= 3);
        }
    }
    assert_eq!(range_deletes.len(), 10_000);
    assert!(range_deletes.chunks.iter().all(|chunk| chunk.len() <= CHUNK_MAX));
    assert!(range_deletes.chunks.len() <= 4 * 10_000 / CHUNK_MAX);
    for n in 0..10_000 {
        assert_eq!(range_deletes.newest_at(&Key::of_number(2 * n), SeqNo::MAX), SeqNo(n + 1));
        assert_eq!(range_deletes.newest_at(&Key::of_number(2 * n + 1), SeqNo::MAX), SeqNo(0));
    }
}

#[test]
fn first_write_into_a_part_is_noted_until_it_is_deleted_again() {
    let mut range_deletes = RangeDeletes::default();
    let written = |range_deletes: &RangeDeletes, key: u8| {
        range_deletes.part_of(&[key]).map(|part| part.written.0)
    };
    range_deletes.delete_range(&range(10, Some(30)), SeqNo(5), &Readers::ANY);
    assert!(
        !range_deletes.note_write(&[30], SeqNo(6)) && !range_deletes.note_write(&[9], SeqNo(7))
    );
    assert!(
        range_deletes.note_write(&[20], SeqNo(8)) && !range_deletes.note_write(&[21], SeqNo(9))
    );
    assert_eq!(written(&range_deletes, 10), Some(8));
    range_deletes.delete_range(&range(15, Some(40)), SeqNo(10), &Readers::ANY);
    assert_eq!([10, 15, 39].map(|key| written(&range_deletes, key)), [Some(8), Some(0), Some(0)]);
    assert!(range_deletes.without_writes().parts().all(|part| part.written == SeqNo(0)));
    assert_eq!(range_deletes.without_writes().newest_at(&[10], SeqNo::MAX), SeqNo(5));
}
