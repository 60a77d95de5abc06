use super::chunks::CHUNK_MAX;
use super::*;
use crate::key::Key;
use crate::profile::ProfilePoint;
use crate::range::KeyRange;
use crate::size::Size;
use crate::slice::{Table, TableId};
use proptest::collection::vec;
use proptest::prelude::*;

/// Keys that mostly begin with the same bytes.
fn key(index: usize) -> Key {
    Key::from(format!("{index:010}"))
}

/// Returns a slice of so many cells that begins at key `start`.
fn slice(start: usize, cells: usize) -> Slice {
    let point = |cell: usize| ProfilePoint {
        key: key(start + cell),
        below: Size::of_bytes(cell as u64),
        after: None,
    };
    Slice::whole(Table {
        id: TableId(start as u64),
        range: KeyRange { start: key(start), end: Some(key(start + cells)) },
        size: Size::of_bytes(cells as u64),
        profile: (1..cells).map(point).collect(),
        ..Table::default()
    })
}

fn cells(slices: &[Slice]) -> u64 {
    slices.iter().map(Slice::cell_count).sum()
}

/// Whether `view` shows just what `slices` are, whichever way one looks.
fn compare(view: Slices<'_>, slices: &[Slice]) {
    assert_eq!(view.len(), slices.len());
    assert_eq!(view.is_empty(), slices.is_empty());
    assert_eq!(view.first(), slices.first());
    assert_eq!(view.last(), slices.last());
    assert_eq!(view.get(slices.len()), None);
    assert!(view.iter().eq(slices));
    assert!(view.iter().rev().eq(slices.iter().rev()));
    assert!(view.chunks().flatten().eq(slices));
    assert!(view.chunks().all(|chunk| !chunk.is_empty()));
    assert_eq!(view.iter().len(), slices.len());
    let mut walk = view.iter();
    let mut plain = slices.iter();
    for _ in 0..slices.len() {
        assert_eq!((walk.next(), walk.next_back()), (plain.next(), plain.next_back()));
    }
    for index in (0..slices.len()).step_by(7) {
        assert_eq!(view.at(index), &slices[index]);
        let start = &slices[index].range().start;
        assert_eq!(view.partition_point(|slice| slice.range().start < *start), index);
    }
    assert_eq!(view.partition_point(|_| true), slices.len());
}

/// Checks that borders are found among the cells of `list`, made from `slices`, wherever the search
/// begins and ends.
fn compare_searches(list: &SliceList, slices: &[Slice]) {
    let starts = slices.iter().step_by(slices.len() / 40 + 1).map(|slice| slice.table().id.0);
    let mut numbers: Vec<usize> =
        starts.flat_map(|start| (start as usize).saturating_sub(1)..start as usize + 4).collect();
    numbers.sort_unstable();
    let index = CellIndex::new(list, cells(slices));
    let [none, all] = index.ends();
    let mut last = none;
    for key in numbers.into_iter().map(key) {
        let place = index.seek(&key, [last, all]);
        assert_eq!(index.seek(&key, [none, all]), place);
        assert_eq!(index.seek(&key, [none, place]), place);
        let all_cells = || slices.iter().flat_map(Slice::cells);
        let started = all_cells().filter(|cell| cell.start < key).count();
        let ended =
            all_cells().filter(|cell| cell.end.as_ref().is_some_and(|end| *end <= key)).count();
        assert_eq!(index.cells_starting_below(&key, place), started, "{key:?}");
        assert_eq!(index.cells_ending_by(&key, place), ended, "{key:?}");
        let before = slices.iter().filter(|slice| slice.range().start < key);
        let counts: Vec<usize> = before.map(|slice| slice.cell_count() as usize).collect();
        let most = counts.iter().sum::<usize>();
        let least = most - counts.last().unwrap_or(&0);
        assert_eq!(index.rank_bounds(place), [least, most], "{key:?}");
        last = place;
    }
}

/// A change: where, how many slices go, how many come, of how many cells each.
type Step = (prop::sample::Index, usize, usize, usize);

fn step() -> impl Strategy<Value = Step> {
    let few = (any::<prop::sample::Index>(), 0..6_usize, 0..6_usize, 1..3_usize);
    let many = (any::<prop::sample::Index>(), 0..300_usize, 0..300_usize, 1..3_usize);
    prop_oneof![few, many]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_list_is_a_vector(
        len in 0..600_usize, wide in 1..3_usize, steps in vec(step(), 1..8),
        part in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        // Keys are far apart, so that there is room for others between them.
        let mut plain: Vec<Slice> = (0..len).map(|at| slice((at + 1) * 40_000, wide)).collect();
        let mut list = SliceList::new(plain.clone(), cells(&plain));
        for (at, gone, new, wide) in steps {
            let from = at.index(plain.len() + 1);
            let end = (from + gone).min(plain.len());
            let below = from.checked_sub(1).map_or(0, |last| plain[last].table().id.0 + 2);
            let next = plain.get(end).map_or(u64::MAX, |next| next.table().id.0);
            let wide_starts = (0..new).map(|at| below as usize + 2 * at);
            let starts = wide_starts.take_while(|start| (*start as u64) + 2 <= next);
            let new: Vec<Slice> = starts.map(|start| slice(start, wide)).collect();
            plain.splice(from..end, new.iter().cloned());
            let before = list.clone();
            list.splice(from..end, new, cells(&plain));
            prop_assert!(before.adds_up());
            prop_assert!(list.adds_up());
            compare(list.view(), &plain);
        }
        compare_searches(&list, &plain);
        let one = part.0.index(plain.len() + 1);
        let other = part.1.index(plain.len() + 1);
        let part = one.min(other)..one.max(other);
        compare(list.view().range(part.clone()), &plain[part.clone()]);
        compare(Slices(View::Flat(&plain)).range(part.clone()), &plain[part]);
    }
}

#[test]
fn a_change_of_many_slices_leaves_most_chunks_shared() {
    let all: Vec<Slice> = (0..10_000).map(|at| slice(at * 10, 1)).collect();
    let old = SliceList::new(all.clone(), cells(&all));
    let mut new = old.clone();
    new.splice(5000..5003, [slice(50_000, 2)], 9999);
    let old_chunks: Vec<&[Slice]> = old.view().chunks().collect();
    let is_shared = |chunk: &&[Slice]| old_chunks.iter().any(|old| std::ptr::eq(*old, *chunk));
    let shared = new.view().chunks().filter(is_shared).count();
    assert!(shared + 2 >= old_chunks.len(), "{shared} of {}", old_chunks.len());
    assert!(new.view().chunks().all(|chunk| chunk.len() <= CHUNK_MAX));
}
