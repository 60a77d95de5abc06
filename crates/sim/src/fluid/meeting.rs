//! The overlap of two sides of a merge.
//!
//! In each part of the key space the side with more keys is the host. Blocks of the host may
//! overlap nothing; the keys of the other side lie between the host's blocks or within them.

use super::FluidWorkload;
use super::place::width;
use super::segment::Segment;

/// The overlap in a part of the key space, in entries of the whole key space if all of it were like
/// this part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    pub(super) start: u64,
    pub(super) end: u64,
    newer: MeetingShare,
    older: MeetingShare,
    /// Keys that both sides have, including dropped tombstones.
    both: f64,
    /// The entries of the output.
    merged: f64,
}

/// The share of one side.
#[derive(Clone, Copy, Debug)]
struct MeetingShare {
    /// Keys, including dropped tombstones.
    keys: f64,
    /// The part of the keys that still has an entry.
    kept: f64,
}

/// Returns how two inputs of a merge overlap, in key order. If `is_bottom` is true, tombstones are
/// dropped.
pub(super) fn meetings(
    newer: &[Segment],
    older: &[Segment],
    is_bottom: bool,
    workload: &FluidWorkload,
) -> Vec<Meeting> {
    let all = newer.iter().chain(older);
    let mut borders: Vec<u64> = all.flat_map(|segment| [segment.start, segment.end]).collect();
    borders.sort_unstable();
    borders.dedup();
    let at = |side: &[Segment], place: u64| {
        let index = side.partition_point(|segment| segment.end <= place);
        side.get(index).filter(|segment| segment.start <= place).copied()
    };
    let meeting = |pair: &[u64]| {
        let up = at(newer, pair[0]);
        let down = at(older, pair[0]);
        let side = |segment: Option<Segment>| MeetingShare::of(segment, workload);
        let newer = side(up);
        let older = side(down);
        let (both, merged) = match (up, down) {
            (Some(up), Some(down)) => {
                let from = up.from.min(down.from);
                let until = up.until.max(down.until);
                let keys = workload.keys(pair[0], from, until);
                let is_clean = is_bottom || down.is_clean;
                let merged = workload.density(pair[0], from, until, is_clean);
                ((newer.keys + older.keys - keys).max(0.0), merged.entries)
            }
            (Some(one), None) | (None, Some(one)) => {
                let is_clean = is_bottom || one.is_clean;
                (0.0, workload.density(pair[0], one.from, one.until, is_clean).entries)
            }
            (None, None) => (0.0, 0.0),
        };
        Meeting { start: pair[0], end: pair[1], newer, older, both, merged }
    };
    borders.windows(2).map(meeting).collect()
}

impl MeetingShare {
    fn of(segment: Option<Segment>, workload: &FluidWorkload) -> MeetingShare {
        let Some(segment) = segment else { return MeetingShare { keys: 0.0, kept: 1.0 } };
        let keys = workload.keys(segment.start, segment.from, segment.until);
        MeetingShare { keys, kept: (segment.density.entries / keys).min(1.0) }
    }

    fn entries(self) -> f64 {
        self.keys * self.kept
    }
}

impl Meeting {
    /// Returns true if the newer side is the host.
    fn newer_is_host(&self) -> bool {
        self.newer.entries() > self.older.entries()
    }
}

/// The expected overlap of a block, collected from the meetings that it spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prospect {
    /// The part of the block's entries for which its side is the host. Blocks of the other side
    /// count the overlap of the rest.
    pub(super) hosts: f64,
    /// Entries of the other side, where the block's side is the host.
    pub(super) guests: f64,
    /// Entries of the other side for keys that the block's side does not have.
    pub(super) new: f64,
    /// Keys of the other side, where the other side is the host.
    pub(super) hosts_around: f64,
    /// The probability that the other side also has an entry for a key of the block, where the
    /// block's side is the host.
    pub(super) hit: f64,
    /// The same where the other side is the host.
    pub(super) guest_hit: f64,
    /// The part of the merged entries that is written. Tombstones may be dropped, now or earlier.
    pub(super) goes_on: f64,
}

impl Prospect {
    /// Returns the prospect of a block of the newer or older side from `start` up to `end`.
    /// `meetings` must cover this range.
    pub(super) fn of(start: u64, end: u64, is_newer: bool, meetings: &[Meeting]) -> Prospect {
        let mut all = 0.0;
        let mut hosted = 0.0;
        let mut hits = 0.0;
        let mut merged = 0.0;
        let mut new = 0.0;
        let mut guests = 0.0;
        let mut hosts_around = 0.0;
        let mut guest_hits = 0.0;
        let mut is_guest = false;
        for meeting in meetings.iter().take_while(|meeting| meeting.start < end) {
            let met = width(meeting.start.max(start), meeting.end.min(end));
            let (own, other) = if is_newer {
                (meeting.newer, meeting.older)
            } else {
                (meeting.older, meeting.newer)
            };
            let entries = own.entries() * met;
            all += entries;
            if meeting.newer_is_host() != is_newer {
                is_guest |= entries > 0.0;
                hosts_around += other.entries() * met;
                if own.keys > 0.0 {
                    guest_hits += (meeting.both / own.keys * other.kept).min(1.0) * entries;
                }
                continue;
            }
            hosted += entries;
            guests += other.entries() * met;
            new += (other.keys - meeting.both).max(0.0) * other.kept * met;
            merged += meeting.merged * met;
            if own.keys > 0.0 {
                hits += (meeting.both / own.keys * other.kept).min(1.0) * entries;
            }
        }
        Prospect {
            hosts: if is_guest { hosted / all } else { 1.0 },
            guests,
            new,
            hosts_around,
            hit: if hosted > 0.0 { hits / hosted } else { 0.0 },
            guest_hit: if all > hosted { guest_hits / (all - hosted) } else { 0.0 },
            goes_on: if hosted + new > 0.0 { merged / (hosted + new) } else { 1.0 },
        }
    }
}
