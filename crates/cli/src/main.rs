//! The `lsmith` command.
fn main() {}
