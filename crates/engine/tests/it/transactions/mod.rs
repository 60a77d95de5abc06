//! Transactions.

mod commits;
mod ends;
mod expiry;
mod inserts;
mod operands;
mod random;
mod ranges;
mod updates;
