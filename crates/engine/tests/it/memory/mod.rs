//! The memory that stores hold.

mod budget;
// What the system says of the memory of a process, and groups that kill.
#[cfg(target_os = "linux")]
mod limits;
mod merges;
mod sealing;
mod shared;
