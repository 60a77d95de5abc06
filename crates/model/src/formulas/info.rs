//! What specs say of formulas.

use crate::cost::{Bound, Ignored, Model, Setting};
use lsmith_spec::{Params, SpecError};

/// The description of a parameter of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormulaParam {
    /// The name in the spec.
    pub name: &'static str,
    /// The default, as in a spec.
    pub default: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

/// A formula that a spec can name.
#[derive(Clone, Copy, Debug)]
pub struct FormulaInfo {
    /// The name in the spec: the policy's name if there is one.
    pub name: &'static str,
    /// The source of the formula.
    pub source: &'static str,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// Its parameters.
    pub params: &'static [FormulaParam],
    /// Whether its write cost is a bound.
    pub bound: Option<Bound>,
    /// What it does not know of the requests.
    pub ignores: &'static [Ignored],
    pub(super) evaluate: fn(&Params<'_>, &Setting<'_>) -> Result<Model, SpecError>,
}

/// Returns a ratio of sizes, more than 1.
pub(super) fn ratio(params: &Params<'_>, default: f64) -> Result<f64, SpecError> {
    let ratio = params.real("ratio", default, 1.0..=1000.0)?;
    if ratio > 1.0 {
        Ok(ratio)
    } else {
        Err(SpecError::conflict("ratio = 1 is out of range: expected more than 1"))
    }
}

/// Returns a size given in bytes, as entries.
pub(super) fn entries(
    params: &Params<'_>,
    name: &str,
    default: u64,
    setting: &Setting<'_>,
) -> Result<f64, SpecError> {
    Ok(params.bytes(name, default, 1..=1 << 60)? as f64 / setting.item_bytes)
}
