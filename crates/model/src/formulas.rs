//! Formulas by name: one file per family, each with its source.
//!
//! [`formulas`] lists them, [`evaluate`] evaluates one that a spec names. The structs and functions
//! behind them take numbers instead of spellings.

mod append_nodes;
mod batches;
mod cola;
mod info;
mod interval;
mod jungle;
mod jungle_tables;
mod leveldb;
mod mathieu;
mod memory_buffer;
mod partial;
mod registry;
mod schedule;
mod silt;
pub(crate) mod sizes;
mod stack;
mod textbook;
mod triangular;
mod universal;
mod whole_level;

pub use append_nodes::{AppendLevel, AppendNodes};
pub use batches::{BatchedTable, batched_scan_blocks};
pub use cola::{SlotModel, Slots};
pub use info::{FormulaInfo, FormulaParam};
pub use interval::IntervalModel;
pub use jungle::{IndexShare, JungleModel};
pub use jungle_tables::{DeadShare, JungleTables};
pub use leveldb::{LeveledModel, Sweep};
pub use mathieu::{bounded_runs, least_with_runs, write_cost_bound};
pub use memory_buffer::MemoryBufferModel;
pub use partial::{Take, partial};
pub use registry::{bound, evaluate, formulas, grown, ignored, jungle_tables, sizes_of};
pub use schedule::{RunMerge, carried_out, scheduled};
pub use silt::SiltModel;
pub use stack::{constant, tiered, unmerged};
pub use textbook::Textbook;
pub use triangular::{triangular, triangular_levels};
pub use universal::UniversalModel;
pub use whole_level::WholeLevelModel;
