//! Classes: keys that are requested equally often.

/// Keys that are requested equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// The number of keys.
    pub keys: f64,
    /// The probability that a request is for one given key of the class.
    pub probability: f64,
}

/// A class, with what sums over classes need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    /// The number of keys times the mean size of their entries, in entries of mean size.
    pub(crate) weight: f64,
    /// `ln(1 - probability)`, finite.
    pub(crate) ln_miss: f64,
}
