//! The nouns of an LSM tree, and the rules they keep.
//!
//! * [`KeyRange`]: keys from a start up to, not including, an end.
//! * [`Table`]: facts about an immutable sorted file, with a profile of what lies where in it.
//! * [`Slice`]: the part of a table within a key range.
//! * [`Run`]: disjoint slices in key order. [`Level`]: runs of one age class, newest first.
//! * [`Tree`]: levels, youngest first, below the sealed memtables.
//! * [`TreeView`]: the tree and all else that a merge policy may see.
//! * [`MergePlan`]: what a policy says; [`check_plan`] judges it.
//! * [`TreeEdit`]: one change of a tree; [`apply`] makes it.
//! * [`PlanCauses`]: why a plan writes what it writes.
//! * [`TableGraph`]: which tables are newer than which, where they may come from anywhere.
//! * [`blocks`]: how merges write and keep data blocks.
//!
//! ```text
//!            newest                                              oldest
//!  memory    r9[t9:a..z 4MiB]
//!  level 0   r8[t8:a..z 4MiB] r6[t6:b..z 4MiB]
//!  level 1   r7[t5:a..g 2MiB, t7:g..z 2MiB]
//! ```
//!
//! Everything here is a plain value with a [text form](text). Nothing here touches files, clocks,
//! threads or random numbers.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod blocks;
mod broken;
mod causes;
mod check;
mod cuts;
mod done;
mod dropped;
mod drops;
mod edit;
mod entry;
mod extent;
mod filled;
mod graph;
mod kept;
mod key;
mod level;
mod memo;
mod nodes;
mod plan;
mod profile;
mod range;
mod range_deletes;
mod reads;
mod run;
mod size;
mod slice;
mod slices;
pub mod text;
mod tree;
mod view;

pub use broken::{PlanError, SLICES_MAX, TreeError};
pub use causes::{Cause, Causes, PlanCauses};
pub use check::{check_plan, check_tree};
pub use cuts::{CutWalk, Cuts, Overlap};
pub use done::DoneReaders;
pub use dropped::{Dropped, DroppedPart};
pub use edit::{AddPlace, Addition, BlockCounts, EditError, Outcome, TreeEdit, apply};
pub use entry::{EntryKind, SeqNo, logical_bytes};
pub use graph::{GraphTable, TableGraph};
pub use kept::KeptTables;
pub use key::{Key, key_after};
pub use level::{Counters, Level};
pub use memo::{Memo, MemoChange, MemoName};
pub use nodes::{ReplacedNodes, node_bytes};
pub use plan::{Input, MergePlan, Mode, Place, Reason, Reuse};
pub use profile::{NumberPoint, PROFILE_STEP_BYTES, Profile, ProfilePoint};
pub use range::KeyRange;
pub use range_deletes::{RangeDeletePart, RangeDeleteWalk, RangeDeletes, Readers};
pub use reads::{Reads, ReadsPerMemtable};
pub use run::{KnotId, Run, RunId};
pub use size::Size;
pub use slice::{Cell, Slice, Table, TableId};
pub use slices::{CellIndex, CellPlace, Slices, SlicesIter};
pub use tree::{LEVELS_MAX, LevelId, Tree};
pub use view::{BLOCK_BYTES_USUAL, Reservation, ReservationState, TreeView};
