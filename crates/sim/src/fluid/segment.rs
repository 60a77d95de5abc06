//! Stretches of the key space with everything that is known of them.

use super::FluidWorkload;
use super::place::{behind, width};

/// A stretch of the key space that holds what was written in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    /// The first place.
    pub(super) start: u64,
    /// The first place behind.
    pub(super) end: u64,
    /// The first write, as a number of writes before it.
    pub(super) from: f64,
    /// The first write behind.
    pub(super) upto: f64,
    /// Whether tombstones are gone.
    pub(super) is_clean: bool,
    /// Entries that the whole key space would have.
    pub(super) density: f64,
}

impl Segment {
    pub(super) fn entries(&self) -> f64 {
        self.density * width(self.start, self.end)
    }

    /// The part within `start` and `end`.
    pub(super) fn clip(&self, start: u64, end: u64) -> Option<Segment> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        (start < end).then_some(Segment { start, end, ..*self })
    }

    /// The place below which so many entries of the segment lie.
    pub(super) fn place_of(&self, entries: f64) -> u64 {
        behind(self.start, (entries / self.density).max(0.0), self.end)
    }

    fn continues(&self, last: &Segment) -> bool {
        last.end == self.start
            && (last.from, last.upto) == (self.from, self.upto)
            && last.is_clean == self.is_clean
    }
}

/// How many entries all of `segments` hold.
pub(super) fn entries(segments: &[Segment]) -> f64 {
    segments.iter().map(Segment::entries).sum()
}

/// What a merge of `sides`, each in key order, holds. `is_bottom` is whether tombstones have
/// nothing left to hide.
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
        let (start, end) = (pair[0], pair[1]);
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
                upto: both.upto.max(segment.upto),
                ..*segment
            });
            both = Some(joined);
        }
        let Some(segment) = both else { continue };
        let segment = Segment { start, end, is_clean: is_bottom || segment.is_clean, ..segment };
        match merged.last_mut() {
            Some(last) if segment.continues(last) => last.end = end,
            _ => {
                let density = workload.density(segment.from, segment.upto, segment.is_clean);
                merged.push(Segment { density, ..segment });
            }
        }
    }
    merged
}
