//! What a comparison says in words.

use crate::table::cost;
use lsmith_lab::Row;

/// Costs that differ by less than this part count as equal.
const ALIKE: f64 = 0.01;

/// Runs per read may rise by this part before a policy that writes less costs reads.
const READS_KEPT: f64 = 0.1;

/// The policy to measure the others by, if it was compared.
const USUAL: &str = "leveled";

/// What a policy costs: less is better.
#[derive(Clone, Debug)]
struct Point {
    policy: String,
    /// All bytes written per byte of keys and values.
    written: f64,
    /// Runs that a lookup considers.
    runs: f64,
    /// Bytes held per live byte; 1 if unknown.
    space: f64,
}

impl Point {
    fn of(row: &Row) -> Point {
        let engine = &row.engine;
        Point {
            policy: row.policy.clone(),
            written: engine.write_cost_user.unwrap_or(engine.costs.write_cost_system),
            runs: engine.costs.read_cost_mean,
            space: engine.space_cost_physical_mean.unwrap_or(1.0),
        }
    }

    fn costs(&self) -> [f64; 3] {
        [self.written, self.runs, self.space]
    }

    /// Returns true if it costs no more than `other` in anything, and less in something.
    fn beats(&self, other: &Point) -> bool {
        let both = || self.costs().into_iter().zip(other.costs());
        both().all(|(own, other)| own <= other * (1.0 + ALIKE))
            && both().any(|(own, other)| own < other * (1.0 - ALIKE))
    }
}

/// Returns the verdict on the rows of one workload; `None` if there is nothing to choose.
pub(super) fn of(rows: &[Row]) -> Option<String> {
    let is_flushed = rows.iter().all(|row| row.engine.costs.flushes > 0);
    let points: Vec<Point> = rows.iter().map(Point::of).collect();
    is_flushed.then(|| on(&points)).flatten()
}

fn on(points: &[Point]) -> Option<String> {
    if points.len() < 2 {
        return None;
    }
    let is_best = |point: &&Point| !points.iter().any(|other| other.beats(point));
    let best: Vec<&Point> = points.iter().filter(is_best).collect();
    let named = |point: &Point| {
        let [written, runs, space] = point.costs().map(cost);
        format!("  {}: writes {written}, considers {runs} runs, holds {space}\n", point.policy)
    };
    let mut text = String::from(
        "Nothing here is better in bytes written, runs per lookup and bytes held at once than:\n",
    );
    best.iter().for_each(|point| text.push_str(&named(point)));
    let usual = points.iter().find(|point| is_usual(&point.policy)).unwrap_or(&points[0]);
    let keeps_reads = |point: &&&Point| point.runs <= usual.runs * (1.0 + READS_KEPT);
    let least = best.iter().filter(keeps_reads).min_by(|a, b| a.written.total_cmp(&b.written));
    if let Some(least) = least.filter(|least| least.written < usual.written * (1.0 - ALIKE)) {
        text.push_str(&compared(least, usual));
    }
    Some(text)
}

fn is_usual(spec: &str) -> bool {
    spec.split('(').next() == Some(USUAL)
}

/// Returns how `least`, which writes less, compares with `usual`.
fn compared(least: &Point, usual: &Point) -> String {
    let runs = least.runs - usual.runs;
    let reads = if runs.abs() < ALIKE * usual.runs {
        "as many runs per lookup".to_owned()
    } else {
        format!(
            "{} {} runs per lookup",
            cost(runs.abs()),
            if runs > 0.0 { "more" } else { "fewer" }
        )
    };
    format!(
        "{} writes {} times less than {}, with {reads}.\n",
        least.policy,
        cost(usual.written / least.written),
        usual.policy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(policy: &str, [written, runs, space]: [f64; 3]) -> Point {
        Point { policy: policy.to_owned(), written, runs, space }
    }

    #[test]
    fn a_policy_that_another_one_beats_is_not_named() {
        let points = [
            point("leveled(ratio=10)", [17.0, 4.70, 1.2]),
            point("minlatency(k=5)", [5.0, 4.20, 1.3]),
            point("constant(k=5)", [9.0, 4.20, 1.4]),
        ];
        let text = on(&points).expect("there are three");
        assert!(text.contains("  leveled(ratio=10): writes 17.00"), "{text}");
        assert!(text.contains("  minlatency(k=5): writes 5.00"), "{text}");
        assert!(!text.contains("constant"), "{text}");
        let end = "minlatency(k=5) writes 3.40 times less than leveled(ratio=10), with 0.50 fewer \
                   runs per lookup.\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn fewer_bytes_for_many_more_runs_are_no_bargain() {
        let points = [point("leveled", [17.0, 4.0, 1.2]), point("none", [2.0, 80.0, 1.9])];
        let text = on(&points).expect("there are two");
        assert!(!text.contains("times less"), "{text}");
    }

    #[test]
    fn equal_policies_are_both_named_and_one_alone_has_no_verdict() {
        let points = [point("fifo", [2.0, 80.0, 1.0]), point("none", [2.001, 80.0, 1.0])];
        let text = on(&points).expect("there are two");
        assert!(text.contains("fifo") && text.contains("none"), "{text}");
        assert_eq!(on(&points[..1]), None);
    }
}
