//! Segments: parts of the key space that hold the writes of one interval of time.

use super::FluidWorkload;
use super::place::{behind, width};
use super::workload::Amount;

/// A part of the key space with the writes of one interval of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    /// The first place of the segment.
    pub(super) start: u64,
    /// The first place behind the segment.
    pub(super) end: u64,
    /// The start of the interval, as a number of writes.
    pub(super) from: f64,
    /// The end of the interval, as a number of writes.
    pub(super) until: f64,
    /// True if tombstones were dropped.
    pub(super) is_clean: bool,
    /// The expected entries and bytes of the whole key space, if it were like this segment.
    pub(super) density: Amount,
}

impl Segment {
    pub(super) fn entries(&self) -> f64 {
        self.density.entries * width(self.start, self.end)
    }

    /// Returns the expected entries and bytes of the segment.
    pub(super) fn amount(&self) -> Amount {
        self.density.times(width(self.start, self.end))
    }

    /// Returns the expected amount of `entries` entries of the segment.
    pub(super) fn amount_of(&self, entries: f64) -> Amount {
        self.density.times(entries / self.density.entries)
    }

    /// Returns the mean bytes of an entry.
    pub(super) fn entry_bytes(&self) -> f64 {
        self.density.bytes / self.density.entries
    }

    /// Returns the part of the segment within `start` and `end`.
    pub(super) fn clip(&self, start: u64, end: u64) -> Option<Segment> {
        let start = self.start.max(start);
        let end = self.end.min(end);
        (start < end).then_some(Segment { start, end, ..*self })
    }

    /// Returns the place below which `entries` entries of the segment lie.
    pub(super) fn place_of(&self, entries: f64) -> u64 {
        behind(self.start, (entries / self.density.entries).max(0.0), self.end)
    }

    /// Returns true if the segment has the same content as `last`, which ends where it starts.
    fn continues(&self, last: &Segment, workload: &FluidWorkload) -> bool {
        let is_same = (last.from, last.until) == (self.from, self.until);
        last.end == self.start
            && last.is_clean == self.is_clean
            && (workload.is_swept() || is_same && !workload.is_border(self.start))
    }
}

/// Returns the expected number of entries of `segments`.
pub(super) fn entries(segments: &[Segment]) -> f64 {
    segments.iter().map(Segment::entries).sum()
}

/// Returns the parts of `segments`, which are in key order, within `start` and `end`.
pub(super) fn clip(segments: &[Segment], start: u64, end: u64) -> Vec<Segment> {
    let from = segments.partition_point(|segment| segment.end <= start);
    segments[from..].iter().map_while(|segment| segment.clip(start, end)).collect()
}

/// Returns the segments of the merge of `sides`, each in key order. If `is_bottom` is true,
/// tombstones are dropped.
pub(super) fn merge(
    sides: &[Vec<Segment>],
    is_bottom: bool,
    workload: &FluidWorkload,
) -> Vec<Segment> {
    let all = sides.iter().flatten();
    let mut borders: Vec<u64> = all.flat_map(|segment| [segment.start, segment.end]).collect();
    borders.sort_unstable();
    borders.dedup();
    let mut next = vec![0; sides.len()];
    let mut merged: Vec<Segment> = Vec::with_capacity(borders.len());
    for pair in borders.windows(2) {
        let start = pair[0];
        let end = pair[1];
        let mut both: Option<Segment> = None;
        for (side, next) in sides.iter().zip(&mut next) {
            while side.get(*next).is_some_and(|segment| segment.end <= start) {
                *next += 1;
            }
            let Some(segment) = side.get(*next).filter(|segment| segment.start <= start) else {
                continue;
            };
            let joined = both.map_or(*segment, |both| Segment {
                from: both.from.min(segment.from),
                until: both.until.max(segment.until),
                ..*segment
            });
            both = Some(joined);
        }
        let Some(segment) = both else { continue };
        let segment = Segment { start, end, is_clean: is_bottom || segment.is_clean, ..segment };
        match merged.last_mut() {
            Some(last) if segment.continues(last, workload) => {
                last.end = end;
                last.from = last.from.min(segment.from);
                last.until = last.until.max(segment.until);
            }
            _ => {
                let density =
                    workload.density(start, segment.from, segment.until, segment.is_clean);
                // All entries may have cancelled each other out.
                if density.entries > 0.0 {
                    merged.push(Segment { density, ..segment });
                }
            }
        }
    }
    merged
}
