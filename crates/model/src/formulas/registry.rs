//! Formulas by name.

mod leveled;
mod others;

use crate::cost::{Model, Setting};
use lsmith_spec::{Params, Spec, SpecError};

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
    /// The name in the spec: that of the policy if there is one.
    pub name: &'static str,
    /// The source of the formula.
    pub source: &'static str,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// Its parameters.
    pub params: &'static [FormulaParam],
    evaluate: fn(&Params<'_>, &Setting<'_>) -> Result<Model, SpecError>,
}

/// Returns every formula, in the order in which they are listed.
pub fn formulas() -> Vec<FormulaInfo> {
    let mut all = leveled::INFOS.to_vec();
    all.extend(others::INFOS);
    all
}

/// Returns the costs of the policy that `spec` names, by its formula.
///
/// # Errors
/// Fails if no formula has that name (the error suggests the nearest), a parameter is unknown, or a
/// value is out of range.
pub fn evaluate(spec: &Spec, setting: &Setting<'_>) -> Result<Model, SpecError> {
    let all = formulas();
    let Some(info) = all.iter().find(|info| info.name == spec.name) else {
        let names: Vec<&str> = all.iter().map(|info| info.name).collect();
        return Err(SpecError::unknown("formula", &spec.name, &names));
    };
    let names: Vec<&str> = info.params.iter().map(|param| param.name).collect();
    (info.evaluate)(&Params::new(spec, &names, 0)?, setting)
}

/// Returns a ratio of sizes, more than 1.
fn ratio(params: &Params<'_>, default: f64) -> Result<f64, SpecError> {
    let ratio = params.real("ratio", default, 1.0..=1000.0)?;
    if ratio > 1.0 {
        Ok(ratio)
    } else {
        Err(SpecError::conflict("ratio = 1 is out of range: expected more than 1"))
    }
}

/// Returns a size given in bytes, as entries.
fn entries(
    params: &Params<'_>,
    name: &str,
    default: u64,
    setting: &Setting<'_>,
) -> Result<f64, SpecError> {
    Ok(params.bytes(name, default, 1..=1 << 60)? as f64 / setting.item_bytes)
}
