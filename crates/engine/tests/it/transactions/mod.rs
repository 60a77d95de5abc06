//! Transactions.

mod commits;
mod ends;
mod expiry;
mod inserts;
mod operands;
mod ranges;
mod updates;
