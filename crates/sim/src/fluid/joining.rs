//! A merge joins the segments of its inputs.

use super::FluidWorkload;
use super::segment::Segment;

impl Segment {
    /// Returns true if the segment has the same content as `last`, which ends where it starts.
    fn continues(&self, last: &Segment, workload: &FluidWorkload) -> bool {
        let is_same = (last.from, last.until) == (self.from, self.until);
        last.end == self.start
            && last.is_clean == self.is_clean
            && (workload.is_swept() || is_same && !workload.is_border(self.start))
    }
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
