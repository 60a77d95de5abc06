//! Merges many cursors into one.
//!
//! The sources play a tournament, kept as a tree of losers: the loser of every match stays in the
//! tree and the winner goes up. When the overall winner moves on, only the matches on its own path
//! are played again: as many comparisons as the tree is high.
//!
//! ```text
//!            tree[0] = winner
//!            tree[1] = loser of the final
//!       tree[2]           tree[3]           matches: node n is fed by nodes 2n and 2n + 1
//!     s0       s1       s2       s3         source i is node i + sources
//! ```

use crate::cursor::{Cursor, EntryRef, disordered, newest_first};
use crate::error::{Error, Result};
use crate::format::key_prefix;
use bytes::Bytes;
use lsmith_tree::{KeyRange, SeqNo};
use std::cmp::Ordering;
use std::hint::{black_box, select_unpredictable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Walks the entries of all its sources in the store's order. Of two entries with equal key and
/// equal sequence number, or with a number missing, the entry of the newer source comes first.
pub struct MergingCursor<C = Box<dyn Cursor>> {
    /// Newest first.
    sources: Vec<Source<C>>,
    /// The winner, then the loser of each match.
    tree: Vec<Player>,
    /// Forward: every other source is on its first entry after the winner's (or past its end).
    /// Backward: every other source is on its last entry before the winner's.
    direction: Direction,
}

/// A source in a match.
#[derive(Clone, Copy, Default)]
struct Player {
    source: usize,
    /// The rank of the source's head, so that a match reads no other memory.
    rank: u64,
}

struct Source<C> {
    cursor: C,
    head: SourceHead,
}

/// What matches need of the entry under a source, except for the whole key: most comparisons end
/// within the first bytes of the keys. The head of a source without an entry is dead.
#[derive(Clone, Copy)]
struct SourceHead {
    live: bool,
    /// Of two sources the one with the lower rank comes first; equal ranks need a comparison of the
    /// keys. Forward the rank is the [prefix](key_prefix) of the key, backward its bitwise
    /// complement. A dead head has the highest rank.
    rank: u64,
    seq: SeqNo,
}

const DEAD: SourceHead = SourceHead { live: false, rank: u64::MAX, seq: SeqNo(0) };

/// A copy of the position from which the cursor changes its direction.
struct TurnPoint {
    key: Vec<u8>,
    seq: SeqNo,
    source: usize,
}

impl<C: Cursor> Source<C> {
    /// Calls `go` on the cursor and sets the head, for a walk in `direction`.
    ///
    /// Without `always` the compiler leaves the step of the cursor out of line: 12 instructions
    /// more per entry of a scan.
    #[inline(always)]
    fn go(&mut self, direction: Direction, go: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        go(&mut self.cursor)?;
        match self.cursor.entry() {
            // Field by field: as a whole, its padding is written too.
            Some(entry) => {
                let prefix = key_prefix(entry.key);
                self.head.rank = if direction == Direction::Forward { prefix } else { !prefix };
                self.head.seq = entry.seq;
                self.head.live = true;
            }
            None => self.head = DEAD,
        }
        Ok(())
    }

    fn key(&self) -> &[u8] {
        self.cursor.entry().map(|entry| entry.key).unwrap_or_default()
    }

    /// Orders the entries under two sources, as far as keys and sequence numbers decide.
    fn order(&self, other: &Source<C>) -> Ordering {
        self.key().cmp(other.key()).then_with(|| newest_first(self.head.seq, other.head.seq))
    }

    /// Orders the entry under this source, whose index is `index`, and `here`.
    fn order_to(&self, here: &TurnPoint, index: usize) -> Ordering {
        let order = self.key().cmp(&here.key);
        order.then_with(|| newest_first(self.head.seq, here.seq)).then(index.cmp(&here.source))
    }

    /// Moves from the first entry after `here` (or from past the end) to the last entry before
    /// `here`.
    ///
    /// That is usually one step. It takes more if a writer has added entries in between.
    fn turn_backward(&mut self, here: &TurnPoint, index: usize) -> Result<()> {
        let live = self.head.live;
        self.go(
            Direction::Backward,
            |cursor| if live { cursor.prev() } else { cursor.seek_last() },
        )?;
        while self.head.live && self.order_to(here, index).is_gt() {
            self.go(Direction::Backward, C::prev)?;
        }
        Ok(())
    }

    /// The reverse of [`Source::turn_backward`].
    fn turn_forward(&mut self, here: &TurnPoint, index: usize) -> Result<()> {
        let live = self.head.live;
        self.go(
            Direction::Forward,
            |cursor| if live { cursor.next() } else { cursor.seek_first() },
        )?;
        while self.head.live && self.order_to(here, index).is_lt() {
            self.go(Direction::Forward, C::next)?;
        }
        Ok(())
    }
}

impl<C: Cursor> MergingCursor<C> {
    /// Creates a cursor over `sources`, newest first. It is on no entry yet.
    pub fn new(sources: Vec<C>) -> MergingCursor<C> {
        let source = |cursor| Source { cursor, head: DEAD };
        let sources: Vec<Source<C>> = sources.into_iter().map(source).collect();
        let tree = vec![Player::default(); sources.len()];
        MergingCursor { sources, tree, direction: Direction::Forward }
    }

    /// Returns the source of the current entry.
    fn winner(&self) -> Option<usize> {
        let winner = self.tree.first()?.source;
        self.sources[winner].head.live.then_some(winner)
    }

    /// Returns the sources, newest first.
    pub fn sources(&self) -> impl Iterator<Item = &C> {
        self.sources.iter().map(|source| &source.cursor)
    }

    /// Returns the index of the source of the current entry.
    pub fn source(&self) -> Option<usize> {
        self.winner()
    }

    /// Returns true if player `a` comes before player `b` in the direction of the walk.
    #[inline]
    fn beats(&self, a: Player, b: Player) -> bool {
        if a.rank == b.rank { self.beats_tied(a.source, b.source) } else { a.rank < b.rank }
    }

    /// Like [`beats`](Self::beats), for sources with equal ranks.
    #[inline(never)]
    fn beats_tied(&self, a: usize, b: usize) -> bool {
        let left = &self.sources[a];
        let right = &self.sources[b];
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

    /// Plays all matches under `node` and returns the winner.
    fn play(&mut self, node: usize) -> Player {
        if node >= self.sources.len() {
            return self.player(node - self.sources.len());
        }
        let left = self.play(2 * node);
        let right = self.play(2 * node + 1);
        let (winner, loser) = if self.beats(right, left) { (right, left) } else { (left, right) };
        self.tree[node] = loser;
        winner
    }

    fn player(&self, source: usize) -> Player {
        Player { source, rank: self.sources[source].head.rank }
    }

    /// Plays the matches of `source` again, which was the winner and has moved on.
    ///
    /// Without `always` it is called, because leaps replay too: 14 instructions more per entry.
    #[inline(always)]
    fn replay(&mut self, source: usize) {
        let mut winner = self.player(source);
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            let rival = self.tree[node];
            // The winner is hard to predict, so no branch depends on it.
            let beaten = self.beats(rival, winner);
            self.tree[node] = select_unpredictable(beaten, winner, rival);
            winner = select_unpredictable(beaten, rival, winner);
            node /= 2;
        }
        self.tree[0] = winner;
    }

    /// Takes all steps of a search in every source, by `step`, if there are several sources.
    #[inline]
    fn approach_all(&mut self, step: impl Fn(&mut C) -> bool) {
        let mut is_on_the_way = self.sources.len() > 1;
        while is_on_the_way {
            let steps = self.sources.iter_mut().map(|source| step(&mut source.cursor));
            is_on_the_way = steps.fold(false, |any, more| any | more);
            let touch = |all, source: &Source<C>| all ^ source.cursor.touch();
            black_box(self.sources.iter().fold(0, touch));
        }
    }

    /// Moves every source by `go`, then finds the winner for `direction`.
    fn seek_all(&mut self, direction: Direction, go: impl Fn(&mut C) -> Result<()>) -> Result<()> {
        self.direction = direction;
        let mut placed = Ok(());
        for source in &mut self.sources {
            // After an error the others go on: what they have approached must not serve a later
            // seek.
            placed = placed.and(source.go(direction, &go));
        }
        self.settle(placed)
    }

    /// Moves the other sources to the other side of the winner.
    fn turn(&mut self, winner: usize, direction: Direction) -> Result<()> {
        self.direction = direction;
        let Source { cursor, head } = &self.sources[winner];
        let key = cursor.entry().map(|entry| entry.key.to_vec()).unwrap_or_default();
        let here = TurnPoint { key, seq: head.seq, source: winner };
        self.sources[winner].head.rank = !self.sources[winner].head.rank;
        let mut others = self.sources.iter_mut().enumerate().filter(|(i, _)| *i != winner);
        let turned = others.try_for_each(|(index, source)| match direction {
            Direction::Forward => source.turn_forward(&here, index),
            Direction::Backward => source.turn_backward(&here, index),
        });
        self.settle(turned)
    }

    /// Finds the new winner. After an error the cursor is on no entry.
    fn settle(&mut self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            self.sources.iter_mut().for_each(|source| source.head = DEAD);
        }
        self.rebuild();
        result
    }

    #[inline]
    fn step(&mut self, direction: Direction, go: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        let Some(winner) = self.winner() else { return Ok(()) };
        if self.direction != direction {
            self.turn(winner, direction)?;
        }
        let stepped = self.sources[winner].go(direction, go);
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
        self.approach_all(|cursor| cursor.approach(key));
        self.seek_all(Direction::Forward, |cursor| cursor.seek(key))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.approach_all(|cursor| cursor.approach_before(key));
        self.seek_all(Direction::Backward, |cursor| cursor.seek_before(key))
    }

    fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward, C::next)
    }

    fn prev(&mut self) -> Result<()> {
        self.step(Direction::Backward, C::prev)
    }

    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        self.step(Direction::Forward, |cursor| cursor.leap(range, below))
    }

    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        self.step(Direction::Backward, |cursor| cursor.leap_back(range, below))
    }

    fn disorder(&self) -> Error {
        self.winner().map_or_else(disordered, |winner| self.sources[winner].cursor.disorder())
    }

    fn newest(&self) -> SeqNo {
        self.winner().map_or(SeqNo::MAX, |winner| self.sources[winner].cursor.newest())
    }

    // Without `always` some steps of scans call it: 3 instructions more per entry.
    #[inline(always)]
    fn entry(&self) -> Option<EntryRef<'_>> {
        self.sources[self.winner()?].cursor.entry()
    }

    fn value(&self) -> Bytes {
        self.winner().map_or_else(Bytes::new, |winner| self.sources[winner].cursor.value())
    }
}

#[cfg(test)]
mod tests;
