//! What a comparison says in words, and the marks in its table.

use crate::layout::{prose_width, wrapped};
use crate::table::cost;
use lsmith_lab::Row;
use lsmith_lab::page::ALIKE;
use std::cmp::Ordering::Equal;

/// Runs per read may rise by this part before a policy that writes less costs reads.
const READS_KEPT: f64 = 0.1;

/// The policy to measure the others by, if it was compared.
const USUAL: &str = "leveled";

/// The most policies that share a least cost and are named.
const NAMED_MAX: usize = 2;

/// A cost that the verdict is about. Table, page and drawing show the same.
struct Cost {
    /// The mark of the policies that have the least of it.
    mark: char,
    least: &'static str,
    unit: &'static str,
}

const COSTS: [Cost; 3] = [
    Cost { mark: 'w', least: "Least write system", unit: "bytes per byte flushed" },
    Cost { mark: 'r', least: "Least read mean", unit: "runs per lookup" },
    Cost { mark: 's', least: "Least space mean", unit: "bytes per live byte" },
];

/// What the marks mean.
const MARKS: &str = "best: * if nothing here is better in write system, read mean and space mean \
                     at once; w, r and s at the least of each. `--explain-columns` explains all.";

/// What a policy costs: less is better.
#[derive(Clone, Debug)]
struct Point {
    policy: String,
    /// `write_cost_system`.
    written: f64,
    /// `read_cost_mean`.
    runs: f64,
    /// `space_cost_mean`; unknown if nothing is live.
    space: Option<f64>,
}

impl Point {
    fn of(row: &Row) -> Point {
        let costs = &row.engine.costs;
        Point {
            policy: row.policy.clone(),
            written: costs.write_cost_system,
            runs: costs.read_cost_mean,
            space: costs.space_cost_mean,
        }
    }

    fn costs(&self) -> [Option<f64>; 3] {
        [Some(self.written), Some(self.runs), self.space]
    }

    /// Returns true if it costs no more than `other` in anything, and less in something. What is
    /// unknown of one of them counts as equal.
    fn beats(&self, other: &Point) -> bool {
        let both = self.costs().into_iter().zip(other.costs());
        let both: Vec<(f64, f64)> = both.filter_map(|(own, other)| own.zip(other)).collect();
        both.iter().all(|(own, other)| *own <= other * (1.0 + ALIKE))
            && both.iter().any(|(own, other)| *own < other * (1.0 - ALIKE))
    }
}

fn points(rows: &[Row]) -> Vec<Point> {
    rows.iter().map(Point::of).collect()
}

/// Returns the mark of each row of one workload: `*` if no other row beats it, and the letters of
/// its least costs. A row alone has none.
pub(super) fn marks(rows: &[Row]) -> Vec<String> {
    marks_of(&points(rows))
}

fn marks_of(points: &[Point]) -> Vec<String> {
    if points.len() < 2 {
        return vec![String::new(); points.len()];
    }
    let mark = |point: &Point| {
        let is_beaten = points.iter().any(|other| other.beats(point));
        let star = if is_beaten { "" } else { "*" };
        let letters = (0..COSTS.len()).filter(|at| has_least(points, point, *at));
        let letters: String = letters.map(|at| COSTS[at].mark).collect();
        format!("{star}{letters}")
    };
    points.iter().map(mark).collect()
}

/// Returns true if no point costs less than `point` in the cost number `at`, and one costs more.
fn has_least(points: &[Point], point: &Point, at: usize) -> bool {
    let Some(own) = point.costs()[at] else { return false };
    let mut others = points.iter().filter_map(|point| point.costs()[at]);
    let is_least = others.clone().all(|other| own <= other * (1.0 + ALIKE));
    is_least && others.any(|other| other > own * (1.0 + ALIKE))
}

/// Returns the verdict on the rows of one workload; `None` if there is nothing to choose.
pub(super) fn of(rows: &[Row]) -> Option<String> {
    let is_flushed = rows.iter().all(|row| row.engine.costs.flushes > 0);
    is_flushed.then(|| on(&points(rows))).flatten()
}

fn on(points: &[Point]) -> Option<String> {
    if points.len() < 2 {
        return None;
    }
    let mut lines = vec![MARKS.to_owned()];
    let leasts = (0..COSTS.len()).filter_map(|at| least(points, at)).collect::<Vec<_>>();
    lines.push(leasts.join(" "));
    let is_best = |point: &&Point| !points.iter().any(|other| other.beats(point));
    let usual = points.iter().find(|point| is_usual(&point.policy)).unwrap_or(&points[0]);
    let keeps_reads = |point: &&Point| point.runs <= usual.runs * (1.0 + READS_KEPT);
    let best: Vec<&Point> = points.iter().filter(is_best).collect();
    let kept = best.iter().copied().filter(keeps_reads);
    let least = kept.min_by(|a, b| a.written.total_cmp(&b.written));
    let least = least.filter(|least| least.written < usual.written * (1.0 - ALIKE));
    lines.push(least.map_or_else(|| undecided(points, &best), |least| compared(least, usual)));
    lines.retain(|line| !line.is_empty());
    Some(lines.iter().map(|line| wrapped(line, prose_width())).collect::<Vec<_>>().join("\n"))
}

/// Says how the `best` of `points` stand, if none writes less than the usual policy and reads as
/// little.
fn undecided(points: &[Point], best: &[&Point]) -> String {
    match best {
        [only] => format!("Verdict: nothing here is better in anything than {}.", only.policy),
        all if all.len() == points.len()
            && (0..COSTS.len()).all(|at| least(points, at).is_none()) =>
        {
            "Verdict: all are alike.".to_owned()
        }
        all => format!("Verdict: none of the {} with a * is the best in all three.", all.len()),
    }
}

/// Says which policies have the least of the cost number `at`; `None` if all are alike in it.
fn least(points: &[Point], at: usize) -> Option<String> {
    let mut having: Vec<&Point> = points.iter().filter(|it| has_least(points, it, at)).collect();
    having.sort_by(|one, other| one.costs()[at].partial_cmp(&other.costs()[at]).unwrap_or(Equal));
    let value = having.first()?.costs()[at]?;
    let mut names: Vec<&str> = having.iter().map(|point| point.policy.as_str()).collect();
    let more = match names.len() {
        0..=NAMED_MAX => String::new(),
        all => format!(" and {} more", all - NAMED_MAX),
    };
    names.truncate(NAMED_MAX);
    let Cost { least, unit, .. } = COSTS[at];
    Some(format!("{least}: {}{more}, {} {unit}.", names.join(", "), cost(value)))
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
        "Verdict: {} writes {} times less than {}, with {reads}.",
        least.policy,
        cost(usual.written / least.written),
        usual.policy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(policy: &str, [written, runs, space]: [f64; 3]) -> Point {
        Point { policy: policy.to_owned(), written, runs, space: Some(space) }
    }

    /// Returns the verdict on one line.
    fn text(points: &[Point]) -> Option<String> {
        Some(on(points)?.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_policy_that_another_one_beats_has_no_star() {
        let points = [
            point("leveled(ratio=10)", [17.0, 4.70, 1.2]),
            point("minlatency(k=5)", [5.0, 4.20, 1.3]),
            point("constant(k=5)", [9.0, 4.20, 1.4]),
        ];
        assert_eq!(marks_of(&points), ["*s", "*wr", "r"]);
        let text = text(&points).expect("there are three");
        let least = "Least write system: minlatency(k=5), 5.00 bytes per byte flushed. Least read \
                     mean: minlatency(k=5), constant(k=5), 4.20 runs per lookup. Least space \
                     mean: leveled(ratio=10), 1.20 bytes per live byte.";
        assert!(text.contains(least), "{text}");
        let end = "Verdict: minlatency(k=5) writes 3.40 times less than leveled(ratio=10), with \
                   0.50 fewer runs per lookup.";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn fewer_bytes_for_many_more_runs_are_no_bargain() {
        let points = [point("leveled", [17.0, 4.0, 1.2]), point("none", [2.0, 80.0, 1.9])];
        let text = text(&points).expect("there are two");
        assert!(!text.contains("times less"), "{text}");
        assert!(text.ends_with("Verdict: none of the 2 with a * is the best in all three."));
        let points = [point("leveled", [2.0, 4.0, 1.0]), point("none", [2.0, 80.0, 1.9])];
        let text = self::text(&points).expect("there are two");
        assert!(text.ends_with("nothing here is better in anything than leveled."), "{text}");
    }

    #[test]
    fn equal_policies_are_both_marked_and_one_alone_has_no_verdict() {
        let alike = [point("fifo", [2.0, 80.0, 1.0]), point("none", [2.001, 80.0, 1.0])];
        assert_eq!(marks_of(&alike), ["*", "*"]);
        let verdict = text(&alike).expect("there are two");
        assert!(!verdict.contains("Least") && verdict.ends_with("Verdict: all are alike."));
        assert_eq!((on(&alike[..1]), marks_of(&alike[..1])), (None, vec![String::new()]));
    }

    /// Nothing is live under a policy that drops all.
    #[test]
    fn unknown_space_decides_nothing() {
        let unknown = Point { space: None, ..point("fifo", [1.0, 2.0, 0.0]) };
        let points = [unknown, point("none", [1.5, 2.0, 1.0]), point("tiered", [3.0, 1.0, 1.2])];
        assert_eq!(marks_of(&points), ["*w", "s", "*r"]);
    }
}
