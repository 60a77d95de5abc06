//! Tables by height and key.

use super::KnotName;
use crate::entry::SeqNo;
use crate::key::Key;
use crate::range::KeyRange;
use crate::slice::TableId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// A table in the index.
#[derive(Clone, Debug)]
pub(super) struct IndexEntry {
    pub(super) id: TableId,
    pub(super) end: Option<Key>,
    pub(super) seqs: (SeqNo, SeqNo),
    pub(super) knot: KnotName,
}

/// Tables that share no key, by their first key.
type Track = BTreeMap<Key, IndexEntry>;

/// The tables of each height. Only members of a knot share keys with others of their height, so
/// that a height without knots is one track.
#[derive(Clone, Debug, Default)]
pub(super) struct HeightIndex {
    heights: Vec<Vec<Track>>,
    /// The greatest sequence numbers of all tables.
    newest: BTreeSet<(SeqNo, TableId)>,
}

impl HeightIndex {
    /// Returns true if all tables are older than `seq`.
    pub(super) fn is_above_all(&self, seq: SeqNo) -> bool {
        self.newest.last().is_none_or(|(newest, _)| *newest < seq)
    }

    pub(super) fn insert(&mut self, height: usize, range: &KeyRange, entry: IndexEntry) {
        if self.heights.len() <= height {
            self.heights.resize_with(height + 1, Vec::new);
        }
        self.newest.insert((entry.seqs.1, entry.id));
        let tracks = &mut self.heights[height];
        let is_free =
            |track: &Track| overlapping(track, range, |_| ControlFlow::Break(())).is_continue();
        let place = tracks.iter().position(is_free).unwrap_or_else(|| {
            tracks.push(Track::new());
            tracks.len() - 1
        });
        tracks[place].insert(range.start.clone(), entry);
    }

    pub(super) fn remove(&mut self, height: usize, range: &KeyRange, id: TableId) {
        let tracks = &mut self.heights[height];
        for track in tracks.iter_mut() {
            if track.get(&range.start).is_some_and(|entry| entry.id == id)
                && let Some(entry) = track.remove(&range.start)
            {
                self.newest.remove(&(entry.seqs.1, id));
                break;
            }
        }
        tracks.retain(|track| !track.is_empty());
        while self.heights.last().is_some_and(Vec::is_empty) {
            self.heights.pop();
        }
    }

    /// Calls `see` with all tables of the height `from` and above that share keys with `range`.
    pub(super) fn visit(&self, range: &KeyRange, from: usize, mut see: impl FnMut(&IndexEntry)) {
        let tracks = self.heights.iter().skip(from).flatten();
        for track in tracks {
            let _ = overlapping(track, range, |entry| {
                see(entry);
                ControlFlow::Continue(())
            });
        }
    }

    /// Returns the greatest height at which a table that shares keys with `range` fits.
    pub(super) fn greatest(
        &self,
        range: &KeyRange,
        fits: impl Fn(&IndexEntry) -> bool,
    ) -> Option<usize> {
        self.heights.iter().enumerate().rev().find_map(|(height, tracks)| {
            let found = tracks.iter().any(|track| {
                let look = |entry: &IndexEntry| match fits(entry) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                overlapping(track, range, look).is_break()
            });
            found.then_some(height)
        })
    }
}

/// Calls `see` with the tables of `track` that share keys with `range`, in key order.
fn overlapping(
    track: &Track,
    range: &KeyRange,
    mut see: impl FnMut(&IndexEntry) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if let Some((_, before)) = track.range(..range.start.clone()).next_back()
        && before.end.as_ref().is_none_or(|end| *end > range.start)
    {
        see(before)?;
    }
    for (start, entry) in track.range(range.start.clone()..) {
        if range.lies_below(start) {
            break;
        }
        see(entry)?;
    }
    ControlFlow::Continue(())
}
