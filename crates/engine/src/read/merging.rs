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
use crate::format::key_prefix;
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
pub(crate) struct MergingCursor<C = Box<dyn Cursor>> {
    /// Newest first.
    sources: Vec<Source<C>>,
    /// The winner, then the loser of each match.
    tree: Vec<usize>,
    /// Forward: every other source stands on its first entry after the winner's (or beyond its
    /// end). Backward: on its last entry before it.
    direction: Direction,
}

struct Source<C> {
    cursor: C,
    head: Head,
}

/// What a source stands on, but for what can be asked of its cursor if need be: most comparisons
/// are over after the first bytes of the keys. A dead head is that of a source that stands nowhere.
#[derive(Default)]
struct Head {
    live: bool,
    /// Of the key: see [`key_prefix`].
    prefix: u64,
    seq: SeqNo,
}

/// A copy of where a source stands.
struct Here {
    key: Vec<u8>,
    seq: SeqNo,
}

impl<C: Cursor> Source<C> {
    /// Calls `go` on the cursor and looks where that led.
    #[inline]
    fn go(&mut self, go: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        go(&mut self.cursor)?;
        self.head = match self.cursor.entry() {
            Some(entry) => Head { live: true, prefix: key_prefix(entry.key), seq: entry.seq },
            None => Head::default(),
        };
        Ok(())
    }

    fn key(&self) -> &[u8] {
        self.cursor.entry().map(|entry| entry.key).unwrap_or_default()
    }

    /// The store's order of what two sources stand on, which is something.
    #[inline]
    fn order(&self, other: &Source<C>) -> Ordering {
        let prefixes = self.head.prefix.cmp(&other.head.prefix);
        prefixes.then_with(|| self.key().cmp(other.key()).then(other.head.seq.cmp(&self.head.seq)))
    }

    /// The same of what this source stands on, and `here`.
    fn order_to(&self, here: &Here) -> Ordering {
        self.key().cmp(&here.key).then(here.seq.cmp(&self.head.seq))
    }

    /// From its first entry after `here` (or beyond its end) to its last one before `here`.
    ///
    /// Mostly that is one step. More are taken over entries that a writer has added in between.
    fn turn_backward(&mut self, here: &Here) -> Result<()> {
        let live = self.head.live;
        self.go(|cursor| if live { cursor.prev() } else { cursor.seek_last() })?;
        while self.head.live && self.order_to(here).is_gt() {
            self.go(C::prev)?;
        }
        Ok(())
    }

    /// The reverse of [`Source::turn_backward`].
    fn turn_forward(&mut self, here: &Here) -> Result<()> {
        let live = self.head.live;
        self.go(|cursor| if live { cursor.next() } else { cursor.seek_first() })?;
        while self.head.live && self.order_to(here).is_lt() {
            self.go(C::next)?;
        }
        Ok(())
    }
}

impl<C: Cursor> MergingCursor<C> {
    /// A cursor over `sources`, newest first; it stands nowhere yet.
    pub(crate) fn new(sources: Vec<C>) -> MergingCursor<C> {
        let source = |cursor| Source { cursor, head: Head::default() };
        let sources: Vec<Source<C>> = sources.into_iter().map(source).collect();
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
    #[inline]
    fn beats(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.sources[a], &self.sources[b]);
        if !left.head.live || !right.head.live {
            return left.head.live;
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
    fn seek_all(&mut self, direction: Direction, go: impl Fn(&mut C) -> Result<()>) -> Result<()> {
        self.direction = direction;
        let placed = self.sources.iter_mut().try_for_each(|source| source.go(&go));
        self.settle(placed)
    }

    /// Makes the other sources stand on the other side of the winner.
    fn turn(&mut self, winner: usize, direction: Direction) -> Result<()> {
        self.direction = direction;
        let Source { cursor, head } = &self.sources[winner];
        let key = cursor.entry().map(|entry| entry.key.to_vec()).unwrap_or_default();
        let here = Here { key, seq: head.seq };
        let mut others = self.sources.iter_mut().enumerate().filter(|(i, _)| *i != winner);
        let turned = others.try_for_each(|(_, source)| match direction {
            Direction::Forward => source.turn_forward(&here),
            Direction::Backward => source.turn_backward(&here),
        });
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

    fn step(&mut self, direction: Direction, go: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
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

impl<C: Cursor> Cursor for MergingCursor<C> {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_all(Direction::Forward, C::seek_first)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_all(Direction::Backward, C::seek_last)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek_all(Direction::Forward, |cursor| cursor.seek(key))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.seek_all(Direction::Backward, |cursor| cursor.seek_before(key))
    }

    fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward, C::next)
    }

    fn prev(&mut self) -> Result<()> {
        self.step(Direction::Backward, C::prev)
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
