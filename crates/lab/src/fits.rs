//! Checks before a simulation that it fits into memory.

use anyhow::bail;
use lsmith_sim::written_kind;
use lsmith_spec::format_bytes;
use lsmith_tree::logical_bytes;
use lsmith_workload::Workload;

/// Bytes per item of a workload while its keys are ranked.
const RANK_BYTES: u64 = 8;

/// Bytes per live key of a keyed simulation: an entry, and the size of the live value.
const KEY_BYTES: u64 = 16 + 4;

/// Bytes per write that is counted one by one.
const COUNTED_BYTES: u64 = 40;

/// The most writes that are counted. Fluid simulations refuse more by themselves.
const WRITES_COUNTED_MAX: u64 = 100_000_000;

/// Bytes per flush of a unit simulation: its size, for the simulation and for the optimum.
const FLUSH_BYTES: u64 = 16;

/// Checks that a keyed simulation of `workload` can fit into memory.
///
/// # Errors
/// Fails if the simulation needs more memory than is available.
pub fn keyed_fits(workload: &Workload, memtable_bytes: u64) -> anyhow::Result<()> {
    let needed = keyed_needs(workload, memtable_bytes);
    fits(&format!("a keyed simulation of {}", workload.spec()), needed, available_bytes())
}

/// Checks that the writes of `workload` can be counted in memory, if a fluid simulation counts
/// them.
///
/// # Errors
/// Fails if that needs more memory than is available.
pub fn fluid_fits(workload: &Workload) -> anyhow::Result<()> {
    let needed = match workload.spec().name.as_str() {
        // Known by formula.
        "load" | "churn" => 0,
        _ => {
            let items = rank_bytes(workload);
            let load_writes = workload.load_ops().min(WRITES_COUNTED_MAX);
            items.saturating_add(load_writes.saturating_mul(COUNTED_BYTES))
        }
    };
    fits(&format!("a fluid simulation of {}", workload.spec()), needed, available_bytes())
}

/// Checks that a unit simulation of `flushes` can fit into memory.
///
/// # Errors
/// Fails if the simulation needs more memory than is available.
pub fn unit_fits(flushes: u64) -> anyhow::Result<()> {
    let needed = flushes.saturating_mul(FLUSH_BYTES);
    fits(&format!("a unit simulation of {flushes} flushes"), needed, available_bytes())
}

/// Returns the bytes that a keyed simulation needs at least: for the ranks of all keys, and for the
/// keys that are written.
fn keyed_needs(workload: &Workload, memtable_bytes: u64) -> u64 {
    let items = workload.items();
    let writes = workload.ops_max().min(writes_of_flushes(workload, memtable_bytes));
    // Half of the keys, because some writes may hit a key twice.
    let written = items.min(writes) / 2;
    rank_bytes(workload).saturating_add(written.saturating_mul(KEY_BYTES))
}

/// Returns the bytes that ranking all keys takes.
fn rank_bytes(workload: &Workload) -> u64 {
    if workload.items_are_ranks() { 0 } else { workload.items().saturating_mul(RANK_BYTES) }
}

/// Returns the writes up to the workload's limit on flushes, if all are like the first.
fn writes_of_flushes(workload: &Workload, memtable_bytes: u64) -> u64 {
    let Some(flushes) = workload.limit_flushes() else { return u64::MAX };
    let mut ops = workload.ops().filter_map(Result::ok);
    let first = ops.find(|op| written_kind(op.kind).is_some());
    let entry_bytes = first
        .map_or(1, |op| logical_bytes(workload.key_bytes(op.item), op.value_bytes as usize).max(1));
    flushes.saturating_mul(memtable_bytes.div_ceil(entry_bytes))
}

fn fits(what: &str, needed: u64, available: Option<u64>) -> anyhow::Result<()> {
    match available {
        Some(available) if needed > available => {
            let [needed, available] =
                [needed, available].map(|bytes| format_bytes(bytes >> 20 << 20));
            bail!("{what} needs at least {needed} of memory, of which {available} are available")
        }
        _ => Ok(()),
    }
}

/// Returns the bytes of memory that new work can use. `None` if the system does not say.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_workload::NoInputs;

    fn needs(spec: &str) -> u64 {
        let workload = Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap();
        keyed_needs(&workload, 4 << 20)
    }

    #[test]
    fn too_large_is_told_as_too_large() {
        let all = needs("load(keys=4G, value=100B)");
        assert!(all > 60 << 30, "{all}");
        let message = fits("this", all, Some(24 << 30)).unwrap_err().to_string();
        assert!(message.starts_with("this needs at least 6"), "{message}");
        assert!(message.ends_with("24GiB are available"), "{message}");
        // A limit on flushes leaves the ranks only.
        let few = needs("load(keys=4G, value=100B, flushes=10)");
        assert!((29 << 30..40 << 30).contains(&few), "{few}");
        assert!(fits("this", needs("load(keys=10M)"), Some(4 << 30)).is_ok());
        // Keys in the order of items, few of a large key space, have no ranks.
        assert!(needs("tpc(warehouses=10, keys=5k, ops=20k)") < 1 << 20);
        assert!(fits("this", u64::MAX, None).is_ok(), "a system that does not say");
    }

    #[test]
    fn available_memory_is_known_on_linux() {
        assert_eq!(available_bytes().is_some(), cfg!(target_os = "linux"));
    }
}
