//! What many tests stand on: environments, contents, operators, waiting.

pub(crate) mod all_files;
pub(crate) mod append_table_parts;
pub(crate) mod batches;
pub(crate) mod contents;
pub(crate) mod faults;
pub(crate) mod file_parts;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod mounts;
pub(crate) mod operators;
pub(crate) mod scripted;
pub(crate) mod small;
pub(crate) mod stops;
pub(crate) mod watchdog;
pub(crate) mod watched;
