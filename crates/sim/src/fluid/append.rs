//! Appending expected entries to append tables.

use super::amount::Amount;
use super::content::{FluidContent, balance};
use super::joining::merge;
use super::place::{PLACES, place, width};
use super::segment::{Segment, clip};
use super::table::{amount, cut};
use super::workload::FluidWorkload;
use crate::SimError;
use lsmith_tree::{MergePlan, Outcome, ReplacedNodes, RunId, Slice, TableId, Tree};

impl FluidContent {
    /// Carries out a plan that appends to the append tables of `target`, by the rules of keyed
    /// content. Counts as read what it takes from other runs, and the expected entries of the
    /// append tables whose keys it has.
    pub(super) fn append(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        target: RunId,
    ) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let is_bottom = tree.is_bottom_for(plan).map_err(illegal)?;
        let mut outcome = Outcome::default();
        let inputs = self.sides(tree, plan, &mut outcome);
        let sides: Vec<Vec<Segment>> = inputs.into_iter().map(|side| side.segments).collect();
        let new = merge(&sides, false, &self.workload);
        let taken = plan.inputs.iter().find(|input| input.run == target);
        let tables: Vec<Slice> = match (taken, tree.run(target)) {
            (Some(input), Some((_, run))) => {
                run.overlapping(&input.range).iter().cloned().collect()
            }
            _ => Vec::new(),
        };
        let mut ids = (tree.next_table().0..).map(TableId);
        for part in parts(&new, &tables, plan.cut_bytes.unwrap_or(u64::MAX)) {
            let root = match part.table {
                Some(slice) if part.new.is_empty() => Some(slice.clone()),
                Some(slice) => self.append_to(slice, &part.new, is_bottom, &mut outcome),
                None => {
                    let id = ids.next().unwrap_or_default();
                    self.new_table(id, &part.new, is_bottom, &mut outcome)
                }
            };
            outcome.slices.extend(root);
        }
        outcome.blocks.written = outcome.written.bytes.div_ceil(self.block_bytes);
        balance(&mut outcome);
        Ok(outcome)
    }

    /// Appends `new` to the append table of `slice`. Returns the new root, or `None` if nothing is
    /// left.
    fn append_to(
        &mut self,
        slice: &Slice,
        new: &[Segment],
        is_bottom: bool,
        outcome: &mut Outcome,
    ) -> Option<Slice> {
        let before = slice.table();
        let old = self.segments([slice]);
        let mut written = written(new, is_bottom, &self.workload);
        if !is_bottom {
            written = written.minus(cancelled(new, &old, &self.workload));
        }
        // Old tombstones stay. Where there are none, new ones are dropped if nothing lies beneath.
        let replaced = ReplacedNodes::expected(before.size.entries, leaves(new, &old));
        let new = new
            .iter()
            .map(|segment| Segment { is_clean: is_bottom || segment.is_clean, ..*segment });
        let merged = merge(&[new.collect(), old], false, &self.workload);
        let size = amount(&merged).rounded();
        let met = before.size + written.rounded() - size;
        // Rounded, so that the file grows by what is written, to the byte.
        let written = size + met - before.size;
        outcome.written += written;
        outcome.read += met;
        (size.entries > 0).then(|| {
            let (root, _) = self.add_table(before.id, merged, size);
            self.set_root(&root, before.root + 1, before.dead_bytes + met.bytes + replaced.bytes())
        })
    }

    /// Returns a new append table of `new`, or `None` if nothing is left of it.
    fn new_table(
        &mut self,
        id: TableId,
        new: &[Segment],
        is_bottom: bool,
        outcome: &mut Outcome,
    ) -> Option<Slice> {
        let segments = merge(&[new.to_vec()], is_bottom, &self.workload);
        let size = amount(&segments).rounded();
        outcome.written += size;
        (size.entries > 0).then(|| {
            let (slice, _) = self.add_table(id, segments, size);
            self.set_root(&slice, 1, 0)
        })
    }
}

/// Returns the expected amount of `new` that is written, without tombstones if nothing lies
/// beneath.
fn written(new: &[Segment], is_bottom: bool, workload: &FluidWorkload) -> Amount {
    let mut sum = Amount::default();
    for segment in new {
        let density = match is_bottom && !segment.is_clean {
            true => workload.density(segment.start, segment.from, segment.until, true),
            false => segment.density,
        };
        sum += density.times(width(segment.start, segment.end));
    }
    sum
}

/// Returns the expected number of leaves with `old` entries in which a batch of `new` ones has
/// keys.
fn leaves(new: &[Segment], old: &[Segment]) -> f64 {
    let of_segment = |segment: &Segment| {
        let entries: f64 = clip(old, segment.start, segment.end).iter().map(Segment::entries).sum();
        let all = entries / ReplacedNodes::LEAF_ENTRIES as f64;
        if all > 0.0 { -all * (-segment.entries() / all).exp_m1() } else { 0.0 }
    };
    new.iter().map(of_segment).sum()
}

/// Returns the expected removes among `new` that cancel inserts among `old`, so that neither is
/// left.
fn cancelled(new: &[Segment], old: &[Segment], workload: &FluidWorkload) -> Amount {
    // The keys that were inserted and removed in an interval, per key space.
    let gone = |place: u64, from: f64, until: f64| {
        workload.keys(place, from, until) - workload.density(place, from, until, false).entries
    };
    let mut sum = Amount::default();
    for older in old {
        let met = clip(new, older.start, older.end).into_iter();
        for newer in met.filter(|newer| newer.density.tombstones > 0.0) {
            let Segment { start, from, until, density, .. } = newer;
            let each = gone(start, older.from, older.until) + gone(start, from, until);
            let both = gone(start, older.from.min(from), until.max(older.until));
            let pairs = (both - each).clamp(0.0, density.tombstones);
            let tombstones = density.minus(workload.density(start, from, until, true));
            sum += tombstones.times(pairs / density.tombstones * width(start, newer.end));
        }
    }
    sum
}

/// New segments that go to one append table: an old one, or a new one.
struct TablePart<'a> {
    table: Option<&'a Slice>,
    new: Vec<Segment>,
}

/// Divides `new` among `tables`. Segments between two append tables, or beyond them, make new
/// append tables if they fill [one part in so many](MergePlan::NEW_APPEND_PARTS) of a table of
/// `cut_bytes`.
fn parts<'a>(new: &[Segment], tables: &'a [Slice], cut_bytes: u64) -> Vec<TablePart<'a>> {
    let least = (cut_bytes / MergePlan::NEW_APPEND_PARTS).max(1) as f64;
    let is_large = |gap: &[Segment]| tables.is_empty() || amount(gap).bytes >= least;
    let start_of =
        |table: Option<&Slice>| table.map_or(u64::MAX, |table| place(&table.range().start));
    let new_tables = |gap: &[Segment], parts: &mut Vec<TablePart<'a>>| {
        parts.extend(cut_evenly(gap, cut_bytes).map(|new| TablePart { table: None, new }));
    };
    let mut parts = Vec::new();
    let mut from = 0;
    let in_front = clip(new, 0, start_of(tables.first()));
    if is_large(&in_front) {
        from = start_of(tables.first());
        new_tables(&in_front, &mut parts);
    }
    for (index, table) in tables.iter().enumerate() {
        let end = start_of(tables.get(index + 1));
        let own_end = table.range().end.as_ref().map_or(PLACES, |end| place(end)).max(from);
        let behind = clip(new, own_end, end);
        let is_new = is_large(&behind);
        let own = clip(new, from, if is_new { own_end } else { end });
        parts.push(TablePart { table: Some(table), new: own });
        if is_new {
            new_tables(&behind, &mut parts);
        }
        from = end;
    }
    parts
}

/// Cuts segments into tables of about `cut_bytes` and equal size.
fn cut_evenly(segments: &[Segment], cut_bytes: u64) -> impl Iterator<Item = Vec<Segment>> {
    let bytes = amount(segments).bytes;
    let tables = (bytes / cut_bytes.max(1) as f64).round().max(1.0);
    cut(segments, (bytes / tables).ceil() as u64).into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::place::key;
    use super::*;
    use lsmith_tree::{KeyRange, Table};

    /// New bytes in a key space of a million bytes, from one place up to another, in millionths.
    fn segment(start: u64, end: u64) -> Segment {
        let [start, end] = [start, end].map(|part| part * (PLACES / 1_000_000));
        let density = Amount { entries: 1e5, bytes: 1e6, tombstones: 0.0 };
        Segment { start, end, from: 0.0, until: 1.0, is_clean: false, density }
    }

    fn table(id: u64, start: u64, end: u64) -> Slice {
        let Segment { start, end, .. } = segment(start, end);
        let range = KeyRange::new(key(start), key(end));
        Slice::whole(Table { id: TableId(id), root: 1, range, ..Table::default() })
    }

    /// Returns the append table of each part, and the places of what goes there.
    fn divided(new: (u64, u64), tables: &[Slice]) -> Vec<(Option<u64>, u64, u64)> {
        // A gap needs 1000 bytes for an append table of its own.
        let found = parts(&[segment(new.0, new.1)], tables, 32_000);
        let part = |place: u64| (place as f64 / PLACES as f64 * 1e6).round() as u64;
        let all = found.iter().map(|found| {
            let start = found.new.first().map_or(0, |first| part(first.start));
            let end = found.new.last().map_or(0, |last| part(last.end));
            (found.table.map(|table| table.table().id.0), start, end)
        });
        all.collect()
    }

    #[test]
    fn large_gaps_make_tables_and_small_ones_go_in_front() {
        let tables = [table(1, 2000, 10_000), table(2, 10_900, 20_000), table(3, 22_000, 30_000)];
        assert_eq!(
            divided((0, 30_500), &tables),
            [
                (None, 0, 2000),
                (Some(1), 2000, 10_900),
                (Some(2), 10_900, 20_000),
                (None, 20_000, 22_000),
                (Some(3), 22_000, 30_500),
            ]
        );
        // In front of all append tables a small gap goes to the first.
        assert_eq!(divided((1500, 9000), &tables[..1]), [(Some(1), 1500, 9000)]);
        // Nothing goes to the last append table.
        assert_eq!(
            divided((3000, 11_000), &tables[..2]),
            [(Some(1), 3000, 10_900), (Some(2), 10_900, 11_000)]
        );
        assert_eq!(divided((3000, 9000), &tables[..2]), [(Some(1), 3000, 9000), (Some(2), 0, 0)]);
    }

    #[test]
    fn new_append_tables_are_equally_large() {
        let cuts = divided((0, 90_000), &[]);
        assert_eq!(cuts, [(None, 0, 30_000), (None, 30_000, 60_000), (None, 60_000, 90_000)]);
    }
}
