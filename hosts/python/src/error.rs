//! Errors as exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    _lsmith,
    Error,
    PyException,
    "What failed, where, and the way out. `kind` is the kind of a store's error, or None."
);

/// Returns the exception with the text of `error`, and its kind if a store failed.
pub(crate) fn raised(error: &anyhow::Error) -> PyErr {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<lsmith::Error>());
    of_kind(format!("{error:#}"), kind.map(|error| format!("{:?}", error.kind())))
}

/// Returns the exception of a store's error.
pub(crate) fn of_store(error: &lsmith::Error) -> PyErr {
    of_kind(error.to_string(), Some(format!("{:?}", error.kind())))
}

/// Returns the exception of a bad argument.
pub(crate) fn bad_argument(error: impl std::fmt::Display) -> PyErr {
    of_kind(error.to_string(), None)
}

fn of_kind(text: String, kind: Option<String>) -> PyErr {
    Python::attach(|py| {
        let raised = Error::new_err(text);
        // An exception always takes attributes; without one it still has its text.
        let _ = raised.value(py).setattr("kind", kind);
        raised
    })
}
