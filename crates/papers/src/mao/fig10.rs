//! Write cost over time, on the store and as simulated.

use super::course::{BOUNDED, CONSTANT, Course, Courses, DYNAMIC, Input, Plan, STATIC, panel};
use super::fig9::scale;
use super::fit::fit_line;
use super::store::{Scale, StoreRun, flushed_first};
use crate::form::*;

const K: u64 = 7;

/// Constant has a tenth of the flushes: its write cost grows to hundreds. The paper ended its runs
/// early too.
const CONSTANT_PART: u64 = 10;

/// The scales of the full and the quick measurement, with the paper's flushes and values.
const SCALE: Scale = Scale { flushes: 24_000, memtable_bytes: 32 << 10, value_bytes: 1000 };
const SCALE_QUICK: Scale = Scale { flushes: 2_000, memtable_bytes: 32 << 10, value_bytes: 1000 };

/// The points of a curve.
const POINTS: u64 = 240;

/// The write costs of a policy over flushes.
struct Pair {
    policy: String,
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

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let full = scale(task.effort, SCALE, SCALE_QUICK);
    let short = Scale { flushes: (full.flushes / CONSTANT_PART).max(1), ..full };
    let of = |policy: &str| if policy == CONSTANT { short } else { full };
    let own = task.own_beside(BOUNDED.map(|policy| format!("{policy}(k={K})")));
    let all: Vec<&str> = BOUNDED.into_iter().chain(own.iter().map(String::as_str)).collect();
    let observed = task.each("runs on the store", &all, |policy| of(policy).flushes, {
        |policy, ticker| {
            let scale = of(policy);
            let choice = match BOUNDED.contains(policy) {
                true => task.policy(&flushed_first(policy, &format!("k={K}")))?,
                false => task.policy(policy)?,
            };
            scale.run(choice, &scale.workload()?, &mut || ticker.tick(1))
        }
    })?;
    let every = (full.flushes / POINTS).max(1);
    let plan = |policy: &&str| {
        let input = Input::Unit(of(policy).flushes);
        let spec = match BOUNDED.contains(policy) {
            true => format!("{policy}(k={K})"),
            false => (*policy).to_owned(),
        };
        Plan { spec, input, every }
    };
    let Courses(simulated) = Courses::simulate(task, &all.iter().map(plan).collect::<Vec<_>>())?;
    let runs = observed.iter().zip(&simulated);
    let runs = all.iter().zip(runs);
    let pairs: Vec<Pair> = runs.map(|(policy, (run, course))| pair(policy, run, course)).collect();
    let mut figure = task.figure([
        panel("a", &format!("on the store, k = {K}")),
        panel("b", &format!("simulated, k = {K}")),
    ]);
    // Constant would flatten all others.
    let shown = || pairs.iter().filter(|pair| pair.policy != CONSTANT);
    shown().for_each(|pair| figure.draw("a", &pair.policy, pair.observed.iter().copied()));
    shown().for_each(|pair| figure.draw("b", &pair.policy, pair.simulated.iter().copied()));
    claims(&mut figure, &pairs[..BOUNDED.len()]);
    note(&mut figure, full, short, &pairs);
    Ok(figure)
}

/// Returns the costs that both have, at the same flushes.
fn pair(policy: &str, run: &StoreRun, course: &Course) -> Pair {
    let simulated = course.write_costs();
    let observed = simulated.iter().filter_map(|(flushes, _)| {
        let cost = run.write_costs.get((*flushes as usize).checked_sub(1)?)?;
        Some((*flushes, *cost))
    });
    Pair { policy: policy.to_owned(), observed: observed.collect(), simulated }
}

fn claims(figure: &mut Figure, pairs: &[Pair]) {
    let apart = |policy: &str| pairs.iter().find(|pair| pair.policy == policy)?.apart();
    let fixed = STATIC.into_iter().chain([CONSTANT]);
    let fixed = fixed.map(|policy| (policy, "tracks it closely", 0.03));
    for (policy, tracks, bound) in fixed.chain(DYNAMIC.map(|policy| (policy, "tracks it", 0.15))) {
        let claim = format!(
            "{policy}: the simulation differs from the store by this share, averaged over time \
             ({tracks})"
        );
        figure.at_most(claim, apart(policy), bound);
    }
    let [fixed, dynamic] = [STATIC, DYNAMIC].map(|all| mean(all.into_iter().filter_map(apart)));
    let claim = "that share of bigtable and exploring over that of minlatency and binomial (not as \
                 closely)";
    figure.at_least(claim, over(dynamic, fixed), 1.0);
    for pair in pairs {
        let claim = format!("{}: R² of a line of observed over simulated costs", pair.policy);
        figure.at_least(claim, pair.r_squared(), 0.95);
    }
}

fn note(figure: &mut Figure, full: Scale, short: Scale, pairs: &[Pair]) {
    figure.note(full.note());
    let ends = pairs.iter().filter_map(|pair| {
        let observed = pair.observed.last()?.1;
        let simulated = pair.simulated.last()?.1;
        Some(format!("{} {observed:.2} and {simulated:.2}", pair.policy))
    });
    figure.note(format!("Costs at the end, observed and simulated: {}.", joined("; ", ends)));
    figure.note(format!(
        "constant has {} flushes, and is not drawn. Observed are bytes of the files of all tables, \
         over those of flushes. Simulated are flushes of one size.",
        short.flushes
    ));
}
