//! Range deletes, feature by feature. The model test mixes them with all else.

mod reads;
mod sealed;
mod ties;
