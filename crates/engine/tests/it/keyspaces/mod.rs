//! Keyspaces: made, changed, dropped, grouped.

mod changes;
mod groups;
mod many;
mod stops;
