//! What the blocks of two sides of a merge meet.
//!
//! The side with more keys in a part of the key space is the host there: its blocks may meet
//! nothing, and the keys of the other side come in between them or into them.

use super::FluidWorkload;
use super::place::width;
use super::segment::Segment;

/// What there is in a part of the key space, in entries that all of it would have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    pub(super) start: u64,
    pub(super) end: u64,
    newer: MeetingShare,
    older: MeetingShare,
    /// Keys of both, tombstones that are gone included.
    both: f64,
    /// What comes out.
    merged: f64,
}

/// One side.
#[derive(Clone, Copy, Debug)]
struct MeetingShare {
    /// Keys, tombstones that are gone included.
    keys: f64,
    /// The part of them that is still there.
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

/// What a block can expect, put together from the meetings that it spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prospect {
    /// The part of its entries that lies where its side is the host. What comes to the others is
    /// told by blocks of the other side.
    pub(super) hosts: f64,
    /// New keys of the other side where its own is the host.
    pub(super) new: f64,
    /// The chance of each of its keys to be one of the other side too.
    pub(super) hit: f64,
    /// What goes on of all entries that come together there, where tombstones may be dropped or
    /// not have been there.
    pub(super) goes_on: f64,
}

impl Prospect {
    /// Of a block of the newer or the older side in a part of the key space, of which `meetings`
    /// hold all.
    pub(super) fn of(start: u64, end: u64, is_newer: bool, meetings: &[Meeting]) -> Prospect {
        let mut all = 0.0;
        let mut hosted = 0.0;
        let mut hits = 0.0;
        let mut merged = 0.0;
        let mut new = 0.0;
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
                continue;
            }
            hosted += entries;
            new += (other.keys - meeting.both).max(0.0) * other.kept * met;
            merged += meeting.merged * met;
            if own.keys > 0.0 {
                hits += (meeting.both / own.keys * other.kept).min(1.0) * entries;
            }
        }
        Prospect {
            hosts: if is_guest { hosted / all } else { 1.0 },
            new,
            hit: if hosted > 0.0 { hits / hosted } else { 0.0 },
            goes_on: if hosted + new > 0.0 { merged / (hosted + new) } else { 1.0 },
        }
    }
}
