//! What is wrong with a file.

use std::fmt;

/// A file that cannot be read: which, where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorError {
    /// The name of the file, or of the directory.
    pub file: String,
    /// The place in the file, such as `offset 17` or `line 3`; empty for the whole file.
    pub place: String,
    /// What was expected and what was found.
    pub message: String,
}

impl DoctorError {
    pub(crate) fn at(offset: usize, message: impl Into<String>) -> DoctorError {
        let place = format!("offset {offset}");
        DoctorError { file: String::new(), place, message: message.into() }
    }

    /// Returns the error of line number `line`, counted from 1.
    pub(crate) fn line(line: usize, message: impl Into<String>) -> DoctorError {
        let place = format!("line {line}");
        DoctorError { file: String::new(), place, message: message.into() }
    }

    pub(crate) fn whole(file: &str, message: impl Into<String>) -> DoctorError {
        DoctorError { file: file.to_owned(), place: String::new(), message: message.into() }
    }

    pub(crate) fn of_file(self, file: &str) -> DoctorError {
        DoctorError { file: file.to_owned(), ..self }
    }
}

impl fmt::Display for DoctorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.file.is_empty() || self.place.is_empty() { "" } else { ", " };
        write!(f, "{}{comma}{}: {}", self.file, self.place, self.message)
    }
}

impl std::error::Error for DoctorError {}
