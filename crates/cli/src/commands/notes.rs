//! Notes below tables.

use lsmith_lab::EngineReport;
use lsmith_spec::format_bytes;

/// Returns what to change if the workload has filled no memtable; its merge costs are then 0.
pub(crate) fn unfilled(report: &EngineReport) -> Option<String> {
    if report.costs.flushes > 0 {
        return None;
    }
    let written = report.bytes.physical.user;
    let memtable = report.settings.memtable_bytes;
    let start =
        format!("No memtable of {} was flushed, so nothing was merged", format_bytes(memtable));
    Some(if written == 0 {
        format!("{start}: the workload writes nothing.")
    } else {
        format!(
            "{start}: the workload writes {} of keys and values.\nChoose a smaller memtable, such \
             as `--memtable {}`, or a larger workload.",
            format_bytes(written),
            format_bytes(smaller(written)),
        )
    })
}

/// Returns a power of two that `written` bytes fill about 32 times.
fn smaller(written: u64) -> u64 {
    1 << (written / 32).max(1 << 10).ilog2()
}

#[cfg(test)]
mod tests {
    use super::smaller;

    #[test]
    fn suggested_memtable_is_a_power_of_two_that_is_filled_often() {
        assert_eq!(smaller(3_000_000), 64 << 10);
        assert_eq!(smaller(1 << 30), 32 << 20);
        assert_eq!(smaller(1), 1 << 10);
    }
}
