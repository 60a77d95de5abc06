//! Errors in the input of a formula.

use std::fmt;

/// Why a popularity or a formula was refused.
///
/// Its `Display` is one line, in lower case and without a full stop, fit for standard error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelError {
    /// There is no key, or no key is ever requested.
    NoKeys,
    /// A number outside the range of its formula.
    OutOfRange {
        /// The name of the number, for example `skew`.
        what: &'static str,
        /// The number.
        found: f64,
        /// The range in words, for example `0 to 1.6`.
        expected: &'static str,
    },
    /// The number of entry shapes differs from the number of key classes.
    ShapesDiffer {
        /// The number of classes.
        classes: usize,
        /// The number of shapes.
        shapes: usize,
    },
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeys => f.write_str("there is no key that is ever requested"),
            Self::OutOfRange { what, found, expected } => {
                write!(f, "{what} = {found} is out of range: expected {expected}")
            }
            Self::ShapesDiffer { classes, shapes } => {
                write!(f, "{classes} classes of keys need as many shapes of entries, not {shapes}")
            }
        }
    }
}

impl std::error::Error for ModelError {}
