//! The block-preserving merge (Thonangi & Yang, section II-B).
//!
//! Two lists of blocks are merged record by record into a block of output. Where the next record
//! begins an input block that ends before the other list goes on, the block can be kept as it is,
//! if that leaves no two neighbours that would fit into one block, and no more empty room than the
//! level is allowed.

use super::table::{BlockTable, Record};
use lsmith_tree::TableId;
use std::sync::Arc;

/// Neighbouring blocks of one table.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) id: TableId,
    pub(super) table: Arc<BlockTable>,
    pub(super) from: usize,
    pub(super) upto: usize,
}

/// One side of a merge: blocks in key order.
#[derive(Debug)]
pub(super) struct Side {
    parts: Vec<Part>,
    part: usize,
    block: usize,
    at: usize,
    /// Whether blocks of this side can be kept: those in memory can't.
    keeps: bool,
}

impl Side {
    pub(super) fn new(parts: Vec<Part>, keeps: bool) -> Side {
        let block = parts.first().map_or(0, |part| part.from);
        Side { parts, part: 0, block, at: 0, keeps }
    }

    fn current(&self) -> Option<&[Record]> {
        self.parts.get(self.part).map(|part| part.table.block(self.block))
    }

    fn peek(&self) -> Option<Record> {
        self.current().map(|block| block[self.at])
    }

    /// Whether the next record begins a block.
    fn is_at_start(&self) -> bool {
        self.at == 0
    }

    fn step(&mut self) {
        self.at += 1;
        if self.current().is_some_and(|block| self.at >= block.len()) {
            self.skip();
        }
    }

    /// Goes to the next block.
    fn skip(&mut self) {
        self.at = 0;
        self.block += 1;
        if self.block >= self.parts[self.part].upto {
            self.part += 1;
            self.block = self.parts.get(self.part).map_or(0, |part| part.from);
        }
    }
}

/// A block of the output.
#[derive(Clone, Debug)]
pub(super) enum Out {
    /// Written.
    New(Vec<Record>),
    /// Kept: the block of a table.
    Old { id: TableId, table: Arc<BlockTable>, block: usize },
}

impl Out {
    pub(super) fn records(&self) -> &[Record] {
        match self {
            Out::New(records) => records,
            Out::Old { table, block, .. } => table.block(*block),
        }
    }
}

/// What a merge is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Records that fit into a block: B.
    pub(super) per_block: usize,
    /// Whether blocks may be kept.
    pub(super) reuse: bool,
    /// Whether tombstones have nothing left to hide.
    pub(super) bottom: bool,
    /// Records in the block of the target before the output, if there is one.
    pub(super) before: Option<usize>,
    /// Empty slots that merges into the level have added since it was last compacted, less those
    /// that they took; and how many they are allowed with this one.
    pub(super) empty: i64,
    pub(super) allowed: i64,
}

struct Merger {
    rules: Rules,
    out: Vec<Out>,
    open: Vec<Record>,
    empty: i64,
}

/// Merges `newer` over `older`: the blocks that come out.
pub(super) fn merge(mut newer: Side, mut older: Side, rules: Rules) -> Vec<Out> {
    let open = Vec::with_capacity(rules.per_block);
    let mut merger = Merger { empty: rules.empty, rules, out: Vec::new(), open };
    loop {
        let (up, down) = (newer.peek(), older.peek());
        match (up, down) {
            (None, None) => break,
            (Some(up), Some(down)) if up.key == down.key => {
                merger.take_slots(&older);
                if let Some(kind) = up.kind.over(down.kind) {
                    merger.add(Record { key: up.key, kind });
                }
                newer.step();
                older.step();
            }
            (Some(up), down) if down.is_none_or(|down| up.key < down.key) => {
                if !merger.keep(&mut newer, down) {
                    merger.add(up);
                    newer.step();
                }
            }
            (_, Some(down)) => {
                merger.take_slots(&older);
                if !merger.keep(&mut older, up) {
                    merger.add(down);
                    older.step();
                }
            }
            (Some(_), None) => unreachable!("taken above"),
        }
    }
    merger.finish()
}

impl Merger {
    /// Room in a block of `records`.
    fn room(&self, records: usize) -> i64 {
        self.rules.per_block as i64 - records as i64
    }

    /// A block of the older side that is begun gives its empty slots back.
    fn take_slots(&mut self, older: &Side) {
        if older.is_at_start()
            && let Some(block) = older.current()
        {
            self.empty -= self.room(block.len());
        }
    }

    fn last_len(&self) -> Option<usize> {
        self.out.last().map(|out| out.records().len()).or(self.rules.before)
    }

    fn add(&mut self, record: Record) {
        if self.rules.bottom && record.kind.is_tombstone() {
            return;
        }
        self.open.push(record);
        if self.open.len() == self.rules.per_block {
            self.write();
        }
    }

    fn write(&mut self) {
        let block = std::mem::replace(&mut self.open, Vec::with_capacity(self.rules.per_block));
        self.empty += self.room(block.len());
        self.out.push(Out::New(block));
    }

    /// Keeps the block of `side` that begins here, if that is possible and allowed.
    fn keep(&mut self, side: &mut Side, other: Option<Record>) -> bool {
        if !self.rules.reuse || !side.keeps || !side.is_at_start() {
            return false;
        }
        let Some(block) = side.current() else { return false };
        let last = block[block.len() - 1].key;
        let tombs = |record: &Record| record.kind.is_tombstone();
        if other.is_some_and(|other| other.key <= last)
            || (self.rules.bottom && block.iter().any(tombs))
            || !self.may_keep(block.len())
        {
            return false;
        }
        let len = block.len();
        let part = &side.parts[side.part];
        let out = Out::Old { id: part.id, table: Arc::clone(&part.table), block: side.block };
        if !self.open.is_empty() {
            self.write();
        }
        self.empty += self.room(len);
        self.out.push(out);
        side.skip();
        true
    }

    /// Pairwise and level-wise waste, were a block of `len` records kept now.
    fn may_keep(&self, len: usize) -> bool {
        let per_block = self.rules.per_block;
        let open = self.open.len();
        let pairs = match open {
            0 => self.last_len().is_none_or(|last| last + len > per_block),
            _ => {
                self.last_len().is_none_or(|last| last + open > per_block) && open + len > per_block
            }
        };
        let open_room = if open > 0 { self.room(open) } else { 0 };
        let empty = self.empty + open_room + self.room(len);
        pairs && empty <= self.rules.allowed - per_block as i64 + 1
    }

    fn finish(mut self) -> Vec<Out> {
        if !self.open.is_empty() {
            // The scan cannot see that its last short block fits into a kept one before it.
            let fits = |out: &Out| out.records().len() + self.open.len() <= self.rules.per_block;
            if self.out.last().is_some_and(fits)
                && let Some(before) = self.out.pop()
            {
                let mut block = before.records().to_vec();
                block.append(&mut self.open);
                self.open = block;
            }
            self.write();
        }
        self.out
    }
}
