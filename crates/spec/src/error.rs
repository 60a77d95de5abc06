//! Errors of specs.

use std::fmt;

use crate::nearest;

/// Why a spec, or one of its values, was refused.
///
/// Its `Display` is one line, in lower case and without a full stop, fit for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// The text does not follow the grammar.
    Syntax {
        /// Byte offset in the text that was parsed.
        at: usize,
        /// The text at that position, quoted, or `end of text`.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A parameter is given twice.
    Duplicate {
        /// Byte offset of the second one.
        at: usize,
        /// Name of the parameter.
        param: String,
    },
    /// An unknown name of a policy, a workload, a parameter or a choice.
    Unknown {
        /// What kind of name it is, for example `policy` or `parameter`.
        what: String,
        /// The name as written.
        found: String,
        /// The owner of the name, as `` of `tiered` ``; empty for names without an owner.
        of: String,
        /// The nearest known name, if one is near enough to be meant.
        nearest: Option<String>,
        /// All known names, in the order of the caller.
        known: Vec<String>,
    },
    /// A name of another system.
    Elsewhere {
        /// The name as written.
        found: String,
        /// The systems that have it.
        systems: String,
        /// What comes nearest to it here: specs in backquotes.
        here: String,
    },
    /// A value of the wrong kind for its parameter.
    Value {
        /// Name of the parameter; empty where a bare quantity was parsed.
        param: String,
        /// The value as written.
        found: String,
        /// What the parameter takes.
        expected: String,
    },
    /// A number that does not fit 64 bits.
    TooLarge {
        /// Name of the parameter; empty where a bare quantity was parsed.
        param: String,
        /// The value as written.
        found: String,
        /// The greatest number, with its unit.
        most: String,
    },
    /// A number outside the range of its parameter.
    OutOfRange {
        /// Name of the parameter.
        param: String,
        /// The value as written.
        found: String,
        /// The range in words, for example `1 to 64`.
        expected: String,
    },
    /// Too many arguments without a name.
    TooManyArguments {
        /// Name of the spec.
        spec: String,
        /// The first argument that is too many.
        found: String,
        /// The number of arguments that the spec takes.
        expected: usize,
    },
    /// An argument is missing that has no default.
    Missing {
        /// Name of the spec.
        spec: String,
        /// What is missing, for example `a file name`.
        expected: String,
    },
    /// Values that are legal one by one but not together. The message comes from the owner of the
    /// spec.
    Conflict {
        /// The whole message.
        message: String,
    },
}

impl SpecError {
    /// Returns an unknown name of the kind `what` ("policy", "workload"), with the nearest of
    /// `known`.
    #[must_use]
    pub fn unknown(what: impl Into<String>, found: &str, known: &[&str]) -> Self {
        Self::Unknown {
            what: what.into(),
            found: found.to_owned(),
            of: String::new(),
            nearest: nearest(found, known).map(str::to_owned),
            known: known.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// Returns the same error with `owner` as the owner of the unknown name.
    pub(crate) fn within(mut self, owner: &str) -> Self {
        if let Self::Unknown { of, .. } = &mut self {
            *of = format!(" of `{owner}`");
        }
        self
    }

    /// Returns the error for values that are not legal together. `message` is the whole message.
    #[must_use]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into() }
    }

    /// Returns the same error with the name of its parameter, which the parser of the value did not
    /// know.
    pub(crate) fn of_param(mut self, name: &str) -> Self {
        if let Self::Value { param, .. } | Self::TooLarge { param, .. } = &mut self {
            name.clone_into(param);
        }
        self
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { at, found, expected } => {
                write!(f, "at byte {at}: found {found}, expected {expected}")
            }
            Self::Duplicate { at, param } => {
                write!(f, "at byte {at}: parameter `{param}` is given twice")
            }
            Self::Unknown { what, found, of, nearest: Some(nearest), .. } => {
                write!(f, "unknown {what} `{found}`{of}; did you mean `{nearest}`?")
            }
            Self::Unknown { what, found, of, known, .. } if known.is_empty() => {
                write!(f, "unknown {what} `{found}`{of}: there are none")
            }
            Self::Unknown { what, found, of, known, .. } => {
                write!(f, "unknown {what} `{found}`{of}; expected one of: {}", known.join(", "))
            }
            Self::Elsewhere { found, systems, here } => {
                write!(f, "`{found}` is a name of {systems}; nearest here is {here}")
            }
            Self::Value { param, found, expected } if param.is_empty() => {
                write!(f, "`{found}` is not {expected}")
            }
            Self::Value { param, found, expected } => {
                write!(f, "{param} = {found} is not {expected}")
            }
            Self::TooLarge { param, found, most } if param.is_empty() => {
                write!(f, "`{found}` is too large: expected at most {most}")
            }
            Self::TooLarge { param, found, most } => {
                write!(f, "{param} = {found} is too large: expected at most {most}")
            }
            Self::OutOfRange { param, found, expected } => {
                write!(f, "{param} = {found} is out of range: expected {expected}")
            }
            Self::TooManyArguments { spec, found, expected: 0 } => {
                write!(f, "`{spec}` takes only parameters of the form name=value, found `{found}`")
            }
            Self::TooManyArguments { spec, found, expected } => {
                write!(f, "`{spec}` takes {expected} unnamed argument(s), found `{found}` as well")
            }
            Self::Missing { spec, expected } => write!(f, "`{spec}` needs {expected}"),
            Self::Conflict { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for SpecError {}
