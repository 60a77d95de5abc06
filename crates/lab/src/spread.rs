//! The spread of what is measured when a run is repeated.

use crate::report::EngineReport;
use serde::Serialize;

/// The least, the median and the most of a figure over several runs. With an even number of runs
/// the median is the lower one of the two in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// The least.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The most.
    pub most: f64,
}

impl Extent {
    fn of(mut values: Vec<f64>) -> Extent {
        values.sort_by(f64::total_cmp);
        let least = values[0];
        let most = values[values.len() - 1];
        Extent { least, median: values[(values.len() - 1) / 2], most }
    }
}

/// How far repeated runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The number of runs.
    pub runs: usize,
    /// Wall-clock seconds.
    pub seconds: Extent,
    /// CPU seconds.
    pub cpu_seconds: Extent,
    /// Physical bytes written to files: log, tables and metadata.
    pub bytes_written: Extent,
    /// Seconds for which writers were held back.
    pub held_back_seconds: Extent,
    /// Bytes of every flush and every merge output, per byte flushed.
    pub write_cost_system: Extent,
    /// Runs that a lookup considers.
    pub read_cost_mean: Extent,
}

impl Spread {
    fn of(reports: &[EngineReport]) -> Spread {
        let extent =
            |figure: fn(&EngineReport) -> f64| Extent::of(reports.iter().map(figure).collect());
        Spread {
            runs: reports.len(),
            seconds: extent(|report| report.seconds),
            cpu_seconds: extent(|report| report.cpu_seconds),
            bytes_written: extent(|report| report.bytes.physical.written() as f64),
            held_back_seconds: extent(|report| report.held_back_seconds),
            write_cost_system: extent(|report| report.costs.write_cost_system),
            read_cost_mean: extent(|report| report.costs.read_cost_mean),
        }
    }
}

/// Runs `run` as many times as `runs` says, at least once. Returns the report with the median
/// seconds and, of more runs than one, the spread.
pub(crate) fn repeated(
    runs: usize,
    mut run: impl FnMut() -> anyhow::Result<EngineReport>,
) -> anyhow::Result<(EngineReport, Option<Spread>)> {
    let mut reports = (0..runs.max(1)).map(|_| run()).collect::<anyhow::Result<Vec<_>>>()?;
    let spread = (runs > 1).then(|| Spread::of(&reports));
    reports.sort_by(|left, right| left.seconds.total_cmp(&right.seconds));
    let median = (reports.len() - 1) / 2;
    Ok((reports.swap_remove(median), spread))
}

#[cfg(test)]
mod tests {
    use super::Extent;

    #[test]
    fn median_lies_in_the_middle() {
        let extent = |values: &[f64]| Extent::of(values.to_vec());
        assert_eq!(extent(&[2.0]), Extent { least: 2.0, median: 2.0, most: 2.0 });
        assert_eq!(extent(&[3.0, 1.0]), Extent { least: 1.0, median: 1.0, most: 3.0 });
        assert_eq!(extent(&[9.0, 1.0, 3.0]), Extent { least: 1.0, median: 3.0, most: 9.0 });
    }
}
