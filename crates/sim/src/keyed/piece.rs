//! What a run shows of one table, looked into only where that is needed.

use super::entry::Record;
use super::table::{Part, rank_from};
use super::tables::Tables;
use lsmith_tree::blocks::room;
use lsmith_tree::{Size, Slice};
use std::sync::Arc;

/// What a run shows of one table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'a, R> {
    /// A slice that is one block. As long as that is kept there is no need to look at its entries,
    /// which is mostly a look at memory that no cache holds: the slice says it all.
    Block(&'a Slice, Part<'a, R>),
    /// Entries.
    Part(Part<'a, R>),
}

impl<'a, R: Record> Piece<'a, R> {
    /// What `slice` shows.
    #[inline]
    pub(super) fn of(slice: &'a Slice, tables: &'a Tables<R>) -> Piece<'a, R> {
        let part = tables.of(slice).shown(slice);
        match slice.cell_count() == 1 && slice.is_of_cells() {
            true => Piece::Block(slice, part),
            false => Piece::Part(part),
        }
    }

    /// Its entries.
    #[inline]
    pub(super) fn part(&self) -> Part<'a, R> {
        match self {
            Piece::Block(_, part) | Piece::Part(part) => *part,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Piece::Part(part) if part.from == part.upto)
    }

    /// The rank of the first entry.
    #[inline]
    pub(super) fn first_rank(&self) -> u64 {
        match self {
            Piece::Block(slice, _) => slice.range().start.prefix(),
            Piece::Part(part) => u64::from(part.held.entries[part.from].rank()),
        }
    }

    /// The least rank above all entries.
    #[inline]
    pub(super) fn end_rank(&self) -> u64 {
        match self {
            Piece::Block(slice, _) => {
                slice.range().end.as_ref().map_or(u64::MAX, |end| rank_from(end))
            }
            Piece::Part(part) => part.entries().last().map_or(0, |last| u64::from(last.rank()) + 1),
        }
    }

    /// What it comes to.
    #[inline]
    pub(super) fn size(&self) -> Size {
        match self {
            Piece::Block(slice, _) => slice.size(),
            Piece::Part(part) => part.size(),
        }
    }

    /// How many blocks it has.
    pub(super) fn block_count(&self) -> u64 {
        match self {
            Piece::Block(..) => 1,
            Piece::Part(part) => part.block_count(),
        }
    }

    /// Its blocks.
    pub(super) fn blocks(self) -> impl Iterator<Item = Piece<'a, R>> {
        let (block, part) = match self {
            Piece::Block(..) => (Some(self), None),
            Piece::Part(part) => (None, Some(part)),
        };
        block.into_iter().chain(part.into_iter().flat_map(Part::blocks).map(Piece::Part))
    }

    /// Empty room in its blocks.
    pub(super) fn room(&self, full_bytes: u64) -> u64 {
        match self {
            Piece::Block(slice, _) => room(full_bytes, slice.size().bytes),
            Piece::Part(part) => {
                part.blocks().map(|block| room(full_bytes, block.block_size().bytes)).sum()
            }
        }
    }

    /// Whether `next` is what lies behind this in the same table.
    #[inline]
    pub(super) fn is_followed_by(&self, next: &Piece<'a, R>) -> bool {
        let (part, next) = (self.part(), next.part());
        std::ptr::eq(part.held, next.held) && part.upto == next.from
    }

    /// The slice that shows it.
    pub(super) fn slice(&self) -> Option<Slice> {
        match self {
            Piece::Block(slice, _) => Some(Slice::clone(slice)),
            Piece::Part(part) => {
                let table = Arc::clone(&part.held.table);
                match part.is_of_cells() {
                    true => Some(Slice::of_cells(table, part.point..part.last + 1)),
                    false => Slice::whole(table).clip(&part.range()),
                }
            }
        }
    }
}
