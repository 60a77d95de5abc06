//! The memory that stores hold.

mod budget;
mod limits;
mod merges;
mod sealing;
mod shared;
