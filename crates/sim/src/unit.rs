//! Unit content: tables have a size and nothing else.

use crate::{Content, SimError};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_tree::{
    Input, Key, KeyRange, LevelId, MergePlan, Outcome, Place, ProfilePoint, SeqNo, Size, Slice,
    Table, TableId, Tree,
};

/// Bytes that stand for a flush of size one.
pub const UNIT_BYTES: u64 = 1 << 20;

/// The key at which the first piece of a table ends: the eight bytes of the number 1.
const FIRST_CUT: &[u8] = &1u64.to_be_bytes();

/// Counts by size alone, as Mao et al. do: data never overlap, nothing becomes obsolete.
///
/// A merged run is as large as its inputs together. Where a piece is merged into a run that stays
/// (the levels of a leveled tree), it meets `ratio` times its own size there, or all there is;
/// moving a piece costs as much as writing it. Ranges play no part: every table covers all keys,
/// and each run is one table. A table that a plan with a cut rule wrote has a profile point where
/// the first piece of that size ends, so that a policy can cut one piece off; what remains is
/// then a new table that covers all keys again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitContent {
    ratio: f64,
}

impl UnitContent {
    /// The content of trees that `policy` shapes.
    pub fn of(policy: &dyn MergePolicy) -> UnitContent {
        match policy.shape() {
            Shape::Leveled { ratio, .. } => UnitContent { ratio },
            Shape::Unmerged | Shape::Stack { .. } | Shape::Tiered { .. } => {
                UnitContent { ratio: f64::INFINITY }
            }
        }
    }

    /// The memtable that is sealed next: `bytes` of anything.
    pub fn memtable(tree: &Tree, bytes: u64) -> Slice {
        table(tree.next_table(), bytes, None)
    }

    /// What of `bytes` in the target is rewritten when a piece of `piece_bytes` joins it.
    fn overlap(self, piece_bytes: u64, bytes: u64) -> u64 {
        // The cast saturates, so an infinite ratio takes all.
        bytes.min((self.ratio * piece_bytes as f64) as u64)
    }
}

/// A table that covers all keys, and where a first piece of it ends.
fn table(id: TableId, bytes: u64, piece_bytes: Option<u64>) -> Slice {
    let cut = piece_bytes.filter(|piece| *piece < bytes);
    let point = |piece: u64| ProfilePoint {
        key: Key::from(FIRST_CUT),
        below: Size::of_bytes(piece),
        after: None,
    };
    let profile = cut.map(point).into_iter().collect();
    Slice::whole(Table {
        id,
        root: 0,
        range: KeyRange::ALL,
        size: Size::of_bytes(bytes),
        seq_min: SeqNo(0),
        seq_max: SeqNo(0),
        profile,
    })
}

impl Content for UnitContent {
    const MOVES_ARE_MERGES: bool = true;

    fn carry_out(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        let target = match plan.place {
            Place::Into(target) => Some(target),
            Place::Append(_) | Place::Nowhere => return Err(unsupported(plan)),
            Place::Oldest | Place::NewRun(_) | Place::Above(_) => None,
        };
        let mut outcome = Outcome::default();
        let mut next_table = tree.next_table();
        let mut new = |bytes| {
            let slice = table(next_table, bytes, plan.cut_bytes);
            next_table.0 += 1;
            slice
        };
        let inputs = plan.inputs.iter().filter(|input| Some(input.run) != target);
        for input in inputs {
            let Some((level, run)) = tree.run(input.run) else { continue };
            let size = run.size_within(&input.range);
            match level {
                LevelId::Memory => outcome.from_memory += size,
                LevelId::Disk(_) => outcome.read += size,
            }
            if size.bytes < run.bytes() {
                outcome.rewritten.push((Input::all(run.id()), vec![new(run.bytes() - size.bytes)]));
            }
        }
        let pieces = outcome.from_memory.bytes + outcome.read.bytes;
        let old = target.and_then(|target| tree.run(target)).map_or(0, |(_, run)| run.bytes());
        let overlap = self.overlap(pieces, old);
        outcome.read += Size::of_bytes(overlap);
        outcome.written = Size::of_bytes(pieces + overlap);
        outcome.slices = vec![new(pieces + old)];
        Ok(outcome)
    }

    fn rest(&mut self, _: &Tree) {}
}

fn unsupported(plan: &MergePlan) -> SimError {
    let what = "unit content knows neither append tables nor tombstones";
    SimError::Unsupported { plan: Box::new(plan.clone()), what }
}
