//! Formulas by name.

mod leveled;
mod others;

pub use leveled::{grown, sizes_of};
pub use others::jungle_tables;

use super::info::FormulaInfo;
use crate::cost::{Bound, Ignored, KeyOrder, Model, Setting};
use lsmith_spec::{Params, Spec, SpecError};

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
