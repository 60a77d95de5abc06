//! Death of the process, and loss of power.

mod accidents;
mod killed;
mod power;
mod stop_points;
