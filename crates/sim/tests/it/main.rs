//! Simulations against published numbers, models and each other.

mod blocks;
mod bounds;
mod caches;
mod causes;
mod common;
mod cuts;
mod drive;
mod figures;
mod fluid;
mod fluid_append;
mod fluid_counted;
mod held_out;
mod jungle;
mod kept;
mod keyed;
mod learning;
mod lethe;
mod optimum;
mod reference;
mod states;
mod steps;
mod theorems;
mod time;
mod triangular;
