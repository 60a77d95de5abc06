//! What the checks find.

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file with the line, or the package.
    pub(super) place: String,
    pub(super) what: String,
    /// The line of `allowed.txt` that excuses it, if any can.
    pub(super) excuse: Option<String>,
}
