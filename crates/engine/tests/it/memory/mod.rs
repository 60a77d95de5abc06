//! The memory that stores hold.

mod budget;
mod merges;
mod sealing;
