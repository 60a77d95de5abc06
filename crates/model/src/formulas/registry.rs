//! Formulas by name.

mod leveled;
mod others;

use crate::cost::{Model, Setting};
use lsmith_spec::{Params, Spec, SpecError};

/// One parameter of a formula, for people to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormulaParam {
    /// The name in the spec.
    pub name: &'static str,
    /// The default, as it would be written.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A formula that a spec can name.
#[derive(Clone, Copy, Debug)]
pub struct FormulaInfo {
    /// The name in the spec; that of the policy where there is one.
    pub name: &'static str,
    /// Where the formula comes from.
    pub source: &'static str,
    /// What it says, in one sentence.
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

/// Returns what the policy that `spec` names costs, by its formula.
///
/// # Errors
/// No formula has that name (the error names the nearest one that has), a parameter is not known,
/// or a value is out of range.
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
