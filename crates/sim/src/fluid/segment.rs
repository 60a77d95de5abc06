//! Segments: parts of the key space that hold the writes of one interval of time.

use super::amount::Amount;
use super::place::{behind, width};

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
