//! The outcome of a plan, by sizes only.

use lsmith_tree::{
    Key, KeyRange, LevelId, MergePlan, Mode, Outcome, ProfilePoint, Run, SeqNo, Size, Slice, Table,
    TableId, Tree, key_after,
};
use std::collections::BTreeSet;

/// The most profile points of an output table.
const POINTS_MAX: usize = 16;

/// Returns the outcome of `plan` on `tree` under the assumption that no key is in two inputs, so
/// that sizes add up. The output is cut only where an input has a border or a profile point, so
/// that tables can be larger than the plan asks for.
///
/// This stands in for an interpreter if only the shape of trees matters, as in the law suite and in
/// scripts.
///
/// # Panics
/// If the tree lacks a run that the plan names: call [`check_plan`](lsmith_tree::check_plan) first.
pub fn outcome(tree: &Tree, plan: &MergePlan) -> Outcome {
    scaled_outcome(tree, plan, &mut || 1000)
}

/// An input with its run.
struct Taken<'a> {
    run: &'a Run,
    range: &'a KeyRange,
    from_memory: bool,
}

/// A part of the output between two neighbouring borders.
struct Piece {
    range: KeyRange,
    size: Size,
    /// The bytes of the inputs there, an upper bound of the bytes in `size`.
    taken_bytes: u64,
}

/// Returns the bytes of a piece of the output over a key range, given each input's bytes there.
type Join<'a> = &'a dyn Fn(&KeyRange, &[u64]) -> u64;

/// Returns what [`outcome`] returns, with the bytes of each table multiplied by the next value of
/// `per_mille`.
pub(super) fn scaled_outcome(
    tree: &Tree,
    plan: &MergePlan,
    per_mille: &mut dyn FnMut() -> u64,
) -> Outcome {
    outcome_of(tree, plan, per_mille, &|_, sizes| sizes.iter().sum())
}

/// Returns what [`outcome`] returns, if inputs share keys as `join` says.
pub(super) fn joined_outcome(tree: &Tree, plan: &MergePlan, join: Join<'_>) -> Outcome {
    outcome_of(tree, plan, &mut || 1000, join)
}

fn outcome_of(
    tree: &Tree,
    plan: &MergePlan,
    per_mille: &mut dyn FnMut() -> u64,
    join: Join<'_>,
) -> Outcome {
    let taken: Vec<Taken<'_>> = plan
        .inputs
        .iter()
        .map(|input| {
            let (level, run) = tree.run(input.run).expect("the plan was checked");
            Taken { run, range: &input.range, from_memory: level == LevelId::Memory }
        })
        .collect();
    if plan.mode == Mode::Drop {
        return Outcome::default();
    }
    if plan.mode == Mode::Move {
        let mut slices: Vec<Slice> =
            taken.iter().flat_map(|taken| taken.run.clip(taken.range)).collect();
        slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
        return Outcome { slices, ..Outcome::default() };
    }
    let mut outcome = Outcome::default();
    let cut_keys = plan.cut_keys(tree);
    let cut_bytes = plan.cut_bytes.unwrap_or(u64::MAX);
    let mut pieces = pieces(&taken, &cut_keys, &mut outcome, join);
    if plan.makes_append() {
        pieces = pieces.into_iter().flat_map(|piece| halves(piece, cut_bytes)).collect();
    }
    let entries_in = outcome.from_memory.entries + outcome.read.entries;
    let seqs = seq_bounds(&taken);
    let cuts_below = |piece: &Piece| cut_keys.partition_point(|key| *key <= piece.range.start);
    let parts = pieces.chunk_by(|left, right| cuts_below(left) == cuts_below(right));
    let tables = parts.flat_map(|part| cut(part, cut_bytes, plan.makes_append()));
    for (id, pieces) in (tree.next_table().0..).zip(tables) {
        let mut table = table(TableId(id), pieces, seqs, per_mille());
        if plan.makes_append() {
            table.root = 1;
        }
        if plan.appends_to().is_some() {
            // What was not kept is dead.
            let bytes: u64 = pieces.iter().map(|piece| piece.taken_bytes).sum();
            table.dead_bytes = bytes.saturating_sub(table.size.bytes);
        }
        outcome.written += table.size;
        outcome.slices.push(Slice::whole(table));
    }
    Outcome { entries_dropped: entries_in - outcome.written.entries, ..outcome }
}

fn pieces(
    taken: &[Taken<'_>],
    cut_keys: &[Key],
    outcome: &mut Outcome,
    join: Join<'_>,
) -> Vec<Piece> {
    let clips: Vec<Slice> = taken.iter().flat_map(|taken| taken.run.clip(taken.range)).collect();
    let mut borders: BTreeSet<Key> = BTreeSet::new();
    for clip in &clips {
        borders.insert(clip.range().start.clone());
        borders.extend(clip.range().end.clone());
        let points = clip.table().profile.iter().map(|point| &point.key);
        borders.extend(points.filter(|key| clip.range().contains(key)).cloned());
    }
    let within = |key: &&Key| taken.iter().any(|taken| taken.range.contains(key));
    borders.extend(cut_keys.iter().filter(within).cloned());
    let starts: Vec<Key> = borders.into_iter().collect();
    let ends = starts.iter().skip(1).cloned().map(Some).chain([None]);
    let ranges = starts.iter().cloned().zip(ends).map(|(start, end)| KeyRange { start, end });
    let mut pieces = Vec::new();
    for range in ranges {
        if !clips.iter().any(|clip| clip.range().overlaps(&range)) {
            continue;
        }
        let mut size = Size::default();
        let mut sizes = Vec::with_capacity(taken.len());
        for taken in taken {
            let part = taken.run.size_within(&range.intersection(taken.range));
            size += part;
            sizes.push(part.bytes);
            *if taken.from_memory { &mut outcome.from_memory } else { &mut outcome.read } += part;
        }
        let taken_bytes = size.bytes;
        size.bytes = join(&range, &sizes);
        pieces.push(Piece { range, size, taken_bytes });
    }
    pieces
}

/// Returns `piece`, or its halves if it has more than `cut_bytes` and room for two keys. So a table
/// with two keys can always be cut, as a policy that cuts append tables relies on.
fn halves(piece: Piece, cut_bytes: u64) -> Vec<Piece> {
    let middle = key_after(&piece.range.start);
    let has_room = piece.range.end.as_ref().is_some_and(|end| middle < *end);
    if piece.size.bytes <= cut_bytes || !has_room {
        return vec![piece];
    }
    let Size { bytes, entries, tombstones } = piece.size;
    let taken_bytes = piece.taken_bytes / 2;
    let first = Size { bytes: bytes / 2, entries: entries / 2, tombstones: tombstones / 2 };
    let KeyRange { start, end } = piece.range;
    vec![
        Piece { range: KeyRange { start, end: Some(middle.clone()) }, size: first, taken_bytes },
        Piece {
            range: KeyRange { start: middle, end },
            size: piece.size - first,
            taken_bytes: piece.taken_bytes - taken_bytes,
        },
    ]
}

/// Groups pieces into tables of at least `bytes`, or into append tables.
fn cut(pieces: &[Piece], bytes: u64, trees: bool) -> impl Iterator<Item = &[Piece]> {
    let mut rest = pieces;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let mut is_end = |piece: &Piece| {
            let before = sum;
            sum += piece.size.bytes;
            match trees {
                // No piece is empty, though its size may be rounded to nothing.
                true => MergePlan::ends_append(before.max(1), piece.size.bytes, bytes),
                false => before >= bytes,
            }
        };
        rest.first().map(&mut is_end);
        let end = rest.iter().skip(1).position(is_end);
        let (table, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = after;
        (!table.is_empty()).then_some(table)
    })
}

fn table(id: TableId, pieces: &[Piece], seqs: (SeqNo, SeqNo), per_mille: u64) -> Table {
    let scale = |size: Size| Size {
        bytes: (u128::from(size.bytes) * u128::from(per_mille) / 1000) as u64,
        ..size
    };
    let step = pieces.len().div_ceil(POINTS_MAX);
    let mut size = Size::default();
    let mut profile = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 && index % step == 0 {
            profile.push(ProfilePoint {
                key: piece.range.start.clone(),
                below: scale(size),
                after: None,
            });
        }
        size += piece.size;
    }
    let range = pieces.iter().fold(KeyRange::new("", ""), |hull, piece| hull.hull(&piece.range));
    let (seq_min, seq_max) = seqs;
    Table {
        id,
        range,
        size: scale(size),
        seq_min,
        seq_max,
        profile: profile.into(),
        ..Table::default()
    }
}

fn seq_bounds(taken: &[Taken<'_>]) -> (SeqNo, SeqNo) {
    let tables = || {
        taken.iter().flat_map(|taken| taken.run.overlapping(taken.range)).map(|slice| slice.table())
    };
    let min = tables().map(|table| table.seq_min).min();
    let max = tables().map(|table| table.seq_max).max();
    (min.unwrap_or_default(), max.unwrap_or_default())
}
