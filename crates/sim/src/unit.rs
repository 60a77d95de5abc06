//! Unit content: tables have a size and no entries.

use crate::{Content, SimError};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_tree::{
    Input, Key, KeyRange, LevelId, MergePlan, Outcome, Place, Profile, ProfilePoint, SeqNo, Size,
    Slice, Table, TableId, Tree,
};

/// The bytes of a flush of size one.
pub const UNIT_BYTES: u64 = 1 << 20;

/// The key at which the first piece of a table ends: the eight bytes of the number 1.
const FIRST_CUT: &[u8] = &1u64.to_be_bytes();

/// Counts by size alone, as Mao et al. do: tables never overlap, and no entry becomes obsolete.
///
/// A merged run is as large as its inputs together. A piece that is merged into a run that stays
/// (in a leveled tree) overlaps `ratio` times its own size there, or the whole run if that is less.
/// A piece smaller than a table overlaps as much as a table. Moving a piece costs as much as
/// writing it. Key ranges are ignored: every table covers all keys, and each run is one table. So
/// policies that take windows of keys cannot be simulated.
///
/// A table that was written with a cut rule has one profile point, where the first piece of that
/// size ends, so that a policy can cut one piece off. The rest is then a new table that covers all
/// keys.
///
/// What is appended to a run of append tables costs its own size, and nothing is rewritten.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitContent {
    ratio: f64,
    /// The profile of the tables that were cut last, and the bytes of their pieces.
    piece: (u64, Profile),
}

impl UnitContent {
    /// Returns the content for trees of the shape of `policy`.
    pub fn of(policy: &dyn MergePolicy) -> UnitContent {
        let ratio = match policy.shape() {
            Shape::Leveled { ratio, .. } => ratio,
            Shape::Unmerged | Shape::Stack { .. } | Shape::Tiered { .. } => f64::INFINITY,
        };
        UnitContent { ratio, piece: (0, Profile::default()) }
    }

    /// Returns the next sealed memtable, of `bytes` bytes.
    pub fn memtable(tree: &Tree, bytes: u64) -> Slice {
        table(tree.next_table(), bytes, Profile::default(), 0)
    }

    /// Returns how many of the `bytes` of the target are rewritten when a piece of `piece_bytes` is
    /// merged into it, in tables of `table_bytes`.
    fn overlap(&self, piece_bytes: u64, table_bytes: u64, bytes: u64) -> u64 {
        // The cast saturates, so that an infinite ratio takes the whole target.
        bytes.min((self.ratio * piece_bytes.max(table_bytes) as f64) as u64)
    }

    /// Returns the profile of a table of `bytes` that a plan cuts at `piece_bytes`. Tables share
    /// it, since policies keep asking for the same pieces.
    fn profile(&mut self, bytes: u64, piece_bytes: Option<u64>) -> Profile {
        let Some(piece) = piece_bytes.filter(|piece| *piece < bytes) else {
            return Profile::default();
        };
        if self.piece.0 != piece {
            let key = Key::from(FIRST_CUT);
            let below = Size::of_bytes(piece);
            self.piece = (piece, vec![ProfilePoint { key, below, after: None }].into());
        }
        self.piece.1.clone()
    }
}

/// Returns a table that covers all keys, with this `root`.
fn table(id: TableId, bytes: u64, profile: Profile, root: u64) -> Slice {
    Slice::whole(Table {
        id,
        root,
        range: KeyRange::ALL,
        size: Size::of_bytes(bytes),
        dead_bytes: 0,
        born: 0,
        deletes_applied: lsmith_tree::SeqNo(0),
        expires: 0,
        oldest_tombstone: 0,
        seq_min: SeqNo(0),
        seq_max: SeqNo(0),
        profile,
    })
}

impl Content for UnitContent {
    const MOVES_ARE_MERGES: bool = true;

    fn carry_out(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
    ) -> Result<(), SimError> {
        let target = match plan.place {
            Place::Into(target) | Place::Append(target) => Some(target),
            Place::Oldest | Place::NewRun(_) | Place::NewAppend(_) => None,
        };
        // Nothing overlaps, so that append tables never have dead space, and one is never cut.
        let is_tree = plan.makes_append();
        let cut_bytes = plan.cut_bytes.filter(|_| !is_tree);
        let mut next_table = tree.next_table();
        let mut new = |content: &mut UnitContent, bytes| {
            let profile = content.profile(bytes, cut_bytes);
            let slice = table(next_table, bytes, profile, u64::from(is_tree));
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
                let rest = new(self, run.bytes() - size.bytes);
                outcome.rewritten.push((Input::all(run.id()), vec![rest]));
            }
        }
        let pieces = outcome.from_memory.bytes + outcome.read.bytes;
        let old = target.and_then(|target| tree.run(target)).map_or(0, |(_, run)| run.bytes());
        let overlap = match plan.place {
            Place::Append(_) if pieces > 0 => 0,
            Place::Append(_) => old,
            _ => self.overlap(pieces, plan.cut_bytes.unwrap_or(0), old),
        };
        outcome.read += Size::of_bytes(overlap);
        outcome.written = Size::of_bytes(pieces + overlap);
        outcome.slices = vec![new(self, pieces + old)];
        Ok(())
    }

    fn rest(&mut self, _: &Tree) {}
}
