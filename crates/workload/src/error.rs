//! Errors of workloads.

use std::fmt;

use lsmith_spec::SpecError;

/// Why a workload cannot be built, or why its stream of operations ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The spec cannot be parsed, or names an unknown workload or parameter.
    Spec(SpecError),
    /// An input file is missing, or incomplete as a whole.
    Input {
        /// The file as the spec names it.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// A line of an input file is malformed.
    Line {
        /// The file as the spec names it.
        file: String,
        /// The line, the first being 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// An entry of a binary input file is malformed.
    Entry {
        /// The file as the spec names it.
        file: String,
        /// The place of its first byte, from 0, in what a compressed file holds.
        offset: u64,
        /// What is wrong with it.
        message: String,
    },
}

impl WorkloadError {
    /// Returns the number of the malformed line of the input file, from 1.
    #[must_use]
    pub const fn line(&self) -> Option<u64> {
        match self {
            Self::Line { line, .. } => Some(*line),
            Self::Spec(_) | Self::Input { .. } | Self::Entry { .. } => None,
        }
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(error) => error.fmt(f),
            Self::Input { file, message } => write!(f, "{file}: {message}"),
            Self::Line { file, line, message } => write!(f, "{file}, line {line}: {message}"),
            Self::Entry { file, offset, message } => {
                write!(f, "{file}, entry at byte {offset}: {message}")
            }
        }
    }
}

// A wrapped error is printed as this error, so it is not also its source.
impl std::error::Error for WorkloadError {}

impl From<SpecError> for WorkloadError {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}
