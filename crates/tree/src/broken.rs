//! The rules that trees and plans can break.

use crate::run::RunId;
use crate::slice::TableId;
use crate::tree::LEVELS_MAX;
use std::fmt;

/// The most slices of a run. Plans that would add to a run with this many are refused.
pub const SLICES_MAX: usize = 1 << 20;

/// What is wrong with a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// Two slices of a run are out of order or share a key.
    Disorder {
        /// The run.
        run: RunId,
        /// The index of the second slice of the two.
        slice: usize,
    },
    /// A slice has an empty range.
    BadSlice {
        /// The run.
        run: RunId,
        /// The index of the slice.
        slice: usize,
    },
    /// A table's profile is not ascending, or leaves its range or size.
    BadProfile {
        /// The table.
        table: TableId,
    },
    /// A key of a table is visible through two slices.
    SeenTwice {
        /// The table.
        table: TableId,
    },
    /// Two runs share a name.
    SameName {
        /// The name.
        run: RunId,
    },
    /// A run has no slices.
    EmptyRun {
        /// The run.
        run: RunId,
    },
    /// A run or table has a name that would be given again.
    NameAhead {
        /// The run.
        run: RunId,
    },
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::Disorder { run, slice } => {
                write!(f, "slice {slice} of run {run} overlaps or precedes the one before it")
            }
            TreeError::BadSlice { run, slice } => {
                write!(f, "slice {slice} of run {run} is empty")
            }
            TreeError::BadProfile { table } => write!(f, "the profile of {table} does not ascend"),
            TreeError::SeenTwice { table } => write!(f, "two slices of {table} share a key"),
            TreeError::SameName { run } => write!(f, "two runs have the name {run}"),
            TreeError::EmptyRun { run } => write!(f, "run {run} has no slices"),
            TreeError::NameAhead { run } => {
                write!(f, "run {run} or one of its tables has a name that is not in use yet")
            }
        }
    }
}

impl std::error::Error for TreeError {}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The plan has no inputs.
    NoInputs,
    /// The tree has no run of that name.
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// An input takes nothing: its run has no keys in its range.
    EmptyInput {
        /// The run.
        run: RunId,
    },
    /// A run is named twice, or the inputs are not given newest first.
    InputOrder {
        /// The run.
        run: RunId,
    },
    /// Age: the plan passes over a run that holds keys it takes from newer or older runs.
    SkipsRun {
        /// The run that must be taken too, over all the keys of the plan.
        run: RunId,
    },
    /// The target run keeps keys within the hull of the output.
    Straddles {
        /// The target.
        run: RunId,
    },
    /// The output would be placed in memory.
    OutputInMemory {
        /// The run named as neighbour.
        run: RunId,
    },
    /// The level is deeper than a tree can be.
    TooDeep {
        /// The level.
        level: usize,
    },
    /// A drop takes from memory or from several runs, or it takes entries that no range delete
    /// hides and that lie over older ones of their keys.
    CannotDrop {
        /// The run.
        run: RunId,
    },
    /// A policy that is not one that drops data would drop some.
    MayNotDrop {
        /// The run.
        run: RunId,
    },
    /// A cut, overlap or reuse size of zero bytes.
    ZeroBytes,
    /// The keys at which the output is cut do not ascend.
    CutOrder,
    /// The output is cut at keys, but the plan keeps blocks.
    CutsBlocks,
    /// The plan keeps blocks, but its output are append tables, which have none.
    KeepsBlocksOfAppend,
    /// A move would relabel slices from memory, or slices that share keys.
    CannotMove {
        /// The run.
        run: RunId,
    },
    /// Only an append table that is one whole slice, and taken whole, may be appended to, and
    /// only what is newer.
    CannotAppend {
        /// The run.
        run: RunId,
    },
    /// The plan takes some members of a knot and leaves another.
    TearsKnot {
        /// The member left out.
        run: RunId,
    },
    /// The plan reaches into a part of the tree that another plan has reserved.
    Reserved {
        /// The index of the reservation in the view.
        reservation: usize,
    },
    /// The target run has as many slices as a run may have.
    TooManySlices {
        /// The run.
        run: RunId,
    },
    /// Conservation: entries went missing or came from nowhere.
    NotConserved {
        /// Entries of all inputs.
        entries_in: u64,
        /// Entries written, taken over and dropped by the merge rules.
        entries_out: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NoInputs => f.write_str("the plan has no inputs"),
            PlanError::UnknownRun { run } => write!(f, "the tree has no run {run}"),
            PlanError::EmptyInput { run } => write!(f, "run {run} has no keys in the range taken"),
            PlanError::InputOrder { run } => {
                write!(f, "input {run} is named twice or is newer than the input before it")
            }
            PlanError::SkipsRun { run } => {
                write!(
                    f,
                    "run {run} lies between an input and the output, and holds keys of the input"
                )
            }
            PlanError::Straddles { run } => {
                write!(f, "run {run} takes the output in, and would keep keys within its key range")
            }
            PlanError::OutputInMemory { run } => {
                write!(f, "the output would be placed in memory, beside run {run}")
            }
            PlanError::TooDeep { level } => {
                write!(f, "level {level} is too deep: a tree has at most {LEVELS_MAX} levels")
            }
            PlanError::ZeroBytes => f.write_str("the plan has a cut or reuse size of 0 bytes"),
            PlanError::CutOrder => f.write_str("the keys at which the output is cut do not ascend"),
            PlanError::CutsBlocks => {
                f.write_str("the output is cut at keys, and the plan keeps blocks")
            }
            PlanError::KeepsBlocksOfAppend => {
                f.write_str("the plan keeps blocks, and its output are append-only tables")
            }
            PlanError::CannotMove { run } => {
                write!(
                    f,
                    "slices of run {run} are in memory, or share keys with other moved slices"
                )
            }
            PlanError::CannotDrop { run } => {
                write!(f, "run {run} is in memory or over older keys: it cannot be dropped alone")
            }
            PlanError::MayNotDrop { run } => {
                write!(f, "run {run} would be dropped by a policy that does not say that it drops")
            }
            PlanError::CannotAppend { run } => {
                write!(
                    f,
                    "run {run} has a table that is not append-only or not taken whole, or is newer \
                     than an input, so nothing can be appended"
                )
            }
            PlanError::TearsKnot { run } => {
                write!(f, "run {run} is in a knot with an input, and keeps keys of the input")
            }
            PlanError::Reserved { reservation } => {
                write!(f, "the plan conflicts with reservation {reservation}")
            }
            PlanError::TooManySlices { run } => {
                write!(f, "run {run} has {SLICES_MAX} slices or more")
            }
            PlanError::NotConserved { entries_in, entries_out } => {
                write!(f, "{entries_in} entries were read, but {entries_out} written or dropped")
            }
        }
    }
}

impl std::error::Error for PlanError {}
