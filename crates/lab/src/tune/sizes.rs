//! Sizes in bytes among the parameters of policies.

use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::{format_bytes, parse_bytes};
use std::sync::Arc;

/// Returns `policy` with every parameter that is a size in bytes multiplied by `scale`, as
/// memtables of a smaller workload are. So a largest merge has as many memtables there. Returns
/// `policy` as it is if it has no such parameter, or refuses the other sizes.
pub(super) fn scaled(
    registry: &Registry,
    policy: &Arc<dyn MergePolicy>,
    scale: f64,
) -> Arc<dyn MergePolicy> {
    if scale == 1.0 {
        return Arc::clone(policy);
    }
    let (whole, mut spec) = (policy.spec(), policy.spec());
    for (name, value) in &mut spec.params {
        // Prices of reads are in bytes too. They are not of a size.
        let is_price = name == "get" || name == "scan";
        let is_size = value.ends_with('B') && !is_price;
        let bytes = if is_size { parse_bytes(value).ok() } else { None };
        if let Some(bytes) = bytes {
            *value = format_bytes(((bytes as f64 * scale).round() as u64).max(1));
        }
    }
    if spec == whole {
        return Arc::clone(policy);
    }
    registry.build_spec(&spec).unwrap_or_else(|_| Arc::clone(policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_shrink_and_prices_and_counts_stay() {
        let registry = Registry::builtin();
        for (spec, half) in [
            ("minlatency(k=5, largest=10MB)", "minlatency(k=5, largest=5MB)"),
            ("auto(runs=9, price=reads, get=30B, largest=1B)", "largest=1B"),
            ("leveldb(level1=20MB, table=1MB)", "level1=10MB"),
            ("tiered(ratio=4)", "tiered(ratio=4)"),
        ] {
            let policy = registry.build(spec).unwrap();
            let found = scaled(&registry, &policy, 0.5).spec().to_string();
            assert!(found.contains(half), "{spec}: {found}");
        }
        let policy = registry.build("auto(runs=9, price=reads, get=30B, largest=1MB)").unwrap();
        assert!(scaled(&registry, &policy, 0.5).spec().to_string().contains("get=30B"));
    }
}
