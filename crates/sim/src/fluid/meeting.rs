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
    newer: Side,
    older: Side,
    /// Keys of both, tombstones that are gone included.
    both: f64,
    /// What comes out.
    merged: f64,
}

/// One side.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// Keys, tombstones that are gone included.
    keys: f64,
    /// The part of them that is still there.
    kept: f64,
}

/// Where two sides are what, in key order. `is_bottom` is whether tombstones have nothing left to
/// hide.
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
        let (up, down) = (at(newer, pair[0]), at(older, pair[0]));
        let side = |segment: Option<Segment>| Side::of(segment, workload);
        let (newer, older) = (side(up), side(down));
        let both = match (up, down) {
            (Some(up), Some(down)) => {
                let (from, upto) = (up.from.min(down.from), up.upto.max(down.upto));
                (newer.keys + older.keys - workload.density(from, upto, false)).max(0.0)
            }
            _ => 0.0,
        };
        let is_clean = is_bottom || down.or(up).is_some_and(|oldest| oldest.is_clean);
        let kept = if is_clean { 1.0 - workload.delete_share() } else { 1.0 };
        let merged = (newer.keys + older.keys - both) * kept;
        Meeting { start: pair[0], end: pair[1], newer, older, both, merged }
    };
    borders.windows(2).map(meeting).collect()
}

impl Side {
    fn of(segment: Option<Segment>, workload: &FluidWorkload) -> Side {
        let Some(segment) = segment else { return Side { keys: 0.0, kept: 1.0 } };
        let kept = if segment.is_clean { 1.0 - workload.delete_share() } else { 1.0 };
        Side { keys: workload.density(segment.from, segment.upto, false), kept }
    }

    fn entries(self) -> f64 {
        self.keys * self.kept
    }
}

/// What a block can expect, put together from the meetings that it spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prospect {
    /// New keys of the other side within the block's part of the key space.
    pub(super) new: f64,
    /// The chance of each of its keys to be one of the other side too.
    pub(super) hit: f64,
    /// What goes on of all entries that come together there, where tombstones may be dropped or
    /// not have been there.
    pub(super) goes_on: f64,
    own: f64,
    other: f64,
}

impl Prospect {
    /// Of a block of the newer or the older side in a part of the key space, of which `meetings`
    /// hold all.
    pub(super) fn of(start: u64, end: u64, is_newer: bool, meetings: &[Meeting]) -> Prospect {
        let mut prospect = Prospect::default();
        let whole = width(start, end);
        for meeting in meetings.iter().take_while(|meeting| meeting.start < end) {
            let met = width(meeting.start.max(start), meeting.end.min(end));
            prospect.meet(meeting, is_newer, met, met / whole);
        }
        prospect
    }

    fn meet(&mut self, meeting: &Meeting, is_newer: bool, met: f64, share: f64) {
        let (own, other) = match is_newer {
            true => (meeting.newer, meeting.older),
            false => (meeting.older, meeting.newer),
        };
        let new = (other.keys - meeting.both).max(0.0) * other.kept;
        self.new += new * met;
        self.own += own.entries() * share;
        self.other += other.entries() * share;
        if own.keys > 0.0 {
            self.hit += (meeting.both / own.keys * other.kept).min(1.0) * share;
            self.goes_on += meeting.merged / (own.entries() + new) * share;
        }
    }

    /// Whether the other side comes to blocks of this one, not the other way round.
    pub(super) fn is_host(&self, is_newer: bool) -> bool {
        self.own > self.other || self.own == self.other && !is_newer
    }
}
