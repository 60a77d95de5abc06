//! What no plan may ever do: change an answer.

mod model;
mod mutated;
mod random;
mod reads;
