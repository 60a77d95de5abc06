//! Simulations against published numbers, models and each other.

mod common;
mod drive;
mod figures;
mod keyed;
mod reference;
mod states;
