//! What no plan may ever do: change an answer.

mod model;
mod random;
mod reads;
