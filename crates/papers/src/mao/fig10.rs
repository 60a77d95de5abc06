//! Write cost over time, on the store and as simulated.

use super::course::{Course, panel, simulate_all, unit_plans};
use super::fig9::scale;
use super::fit::{fit_line, mean};
use super::store::{Scale, StoreRun, flushed_first};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_workload::Workload;

const K: u64 = 7;
const STATIC: [&str; 2] = ["minlatency", "binomial"];
const DYNAMIC: [&str; 2] = ["bigtable", "exploring"];

/// Constant has a tenth of the flushes: its write cost grows to hundreds. The paper ended its runs
/// early too.
const CONSTANT: &str = "constant";
const CONSTANT_PART: u64 = 10;

/// The scales of the full and the quick measurement, with the paper's flushes and values.
const SCALE: Scale = Scale { flushes: 24_000, memtable_bytes: 32 << 10, value_bytes: 1000 };
const SCALE_QUICK: Scale = Scale { flushes: 2_000, memtable_bytes: 32 << 10, value_bytes: 1000 };

/// The points of a curve.
const POINTS: u64 = 240;

/// A run on the store.
struct Observed<'a> {
    policy: &'static str,
    scale: Scale,
    workload: &'a Workload,
}

impl Job for Observed<'_> {
    type Output = StoreRun;

    fn work(&self) -> u64 {
        self.scale.flushes
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<StoreRun> {
        let policy = flushed_first(self.policy, &format!("k={K}"));
        self.scale.run(&policy, self.workload, &mut || ticker.tick(1))
    }
}

/// The write costs of a policy over flushes.
struct Pair {
    policy: &'static str,
    observed: Vec<(f64, f64)>,
    simulated: Vec<(f64, f64)>,
}

impl Pair {
    /// Returns the share by which the simulation differs from the store, averaged over time.
    fn apart(&self) -> Option<f64> {
        let pairs = self.observed.iter().zip(&self.simulated);
        mean(pairs.map(|(observed, simulated)| (simulated.1 / observed.1 - 1.0).abs()))
    }

    /// Returns R² of a line of observed over simulated costs.
    fn r_squared(&self) -> Option<f64> {
        let pairs = self.observed.iter().zip(&self.simulated);
        let points: Vec<_> = pairs.map(|(observed, simulated)| (simulated.1, observed.1)).collect();
        Some(fit_line(&points)?.r_squared)
    }
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let full = scale(effort, SCALE, SCALE_QUICK);
    let short = Scale { flushes: (full.flushes / CONSTANT_PART).max(1), ..full };
    let of = |policy: &str| if policy == CONSTANT { short } else { full };
    let policies: Vec<&'static str> = STATIC.into_iter().chain(DYNAMIC).chain([CONSTANT]).collect();
    let workloads = policies.iter().map(|policy| of(policy).workload());
    let workloads: Vec<Workload> = workloads.collect::<anyhow::Result<_>>()?;
    let jobs: Vec<Observed<'_>> = policies
        .iter()
        .zip(&workloads)
        .map(|(policy, workload)| Observed { policy, scale: of(policy), workload })
        .collect();
    let observed = measure_all("runs on the store", &jobs, progress)?;
    let every = (full.flushes / POINTS).max(1);
    let specs = policies.iter().map(|policy| format!("{policy}(k={K})"));
    let plans: Vec<_> = specs
        .zip(&policies)
        .flat_map(|(spec, policy)| unit_plans([spec], of(policy).flushes, every))
        .collect();
    let simulated = simulate_all(&plans, progress)?;
    let pairs: Vec<Pair> = policies
        .iter()
        .zip(observed.iter().zip(&simulated))
        .map(|(policy, (run, course))| pair(policy, run, course))
        .collect();

    let panels = vec![
        panel("a", &format!("on the store, k = {K}")),
        panel("b", &format!("simulated, k = {K}")),
    ];
    let mut figure = Figure::empty(info.name, info.title, panels);
    // Constant would flatten all others.
    let shown = || pairs.iter().filter(|pair| pair.policy != CONSTANT);
    for pair in shown() {
        pair.observed.iter().for_each(|(x, y)| figure.point("a", pair.policy, *x, *y));
    }
    for pair in shown() {
        pair.simulated.iter().for_each(|(x, y)| figure.point("b", pair.policy, *x, *y));
    }
    claims(&mut figure, &pairs);
    note(&mut figure, full, short, &pairs);
    Ok(figure)
}

/// Returns the costs that both have, at the same flushes.
fn pair(policy: &'static str, run: &StoreRun, course: &Course) -> Pair {
    let simulated = course.write_costs();
    let observed = simulated.iter().filter_map(|(flushes, _)| {
        let cost = run.write_costs.get((*flushes as usize).checked_sub(1)?)?;
        Some((*flushes, *cost))
    });
    Pair { policy, observed: observed.collect(), simulated }
}

fn claims(figure: &mut Figure, pairs: &[Pair]) {
    let apart = |policy: &str| pairs.iter().find(|pair| pair.policy == policy)?.apart();
    for policy in STATIC.into_iter().chain([CONSTANT]) {
        figure.claim(apart(policy).map(|apart| {
            let claim = format!(
                "{policy}: the simulation differs from the store by this share, averaged over time \
                 (tracks it closely)"
            );
            Claim::at_most(claim, apart, 0.03)
        }));
    }
    for policy in DYNAMIC {
        figure.claim(apart(policy).map(|apart| {
            let claim = format!(
                "{policy}: the simulation differs from the store by this share, averaged over time \
                 (tracks it)"
            );
            Claim::at_most(claim, apart, 0.15)
        }));
    }
    let sides = [STATIC, DYNAMIC].map(|policies| mean(policies.into_iter().filter_map(apart)));
    if let [Some(fixed), Some(dynamic)] = sides {
        let claim = "that share of bigtable and exploring over that of minlatency and binomial \
                     (not as closely)";
        figure.claim(Claim::at_least(claim, dynamic / fixed, 1.0));
    }
    for pair in pairs {
        figure.claim(pair.r_squared().map(|r_squared| {
            let claim = format!("{}: R² of a line of observed over simulated costs", pair.policy);
            Claim::at_least(claim, r_squared, 0.95)
        }));
    }
}

fn note(figure: &mut Figure, full: Scale, short: Scale, pairs: &[Pair]) {
    figure.note(full.note());
    let ends = pairs.iter().filter_map(|pair| {
        let observed = pair.observed.last()?.1;
        let simulated = pair.simulated.last()?.1;
        Some(format!("{} {observed:.2} and {simulated:.2}", pair.policy))
    });
    figure.note(format!(
        "Costs at the end, observed and simulated: {}.",
        ends.collect::<Vec<_>>().join("; ")
    ));
    figure.note(format!(
        "constant has {} flushes, and is not drawn. Observed are bytes of the files of all tables, \
         over those of flushes. Simulated are flushes of one size.",
        short.flushes
    ));
}
