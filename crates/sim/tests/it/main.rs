//! Simulations against published numbers, models and each other.

mod blocks;
mod common;
mod drive;
mod figures;
mod keyed;
mod reference;
mod states;
