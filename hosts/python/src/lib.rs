//! lsmith for Python. The package `lsmith` in `python/` is what users see; this is its inside.
//!
//! Results of the lab go to Python as JSON, because their names are the same in `lsmith --json`.

#![allow(clippy::disallowed_methods, reason = "the lab reads files that its caller names")]

mod error;
mod held;
mod lab;
mod policy;
mod store;
mod transaction;

use pyo3::prelude::*;

/// The native part of the package `lsmith`.
#[pymodule]
mod _lsmith {
    #[pymodule_export]
    use crate::error::Error;
    #[pymodule_export]
    use crate::lab::{check_laws, compare, doctor, model, policies, simulate, tune};
    #[pymodule_export]
    use crate::store::{Batch, Items, Keyspace, Snapshot, Store};
    #[pymodule_export]
    use crate::transaction::Transaction;
}
