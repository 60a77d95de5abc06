//! Many cursors as one.
//!
//! A tournament between the sources, kept as a tree of losers: of every match the loser stays in
//! the tree and the winner goes up. When the overall winner moves on, only the matches on its own
//! way up are played again: as many comparisons as the tree is high.
//!
//! ```text
//!            tree[0] = winner
//!            tree[1] = loser of the final
//!       tree[2]           tree[3]           matches: node n is fed by nodes 2n and 2n + 1
//!     s0       s1       s2       s3         source i sits at node i + sources
//! ```

use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::SeqNo;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Walks the entries of all its sources in the store's order. Of two entries with equal key and
/// sequence number the one of the newer source comes first.
pub(crate) struct MergingCursor {
    /// Newest first.
    sources: Vec<Source>,
    /// The winner, then the loser of each match.
    tree: Vec<usize>,
    /// Forward: every other source stands on its first entry after the winner's (or beyond its
    /// end). Backward: on its last entry before it.
    direction: Direction,
}

struct Source {
    cursor: Box<dyn Cursor>,
    head: Head,
}

/// What a source stands on, copied to where comparisons are cheap. A dead head is that of a
/// source that stands nowhere.
#[derive(Default)]
struct Head {
    live: bool,
    /// The first bytes of the key, zeros behind a shorter one: as a number it is ordered as the
    /// keys are, up to ties.
    prefix: u64,
    seq: SeqNo,
    key: Vec<u8>,
}

impl Head {
    fn load(&mut self, entry: Option<EntryRef<'_>>) {
        self.live = entry.is_some();
        if let Some(entry) = entry {
            self.prefix = prefix(entry.key);
            self.seq = entry.seq;
            self.key.clear();
            self.key.extend_from_slice(entry.key);
        }
    }

    /// The store's order of two live heads.
    fn order(&self, other: &Head) -> Ordering {
        self.prefix
            .cmp(&other.prefix)
            .then_with(|| self.key.cmp(&other.key))
            .then_with(|| other.seq.cmp(&self.seq))
    }
}

fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

impl Source {
    /// Calls `go` on the cursor and looks where that led.
    fn go(&mut self, go: impl FnOnce(&mut dyn Cursor) -> Result<()>) -> Result<()> {
        go(&mut *self.cursor)?;
        self.head.load(self.cursor.entry());
        Ok(())
    }

    /// From its first entry after `here` (or beyond its end) to its last one before `here`.
    ///
    /// Mostly that is one step. More are taken over entries that a writer has added in between.
    fn turn_backward(&mut self, here: &Head) -> Result<()> {
        let live = self.head.live;
        self.go(|cursor| if live { cursor.prev() } else { cursor.seek_last() })?;
        while self.head.live && self.head.order(here).is_gt() {
            self.go(|cursor| cursor.prev())?;
        }
        Ok(())
    }

    /// The reverse of [`Source::turn_backward`].
    fn turn_forward(&mut self, here: &Head) -> Result<()> {
        let live = self.head.live;
        self.go(|cursor| if live { cursor.next() } else { cursor.seek_first() })?;
        while self.head.live && self.head.order(here).is_lt() {
            self.go(|cursor| cursor.next())?;
        }
        Ok(())
    }
}

impl MergingCursor {
    /// A cursor over `sources`, newest first; it stands nowhere yet.
    pub(crate) fn new(sources: Vec<Box<dyn Cursor>>) -> MergingCursor {
        let source = |cursor| Source { cursor, head: Head::default() };
        let sources: Vec<Source> = sources.into_iter().map(source).collect();
        let tree = vec![0; sources.len()];
        MergingCursor { sources, tree, direction: Direction::Forward }
    }

    /// The source whose entry the cursor stands on.
    fn winner(&self) -> Option<usize> {
        let winner = *self.tree.first()?;
        self.sources[winner].head.live.then_some(winner)
    }

    /// The index of the source whose entry the cursor stands on.
    pub(crate) fn source(&self) -> Option<usize> {
        self.winner()
    }

    /// Whether source `a` comes before source `b` in the direction of travel.
    fn beats(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.sources[a].head, &self.sources[b].head);
        if !left.live || !right.live {
            return left.live;
        }
        let order = left.order(right).then(a.cmp(&b));
        match self.direction {
            Direction::Forward => order.is_lt(),
            Direction::Backward => order.is_gt(),
        }
    }

    /// Plays all matches.
    fn rebuild(&mut self) {
        if self.sources.is_empty() {
            return;
        }
        self.tree[0] = self.play(1);
    }

    /// Plays all matches under `node` and returns who wins there.
    fn play(&mut self, node: usize) -> usize {
        if node >= self.sources.len() {
            return node - self.sources.len();
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.beats(right, left) { (right, left) } else { (left, right) };
        self.tree[node] = loser;
        winner
    }

    /// Plays the matches of `source` again, which was the winner and has moved on.
    fn replay(&mut self, source: usize) {
        let mut winner = source;
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            let rival = self.tree[node];
            if self.beats(rival, winner) {
                self.tree[node] = winner;
                winner = rival;
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    /// Places every source by `go`, then finds the winner for `direction`.
    fn seek_all(
        &mut self,
        direction: Direction,
        go: impl Fn(&mut dyn Cursor) -> Result<()>,
    ) -> Result<()> {
        self.direction = direction;
        let placed = self.sources.iter_mut().try_for_each(|source| source.go(&go));
        self.settle(placed)
    }

    /// Makes the other sources stand on the other side of the winner.
    fn turn(&mut self, winner: usize, direction: Direction) -> Result<()> {
        self.direction = direction;
        let here = std::mem::take(&mut self.sources[winner].head);
        let mut others = self.sources.iter_mut().enumerate().filter(|(i, _)| *i != winner);
        let turned = others.try_for_each(|(_, source)| match direction {
            Direction::Forward => source.turn_forward(&here),
            Direction::Backward => source.turn_backward(&here),
        });
        self.sources[winner].head = here;
        self.settle(turned)
    }

    /// Finds the winner anew, or stands nowhere after an error.
    fn settle(&mut self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            self.sources.iter_mut().for_each(|source| source.head.live = false);
        }
        self.rebuild();
        result
    }

    fn step(
        &mut self,
        direction: Direction,
        go: impl FnOnce(&mut dyn Cursor) -> Result<()>,
    ) -> Result<()> {
        let Some(winner) = self.winner() else { return Ok(()) };
        if self.direction != direction {
            self.turn(winner, direction)?;
        }
        let stepped = self.sources[winner].go(go);
        if stepped.is_err() {
            return self.settle(stepped);
        }
        self.replay(winner);
        Ok(())
    }
}

impl Cursor for MergingCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_all(Direction::Forward, |cursor| cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_all(Direction::Backward, |cursor| cursor.seek_last())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek_all(Direction::Forward, |cursor| cursor.seek(key))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.seek_all(Direction::Backward, |cursor| cursor.seek_before(key))
    }

    fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward, |cursor| cursor.next())
    }

    fn prev(&mut self) -> Result<()> {
        self.step(Direction::Backward, |cursor| cursor.prev())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.sources[self.winner()?].cursor.entry()
    }

    fn value(&self) -> Bytes {
        self.winner().map_or_else(Bytes::new, |winner| self.sources[winner].cursor.value())
    }
}

#[cfg(test)]
mod tests;
