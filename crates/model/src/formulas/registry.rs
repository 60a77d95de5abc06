//! Formulas by name.

mod leveled;
mod others;

pub use leveled::{grown, sizes_of};
pub use others::jungle_trees;

use crate::cost::{Bound, Ignored, KeyOrder, Model, Setting};
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
    let info = find(spec)?;
    let names: Vec<&str> = info.params.iter().map(|param| param.name).collect();
    (info.evaluate)(&Params::new(spec, &names, 0)?, setting)
}

/// Tables of fewer entries than this often overlap no other table.
const TABLE_ENTRIES_MIN: f64 = 16.0;

/// Returns whether the write cost by the formula that `spec` names is a bound in this setting.
///
/// # Errors
/// Fails if no formula has that name.
pub fn bound(spec: &Spec, setting: &Setting<'_>) -> Result<Option<Bound>, SpecError> {
    let info = find(spec)?;
    Ok(match (info.name, spec.param("pick")) {
        // All tables are moved.
        ("leveled", _) if setting.order == KeyOrder::Ascending => None,
        // Formulas of levels take tables to lie side by side. Tables of few entries leave gaps, and
        // what goes down between them is moved.
        ("leveled", _) if setting.sealed() < TABLE_ENTRIES_MIN => Some(Bound::Upper),
        // The formula takes the oldest piece to be the next one in a strict sweep, but the newest
        // entry of a table says little about its age. A nearly random choice costs more.
        ("leveled", Some("oldest")) => Some(Bound::Lower),
        _ => info.bound,
    })
}

/// Returns what the formula that `spec` names does not know of the requests of `setting`.
///
/// # Errors
/// Fails if no formula has that name.
pub fn ignored(spec: &Spec, setting: &Setting<'_>) -> Result<Vec<Ignored>, SpecError> {
    let matters = |ignored: &Ignored| match ignored {
        Ignored::KeyOrder => setting.order == KeyOrder::Ascending,
        _ => true,
    };
    Ok(find(spec)?.ignores.iter().copied().filter(matters).collect())
}

fn find(spec: &Spec) -> Result<FormulaInfo, SpecError> {
    let all = formulas();
    let names: Vec<&str> = all.iter().map(|info| info.name).collect();
    let found = all.iter().find(|info| info.name == spec.name);
    found.copied().ok_or_else(|| SpecError::unknown("formula", &spec.name, &names))
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
