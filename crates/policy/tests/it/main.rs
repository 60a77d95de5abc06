//! What every policy must do, and what each one does.

mod autumn;
mod broken;
mod constructors;
mod free;
mod fuzz;
mod jungle;
mod laws;
mod scripts;
