//! A run whose tables are open.
//!
//! If merges keep blocks, a run has tens of thousands of slices, and a plan changes only the slices
//! in a short key range. The trees before and after the plan share the other slices, in
//! [chunks](lsmith_tree::Slices::chunks). An open run has one open chunk for each chunk of its run,
//! so versions share as much as trees do.
//!
//! A *part* is here a slice whose table may have keys in its range, as far as the profile knows.

use super::TableHandle;
use lsmith_storage::format::key_prefix;
use lsmith_storage::table::ReadTable;
use lsmith_tree::{Key, KeyRange, Run, Slice, TableId};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// A run whose tables are open.
#[derive(Debug)]
pub(crate) struct OpenRun {
    run: Arc<Run>,
    chunks: Vec<Arc<Chunk>>,
    /// For each chunk, the number of parts in all chunks before it.
    starts: Vec<usize>,
    /// The number of parts.
    len: usize,
    /// True if a part is of an append table.
    has_append: bool,
    /// True if the filter of a part's table holds prefixes.
    has_prefixes: bool,
}

/// The slices of a chunk of the run.
#[derive(Debug)]
struct Chunk {
    /// True if a part is of an append table.
    has_append: bool,
    /// True if the filter of a part's table holds prefixes.
    has_prefixes: bool,
    /// From the start of the first slice to the end of the last.
    hull: KeyRange,
    /// The parts, in key order.
    parts: Vec<OpenSlice>,
    /// The table of each part. They lie close together, because searches often read all of them.
    ids: Vec<TableId>,
    /// The prefix of the start of each part, held here for the same reason.
    prefixes: Vec<u64>,
}

/// A slice whose table is open.
#[derive(Debug)]
pub(crate) struct OpenSlice {
    /// The range of the slice, without ends where the table is known to have no keys. Blocks
    /// outside of it are not needed.
    range: KeyRange,
    /// True if the table may have entries outside of the range.
    cut: bool,
    id: TableId,
    table: Arc<TableHandle>,
}

impl Chunk {
    /// Returns a chunk of `slices`, at least one. `find` returns the table of a slice.
    fn new(slices: &[Slice], find: &impl Fn(&Slice) -> Arc<TableHandle>) -> Chunk {
        let open = |slice: &Slice| OpenSlice {
            range: slice.filled(),
            cut: !slice.is_whole(),
            id: slice.table().id,
            table: find(slice),
        };
        let first = slices[0].range();
        let last = slices[slices.len() - 1].range();
        let parts: Vec<_> = slices.iter().map(open).filter(|part| !part.range.is_empty()).collect();
        Chunk {
            has_append: parts.iter().any(|part| part.table.table().as_append().is_some()),
            has_prefixes: parts.iter().any(|part| part.table.table().facts().prefix_bytes > 0),
            hull: KeyRange { start: first.start.clone(), end: last.end.clone() },
            ids: parts.iter().map(|part| part.id).collect(),
            prefixes: parts.iter().map(|part| part.range.start.prefix()).collect(),
            parts,
        }
    }

    /// Returns the number of parts that start at or below `key`.
    fn starts_at_or_below(&self, key: &[u8]) -> usize {
        let prefix = key_prefix(key);
        let below = self.prefixes.partition_point(|start| *start < prefix);
        if self.prefixes.get(below) != Some(&prefix) {
            return below;
        }
        let ties = self.prefixes[below..].partition_point(|start| *start == prefix);
        let tied = &self.parts[below..below + ties];
        below + tied.partition_point(|part| *part.range.start <= *key)
    }
}

impl OpenRun {
    /// Opens `run`. `find` returns the table of a slice. Shares the chunks that `before`, an older
    /// version of the run, has in common with it.
    pub(crate) fn new(
        run: &Arc<Run>,
        before: Option<&OpenRun>,
        find: impl Fn(&Slice) -> Arc<TableHandle>,
    ) -> OpenRun {
        // Slices in the same memory are the same slices, because `before` holds its run.
        let mut known = FxHashMap::<*const Slice, &Arc<Chunk>>::default();
        if let Some(before) = before {
            let slices = before.run.slices().chunks().map(<[Slice]>::as_ptr);
            known.reserve(before.chunks.len());
            known.extend(slices.zip(&before.chunks));
        }
        let open = |slices: &[Slice]| match known.get(&slices.as_ptr()) {
            Some(chunk) => Arc::clone(chunk),
            None => Arc::new(Chunk::new(slices, &find)),
        };
        let chunks: Vec<_> = run.slices().chunks().map(open).collect();
        let mut len = 0;
        let each_start = chunks.iter().map(|chunk| {
            let start = len;
            len += chunk.parts.len();
            start
        });
        let starts = each_start.collect();
        let has_append = chunks.iter().any(|chunk| chunk.has_append);
        let has_prefixes = chunks.iter().any(|chunk| chunk.has_prefixes);
        let open = OpenRun { run: Arc::clone(run), chunks, starts, len, has_append, has_prefixes };
        debug_assert!(open.matches_run(), "shared chunks have the slices of the run");
        open
    }

    /// Returns true if the parts agree with the slices of the run.
    fn matches_run(&self) -> bool {
        let of = |slice: &Slice| (slice.table().filled(slice.range().clone()), slice.table().id);
        let slices = self.run.slices().iter().map(of).filter(|(range, _)| !range.is_empty());
        slices.eq(self.slices().map(|part| (part.range.clone(), part.id)))
    }

    /// Returns true if every slice is a part: none is known to be empty.
    pub(crate) fn shows_all(&self) -> bool {
        self.len == self.run.slices().len()
    }

    /// Returns true if the run has append tables.
    pub(super) fn has_append(&self) -> bool {
        self.has_append
    }

    /// Returns true if the filter of a part's table holds prefixes.
    pub(super) fn has_prefixes(&self) -> bool {
        self.has_prefixes
    }

    /// Returns the run.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Returns the table whose part covers `key`, if there is one.
    #[inline]
    pub(crate) fn table_of(&self, key: &[u8]) -> Option<&Arc<TableHandle>> {
        let (chunk, after) = self.locate(key);
        let part = &self.chunks.get(chunk)?.parts[after.checked_sub(1)?];
        part.ends_above(key).then_some(&part.table)
    }

    /// Returns the number of parts that lie below `key`.
    pub(super) fn parts_below(&self, key: &[u8]) -> usize {
        let (chunk, after) = self.locate(key);
        let Some(last) = after.checked_sub(1) else {
            // All parts of earlier chunks lie below `key`.
            return self.starts.get(chunk).copied().unwrap_or_default();
        };
        let ends_above = self.chunks[chunk].parts[last].ends_above(key);
        self.starts[chunk] + if ends_above { last } else { after }
    }

    /// Returns the index of the chunk of `key`, and the number of its parts that start at or below
    /// `key`.
    #[inline]
    fn locate(&self, key: &[u8]) -> (usize, usize) {
        let chunk = match &self.chunks[..] {
            [_] => 0,
            chunks => {
                let after = chunks.partition_point(|chunk| *chunk.hull.start <= *key);
                after.saturating_sub(1)
            }
        };
        (chunk, self.chunks.get(chunk).map_or(0, |chunk| chunk.starts_at_or_below(key)))
    }

    /// Returns the indexes of the parts that overlap `range`.
    pub(super) fn overlap(&self, range: &KeyRange) -> Range<usize> {
        if range.is_all() {
            return 0..self.len;
        }
        let chunk = self.chunks.partition_point(|chunk| chunk.hull.lies_below(&range.start));
        let from = self.chunks.get(chunk).map_or(self.len, |found| {
            let below = |part: &OpenSlice| part.range.lies_below(&range.start);
            self.starts[chunk] + found.parts.partition_point(below)
        });
        let end_key = range.end.as_ref();
        let chunks = self.chunks.partition_point(|chunk| is_below(&chunk.hull.start, end_key));
        let end = chunks.checked_sub(1).map_or(0, |chunk| {
            let begins = |part: &OpenSlice| is_below(&part.range.start, end_key);
            self.starts[chunk] + self.chunks[chunk].parts.partition_point(begins)
        });
        from..end.max(from)
    }

    /// Returns the part at `index`.
    pub(super) fn part(&self, index: usize) -> &OpenSlice {
        if let [chunk] = &self.chunks[..] {
            return &chunk.parts[index];
        }
        let chunk = self.starts.partition_point(|start| *start <= index) - 1;
        &self.chunks[chunk].parts[index - self.starts[chunk]]
    }

    /// Returns the parts that overlap `range`, in key order.
    pub(crate) fn overlapping(
        &self,
        range: &KeyRange,
    ) -> impl DoubleEndedIterator<Item = &OpenSlice> {
        self.overlap(range).map(|index| self.part(index))
    }

    /// Returns the parts whose table is `wanted`, in key order.
    pub(super) fn slices_of(
        &self,
        wanted: impl Fn(TableId) -> bool,
    ) -> impl Iterator<Item = &OpenSlice> {
        self.chunks.iter().flat_map(move |chunk| {
            let mut places = Vec::new();
            let found = |(_, id): &(usize, &TableId)| wanted(**id);
            places.extend(chunk.ids.iter().enumerate().filter(found).map(|(place, _)| place));
            places.into_iter().map(|place| &chunk.parts[place])
        })
    }

    /// Returns the slices of this run that share a key with `range`, as a run, without those whose
    /// table `leaves`.
    pub(crate) fn without(&self, range: &KeyRange, leaves: impl Fn(TableId) -> bool) -> OpenRun {
        let parts = self.overlapping(range).map(|part| (part.id, &part.table));
        let tables: FxHashMap<TableId, &Arc<TableHandle>> = parts.collect();
        let slices = self.run.overlapping(range).iter().filter(|slice| {
            // A slice without a part has no keys.
            let id = slice.table().id;
            !leaves(id) && tables.contains_key(&id)
        });
        let run = Run::new(self.run.id(), slices.cloned().collect());
        OpenRun::new(&Arc::new(run), None, |slice| Arc::clone(tables[&slice.table().id]))
    }

    /// Returns all parts, in key order.
    pub(crate) fn slices(&self) -> impl Iterator<Item = &OpenSlice> {
        self.chunks.iter().flat_map(|chunk| &chunk.parts)
    }
}

/// Returns true if `key` is below `end`, the end of a range.
fn is_below(key: &Key, end: Option<&Key>) -> bool {
    end.is_none_or(|end| key < end)
}

impl OpenSlice {
    /// Returns true if `key` is below the end of the range.
    fn ends_above(&self, key: &[u8]) -> bool {
        self.range.end.as_ref().is_none_or(|end| {
            let prefixes = key_prefix(key).cmp(&end.prefix());
            prefixes.then_with(|| key.cmp(end)).is_lt()
        })
    }

    /// Returns the range, without ends where the table is known to have no keys.
    pub(crate) fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Returns true if the table may have entries outside of the range.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the id of the table.
    pub(super) fn id(&self) -> TableId {
        self.id
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use lsmith_storage::env::MemEnv;
    use lsmith_tree::{RunId, Tree, TreeEdit, apply};

    /// Returns a table. What it holds does not matter here.
    fn table() -> Arc<TableHandle> {
        let store = Store::builder("/store").env(Arc::new(MemEnv::new())).open().unwrap();
        let keyspace = store.keyspace("default").unwrap();
        keyspace.put("key", "value").unwrap();
        keyspace.flush().unwrap();
        let version = store.engine().keyspaces.read()["default"].version.load_full();
        Arc::clone(version.runs[0].part(0).table())
    }

    fn tree(slices: usize) -> Tree {
        let slice = |index| format!("t{index}:k{index:05}..k{index:05}x 9B");
        let slices: Vec<String> = (10_000..10_000 + slices).map(slice).collect();
        format!("tree\nL0 r1[{}]", slices.join(", ")).parse().unwrap()
    }

    #[test]
    fn an_edit_opens_only_the_slices_near_it() {
        let table = table();
        let mut tree = tree(2000);
        let mut before = OpenRun::new(&tree.levels()[0].runs()[0], None, |_| Arc::clone(&table));
        for (edit, opened_max) in [
            ("edit\ntake r1 k11000..k11003\nadd r1 [t7:k11000..k11002 9B]", 300),
            ("edit\nadd r1 [t8:k10500y..k10500z 9B]\nadd r1 [t9:k11800y..k11800z 9B]", 500),
            ("edit\ntake r1 k10000..k11500", 300),
        ] {
            apply(&mut tree, &edit.parse::<TreeEdit>().unwrap()).unwrap();
            let run = tree.run(RunId(1)).unwrap().1;
            let opened = std::cell::Cell::new(0);
            let after = OpenRun::new(run, Some(&before), |_| {
                opened.set(opened.get() + 1);
                Arc::clone(&table)
            });
            assert!(opened.get() > 0 && opened.get() <= opened_max, "{edit}: {}", opened.get());
            assert!(after.matches_run());
            before = after;
        }
    }
}
