//! Tables of segments.

use super::FluidWorkload;
use super::amount::Amount;
use super::draw;
use super::merger::Made;
use super::place::{PLACES, key, place, width};
use super::segment::{Segment, clip, entries};
use lsmith_tree::{KeyRange, PROFILE_STEP_BYTES, ProfilePoint, SeqNo, Size, Slice, Table, TableId};
use lsmith_workload::Rng;
use std::sync::Arc;

/// A table: its metadata, and its segments.
#[derive(Clone, Debug)]
pub(super) struct FluidTable {
    pub(super) table: Arc<Table>,
    /// The segments in key order, not empty. The table covers all of them, although its least key
    /// is expected half a gap behind their start and its greatest key half a gap before their end.
    /// So no two tables share a place.
    segments: Vec<Segment>,
}

impl FluidTable {
    /// Returns the segments that are visible through `slice`.
    pub(super) fn within(&self, slice: &Slice) -> Vec<Segment> {
        if slice.is_whole() {
            return self.segments.clone();
        }
        let start = place(&slice.range().start);
        let end = slice.range().end.as_ref().map_or(PLACES, |end| place(end));
        clip(&self.segments, start, end)
    }
}

/// The profile points of a table.
#[derive(Clone, Debug)]
pub(super) enum ProfilePoints {
    /// One point per step of bytes.
    Steps,
    /// One point behind each of these blocks, except the last.
    Blocks(Vec<Made>),
}

/// A point in a sequence of segments.
#[derive(Clone, Copy, Debug)]
struct Point {
    place: u64,
    /// The place behind the last key below the point, if known.
    after: Option<u64>,
    below: Size,
}

/// Walks along segments and adds up their amounts.
struct Walk<'a> {
    segments: &'a [Segment],
    /// The amount before the current segment.
    passed: Amount,
}

impl<'a> Walk<'a> {
    fn new(segments: &'a [Segment]) -> Walk<'a> {
        Walk { segments, passed: Amount::default() }
    }

    /// Returns the point below which the amount, measured by `unit`, is `target`; `None` behind the
    /// last segment. `target` must not fall between calls.
    fn point(&mut self, target: f64, unit: fn(Amount) -> f64) -> Option<Point> {
        loop {
            let segment = self.segments.first()?;
            let all = segment.amount();
            let missing = target - unit(self.passed);
            if missing < unit(all) {
                let entries = all.entries * (missing / unit(all)).max(0.0);
                let mut below = self.passed;
                below += segment.amount_of(entries);
                return Some(Point {
                    place: segment.place_of(entries),
                    after: None,
                    below: below.rounded(),
                });
            }
            self.passed += all;
            self.segments = &self.segments[1..];
        }
    }
}

impl Walk<'_> {
    /// Returns the entries below a place, which must not fall between calls.
    fn entries_below(&mut self, place: u64) -> f64 {
        while let Some(segment) = self.segments.first() {
            if place <= segment.end {
                let part = segment.clip(0, place).map_or(0.0, |part| part.entries());
                return self.passed.entries + part;
            }
            self.passed.entries += segment.entries();
            self.segments = &self.segments[1..];
        }
        self.passed.entries
    }
}

/// Returns the total expected amount of `segments`.
pub(super) fn amount(segments: &[Segment]) -> Amount {
    let mut sum = Amount::default();
    for segment in segments {
        sum += segment.amount();
    }
    sum
}

/// Returns the parts of `segments` between `places`, which ascend, without empty parts.
pub(super) fn split_at(segments: &[Segment], places: &[u64]) -> Vec<Vec<Segment>> {
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([u64::MAX]);
    let mut first = 0;
    let parts = starts.zip(ends).map(|(start, end)| {
        first += segments[first..].iter().take_while(|segment| segment.end <= start).count();
        let reached = segments[first..].iter().take_while(|segment| segment.start < end);
        reached.filter_map(|segment| segment.clip(start, end)).collect::<Vec<_>>()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Cuts `segments` into tables of whole entries that reach `cut_bytes`. The last table may be
/// smaller; a rest of less than half an entry joins the table before.
pub(super) fn cut(segments: &[Segment], cut_bytes: u64) -> Vec<Vec<Segment>> {
    let mut tables: Vec<Vec<Segment>> = Vec::new();
    let mut open: Vec<Segment> = Vec::new();
    let mut open_bytes = 0.0;
    for segment in segments {
        let mut rest = *segment;
        let entry_bytes = segment.entry_bytes();
        let full_bytes = (cut_bytes as f64 / entry_bytes).ceil() * entry_bytes;
        loop {
            let bytes = rest.entries() * entry_bytes;
            if open_bytes + bytes <= full_bytes {
                open_bytes += bytes;
                open.push(rest);
                break;
            }
            let border = rest.place_of((full_bytes - open_bytes) / entry_bytes);
            open.extend(rest.clip(0, border));
            tables.push(std::mem::take(&mut open));
            open_bytes = 0.0;
            let Some(behind) = rest.clip(border, u64::MAX) else { break };
            rest = behind;
        }
    }
    match tables.last_mut() {
        Some(last) if entries(&open) < 0.5 => last.extend(open),
        _ => tables.push(open),
    }
    tables.retain(|table| !table.is_empty());
    tables
}

/// The segments and the size of a new table.
#[derive(Debug)]
pub(super) struct NewTable<'a> {
    pub(super) id: TableId,
    /// The segments, at least one.
    pub(super) segments: Vec<Segment>,
    /// The size of the table.
    pub(super) size: Size,
    pub(super) points: &'a ProfilePoints,
}

impl NewTable<'_> {
    pub(super) fn build(self, workload: &FluidWorkload, draws: &mut Rng) -> FluidTable {
        let start = self.segments[0].start;
        let end = self.segments[self.segments.len() - 1].end;
        let from = self.segments.iter().map(|segment| segment.from).fold(f64::INFINITY, f64::min);
        let until = self.segments.iter().map(|segment| segment.until).fold(0.0, f64::max);
        // The last of all writes is in another place, unless the table covers the whole key space.
        let last = if workload.is_swept() {
            until
        } else {
            until + (1.0 - draws.unit()).ln() * (1.0 / width(start, end) - 1.0)
        };
        let mut table = Table {
            id: self.id,
            range: KeyRange::new(key(start), key(end)),
            size: self.size,
            seq_min: SeqNo(from as u64 + 1),
            seq_max: SeqNo(last.max(from + 1.0) as u64),
            ..Table::default()
        };
        table.profile = match self.points {
            ProfilePoints::Steps => steps(&self.segments, &table).into(),
            ProfilePoints::Blocks(blocks) => {
                block_borders(&self.segments, &table, blocks, draws).into()
            }
        };
        FluidTable { table: Arc::new(table), segments: self.segments }
    }
}

fn steps(segments: &[Segment], table: &Table) -> Vec<ProfilePoint> {
    let mut walk = Walk::new(segments);
    // A step ends with a whole entry, and another entry follows. Otherwise a memtable that exceeds
    // a table by a part of an entry would have that part cut off.
    let entry_bytes = table.size.bytes as f64 / table.size.entries.max(1) as f64;
    let steps = (1..).map(|step| (step * PROFILE_STEP_BYTES) as f64 + entry_bytes / 2.0);
    let all = steps.map_while(|bytes| walk.point(bytes, |passed| passed.bytes));
    let last = table.size.bytes as f64 - entry_bytes;
    let points = all.take_while(|point| point.below.bytes as f64 <= last);
    profile(points, table)
}

/// Returns the borders of blocks. Kept blocks stay in place. The widths of the blocks between them
/// are drawn at random, so that there are narrow and wide ones.
fn block_borders(
    segments: &[Segment],
    table: &Table,
    blocks: &[Made],
    draws: &mut Rng,
) -> Vec<ProfilePoint> {
    let mut walk = Walk::new(segments);
    let mut ahead = Walk::new(segments);
    let mut start = place(&table.range.start);
    let end = table.range.end.as_ref().map_or(PLACES, |end| place(end));
    // The first place of each block, and the place behind its last key.
    let mut places = Vec::with_capacity(blocks.len());
    for stretch in blocks.chunk_by(|left, right| left.kept_at.is_none() && right.kept_at.is_none())
    {
        if let Some(kept_at) = stretch[0].kept_at {
            places.push(kept_at);
            start = kept_at.1;
            continue;
        }
        let next = blocks[places.len() + stretch.len()..].first();
        let stop = next.and_then(|next| next.kept_at).map_or(end, |(start, _)| start);
        let from = ahead.entries_below(start);
        let until = ahead.entries_below(stop);
        let gaps: Vec<f64> = stretch.iter().map(|block| draw::gaps(draws, block.entries)).collect();
        // There is a gap before the first key too.
        let before = draw::gaps(draws, 1);
        let scale = (until - from) / (before + gaps.iter().sum::<f64>());
        let mut place_at = |target| {
            let point = walk.point(target, |passed| passed.entries);
            point.map_or(stop, |point| point.place)
        };
        let mut passed = from + before * scale;
        let mut first = place_at(passed);
        for (block, gap) in stretch.iter().zip(gaps) {
            let last = passed + gap * scale * draw::part_before_last(draws, block.entries);
            passed += gap * scale;
            places.push((first, place_at(last)));
            first = place_at(passed);
        }
        start = stop;
    }
    profile(blocks_below(blocks, &places, table), table)
}

/// Returns the size below each block except the first.
fn blocks_below<'a>(
    blocks: &'a [Made],
    places: &'a [(u64, u64)],
    table: &Table,
) -> impl Iterator<Item = Point> + 'a {
    let per_entry = |part: u64| part as f64 / table.size.entries.max(1) as f64;
    let mean_bytes = per_entry(table.size.bytes);
    let mean_tombstones = per_entry(table.size.tombstones);
    let mut entries = 0;
    blocks.iter().zip(places.windows(2)).map(move |(block, places)| {
        entries += block.entries;
        let bytes = (entries as f64 * mean_bytes).round() as u64;
        let tombstones = (entries as f64 * mean_tombstones) as u64;
        let below = Size { bytes, entries, tombstones };
        Point { place: places[1].0, after: Some(places[0].1), below }
    })
}

/// Returns the points within `table`, strictly ascending.
fn profile(points: impl Iterator<Item = Point>, table: &Table) -> Vec<ProfilePoint> {
    let end = table.range.end.as_ref().map_or(PLACES, |end| place(end));
    let mut last = place(&table.range.start);
    let mut found: Vec<Point> = Vec::new();
    for point in points {
        if point.place <= last {
            continue;
        }
        if point.place >= end || point.below.bytes > table.size.bytes {
            break;
        }
        last = point.place;
        found.push(point);
    }
    let point = |point: &Point| ProfilePoint {
        key: key(point.place),
        below: point.below,
        after: point.after.map(key),
    };
    found.iter().map(point).collect()
}
