//! Keyspaces whose tables are append tables.

mod keyspaces;
mod side_by_side;
mod space;
mod stop_points;
