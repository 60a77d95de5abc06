//! Scales a workload down.

use crate::inputs::FileInputs;
use anyhow::Result;
use lsmith_spec::{Spec, format_count, parse_count};
use lsmith_workload::Workload;

/// The parameters that are amounts.
const AMOUNTS: [&str; 4] = ["keys", "records", "ops", "bytes"];

/// Returns `workload` with all amounts of its spec divided by `shrink`, but at least 1. A trace is
/// cut to its beginning.
///
/// # Errors
/// Fails if a file of the workload cannot be read again.
pub(super) fn shrunk(workload: &Workload, shrink: f64) -> Result<Workload> {
    let spec = workload.spec();
    if shrink <= 1.0 {
        return Ok(Workload::from_spec(spec, &FileInputs)?);
    }
    let smaller = |text: &str| {
        let count = parse_count(text).ok()?;
        Some(format_count(((count as f64 / shrink) as u64).max(1)))
    };
    let mut params: Vec<(String, String)> = spec.params.clone();
    for (name, value) in &mut params {
        if let (true, Some(less)) = (AMOUNTS.contains(&name.as_str()), smaller(value)) {
            *value = less;
        }
    }
    let is_counted = params.iter().any(|(name, _)| AMOUNTS.contains(&name.as_str()));
    let mut spec = Spec { params, ..spec.clone() };
    if !is_counted {
        let ops = (workload.ops_max() as f64 / shrink) as u64;
        spec = spec.with("ops", format_count(ops.max(1)));
    }
    Ok(Workload::from_spec(&spec, &FileInputs)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_workload::NoInputs;

    #[test]
    fn everything_counted_shrinks_alike() {
        for (spec, expected) in [
            ("load(keys=1M)", (250_000, 250_000)),
            ("churn(keys=1M, ops=8M)", (250_000, 2_000_000)),
            ("ycsb(a, records=100k, ops=200k)", (25_000, 75_000)),
        ] {
            let workload = Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap();
            let smaller = shrunk(&workload, 4.0).unwrap();
            assert_eq!((smaller.items(), smaller.ops_max()), expected, "{spec}");
            assert_eq!(shrunk(&workload, 0.5).unwrap().spec(), workload.spec());
        }
    }
}
