//! What plans and edits do to trees: no legal plan may change an answer.

mod model;
mod mutated;
mod random;
mod reads;
mod scripts;
