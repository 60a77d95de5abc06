//! Write cost where flushes differ in size.

use super::course::{CHEAP, Course, Courses, Input, Plan, STATIC, flushes_of, panel};
use crate::form::*;
use lsmith_model::optimum::least_of_sizes;
use lsmith_sim::UNIT_BYTES;
use lsmith_workload::{FlushSizes, NoInputs, Rng};

/// The curve of the exact optimum.
const LEAST: &str = "least";

/// The flushes for which the optimum is exact, and the flushes of the paper's runs.
const FLUSHES: u64 = 500;
const FLUSHES_LONG: u64 = 24_000;

/// The mean of lognormal sizes, as a share of the largest flush that there can be.
const MEAN: f64 = 1.0 / 64.0;

/// The standard deviations of the logarithm of a size. The moderate one has nine sizes of ten
/// between 0.39 and 2.0 times the mean.
const SIGMAS: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0];
const MODERATE: f64 = 0.5;
const LARGE: f64 = 2.0;

/// The shares of flushes that come early, and how full their memtables are then.
const SHARES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 0.95];
const EARLY_BYTES: u64 = UNIT_BYTES / 10;

/// How often sizes are drawn anew: of short runs, and of long ones.
const DRAWS: u64 = 10;
const DRAWS_LONG: u64 = 5;
const DRAWS_QUICK: u64 = 2;

/// The bytes of a flush, and how much larger the largest is, for the worst case.
const SMALL_BYTES: u64 = 100;
const GIANT: u64 = 10_000;
const GIANT_PLACES: u64 = 100;

/// The sizes of flushes of a panel.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// Lognormal; x is sigma.
    Lognormal,
    /// Full memtables, and some that are flushed early; x is the share of these.
    Early,
}

/// A panel.
#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    k: u64,
    flushes: u64,
    sizes: Sizes,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "a", k: 4, flushes: FLUSHES, sizes: Sizes::Lognormal },
    Setting { name: "b", k: 6, flushes: FLUSHES, sizes: Sizes::Lognormal },
    Setting { name: "c", k: 6, flushes: FLUSHES_LONG, sizes: Sizes::Lognormal },
    Setting { name: "d", k: 4, flushes: FLUSHES, sizes: Sizes::Early },
];

impl Setting {
    fn panel(&self) -> Panel {
        let (x, sizes) = match self.sizes {
            Sizes::Lognormal => ("sigma", "lognormal sizes"),
            Sizes::Early => ("share of flushes at a tenth of the size", "early flushes"),
        };
        let title = format!("{sizes}, k = {}, {} flushes", self.k, self.flushes);
        Panel { x: Axis::linear(x, ""), ..panel(self.name, &title) }
    }

    fn xs(&self) -> &'static [f64] {
        match self.sizes {
            Sizes::Lognormal => &SIGMAS,
            Sizes::Early => &SHARES,
        }
    }

    fn draws(&self, effort: Effort) -> u64 {
        match (effort.is_quick, self.flushes) {
            (true, _) => DRAWS_QUICK,
            (false, FLUSHES_LONG) => DRAWS_LONG,
            (false, _) => DRAWS,
        }
    }

    /// Returns the sizes of draw number `draw` at `x`.
    fn flush_sizes(&self, x: f64, draw: u64) -> anyhow::Result<FlushSizes> {
        match self.sizes {
            Sizes::Lognormal => {
                let spec = format!("lognormal(mean={MEAN}, sigma={x}, seed={})", draw + 1);
                Ok(FlushSizes::from_spec(&spec.parse()?, &NoInputs)?)
            }
            Sizes::Early => {
                let mut rng = Rng::new(draw, 0);
                let sizes: Vec<u64> = (0..self.flushes)
                    .map(|_| if rng.unit() < x { EARLY_BYTES } else { UNIT_BYTES })
                    .collect();
                Ok(FlushSizes::listed("early", &sizes).expect("all sizes are above 0"))
            }
        }
    }

    /// Returns the caller's policies that are not in the panel.
    fn own(&self, task: &Task<'_>) -> Vec<String> {
        task.own_beside(CHEAP.map(|policy| format!("{policy}(k={})", self.k)))
    }

    /// Returns the simulation of a policy.
    fn plan<'a>(&self, policy: &str, sizes: &'a FlushSizes) -> Plan<'a> {
        self.plan_of(format!("{policy}(k={})", self.k), sizes)
    }

    fn plan_of<'a>(&self, spec: String, sizes: &'a FlushSizes) -> Plan<'a> {
        Plan { spec, input: Input::Sized(sizes, self.flushes), every: self.flushes }
    }

    /// Returns the least write cost of any schedule.
    fn least_cost(&self, sizes: &FlushSizes) -> f64 {
        let sizes: Vec<u64> =
            (0..self.flushes).map(|flush| sizes.bytes(flush, UNIT_BYTES)).collect();
        let flushed: u64 = sizes.iter().sum();
        1.0 + least_of_sizes(&sizes, self.k).merged / flushed as f64
    }
}

/// The costs of one panel at one x, the means of all draws.
struct At {
    x: f64,
    /// In the order of [`CHEAP`].
    costs: [f64; 4],
    /// In the order of the caller's policies.
    own: Vec<f64>,
    /// The most eager write costs of [`STATIC`].
    eager_most: [f64; 2],
    /// The least cost of any schedule, and the least that a policy is above it in one draw.
    least: Option<(f64, f64)>,
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let of_effort = |flushes| flushes_of(flushes, task.effort);
    let settings =
        SETTINGS.map(|setting| Setting { flushes: of_effort(setting.flushes), ..setting });
    let mut figure = task.figure(SETTINGS.map(|setting| setting.panel()));
    for (setting, full) in settings.iter().zip(&SETTINGS) {
        let found = costs(setting, full.draws(task.effort), task)?;
        for (index, policy) in CHEAP.into_iter().enumerate() {
            let costs = found.iter().map(|at| (at.x, at.costs[index]));
            figure.draw(setting.name, policy, costs);
        }
        for (index, spec) in setting.own(task).iter().enumerate() {
            figure.draw(setting.name, spec, found.iter().map(|at| (at.x, at.own[index])));
        }
        let least = found.iter().filter_map(|at| Some((at.x, at.least?.0)));
        figure.draw(setting.name, LEAST, least);
        claims(&mut figure, setting, &found);
    }
    claim_giants(&mut figure, settings[0], task)?;
    note(&mut figure, &settings, task.effort);
    Ok(figure)
}

/// Measures one panel.
fn costs(setting: &Setting, draws: u64, task: &Task<'_>) -> anyhow::Result<Vec<At>> {
    let mut sizes = Vec::new();
    for x in setting.xs() {
        for draw in 0..draws {
            sizes.push(setting.flush_sizes(*x, draw)?);
        }
    }
    let own = setting.own(task);
    let plans = sizes.iter().flat_map(|sizes| CHEAP.map(|policy| setting.plan(policy, sizes)));
    let Courses(courses) = Courses::simulate(task, &plans.collect::<Vec<_>>())?;
    let plans = sizes.iter().flat_map(|sizes| own.iter().map(move |spec| (spec.clone(), sizes)));
    let plans = plans.map(|(spec, sizes)| setting.plan_of(spec, sizes));
    let Courses(own_courses) = Courses::simulate(task, &plans.collect::<Vec<_>>())?;
    let optima = match setting.flushes {
        ..=FLUSHES => task.each(
            "optimum",
            &sizes,
            |_| 1,
            |sizes, ticker| {
                let cost = setting.least_cost(sizes);
                ticker.tick(1);
                Ok(cost)
            },
        )?,
        _ => Vec::new(),
    };
    let draws = draws as usize;
    let at = |(place, x): (usize, &f64)| {
        let here = &courses[place * draws * CHEAP.len()..][..draws * CHEAP.len()];
        let of = |policy: usize| here.iter().skip(policy).step_by(CHEAP.len());
        let cost = |policy| mean(of(policy).map(Course::write_cost)).unwrap_or(0.0);
        let eager =
            |policy| most(of(policy).map(|course| course.last().write_cost_eager)).unwrap_or(0.0);
        let optima = optima.get(place * draws..(place + 1) * draws);
        let over = |optima: &[f64]| {
            let pairs = here.chunks(CHEAP.len()).zip(optima);
            least(pairs.flat_map(|(draw, optimum)| {
                draw.iter().map(move |course| course.write_cost() / optimum)
            }))
        };
        let of_own = own_courses.iter().skip(place * draws * own.len()).take(draws * own.len());
        let own_cost = |policy| {
            let courses = of_own.clone().skip(policy).step_by(own.len());
            mean(courses.map(Course::write_cost)).unwrap_or(0.0)
        };
        At {
            x: *x,
            costs: [0, 1, 2, 3].map(cost),
            own: (0..own.len()).map(own_cost).collect(),
            eager_most: [0, 1].map(eager),
            least: optima.and_then(|optima| Some((mean(optima.iter().copied())?, over(optima)?))),
        }
    };
    Ok(setting.xs().iter().enumerate().map(at).collect())
}

fn claims(figure: &mut Figure, setting: &Setting, found: &[At]) {
    let Setting { name, k, flushes, .. } = *setting;
    let [Some(equal), Some(last)] = [found.first(), found.last()] else { return };
    let ratios = |at: &At| {
        let pairs = at.costs.iter().zip(&equal.costs);
        pairs.map(|(cost, equal)| cost / equal).collect::<Vec<f64>>()
    };
    if let Some(moderate) = found.iter().find(|at| at.x == MODERATE) {
        let ratios = ratios(moderate);
        for (policies, ratios, wording, bound) in [
            ("minlatency and binomial", &ratios[..2], "certainly similar", 0.05),
            ("bigtable and exploring", &ratios[2..], "similar", 0.15),
        ] {
            let claim = format!(
                "{name}, sigma {MODERATE}: {policies} differ from equal flushes by this share at \
                 most ({wording})"
            );
            figure.at_most(claim, farthest(ratios.iter().map(|ratio| ratio - 1.0)), bound);
        }
    }
    for (policy, name_of) in STATIC.into_iter().enumerate() {
        let worst = writes_max(name_of, flushes, k) as f64;
        let over = most(found.iter().map(|at| at.eager_most[policy] / worst));
        let claim = format!(
            "{name}: {name_of}: most eager write cost over its worst case for equal flushes (no \
             worse, whatever the sizes)"
        );
        figure.at_most(claim, over, 1.0);
    }
    let label = match setting.sizes {
        Sizes::Lognormal => format!("{name}, sigma {LARGE}"),
        Sizes::Early => format!("{name}, {} % early", last.x * 100.0),
    };
    let claim = format!(
        "{label}: write cost over that of equal flushes, the more of minlatency and binomial (no \
         worse)"
    );
    figure.at_most(claim, most(ratios(last)[..2].iter().copied()), 1.02);
    let [minlatency, binomial, bigtable, exploring] = last.costs;
    let claim = format!(
        "{label}: the cheaper of bigtable and exploring over the cheaper of minlatency and \
         binomial (may be below)"
    );
    figure.at_most(claim, bigtable.min(exploring) / minlatency.min(binomial), 1.0);
    let (Some((equal, _)), Some((unequal, _))) = (equal.least, last.least) else { return };
    let claim = format!("{label}: the least over that of equal flushes (substantially below)");
    figure.at_most(claim, unequal / equal, 0.9);
    let over = least(found.iter().filter_map(|at| Some(at.least?.1)));
    let claim = format!("{name}: least write cost of any policy over the optimum (not below)");
    figure.at_least(claim, over, 1.0);
}

/// Adds claims on runs in which one flush is as large as all others together and more, at each of
/// the first places.
fn claim_giants(figure: &mut Figure, setting: Setting, task: &Task<'_>) -> anyhow::Result<()> {
    let Setting { flushes, k, .. } = setting;
    let sizes: Vec<FlushSizes> = (0..GIANT_PLACES.min(flushes))
        .filter_map(|place| {
            let size = |flush| if flush == place { GIANT * SMALL_BYTES } else { SMALL_BYTES };
            FlushSizes::listed("giant", &(0..flushes).map(size).collect::<Vec<u64>>())
        })
        .collect();
    for policy in STATIC {
        let plans: Vec<Plan<'_>> = sizes.iter().map(|sizes| setting.plan(policy, sizes)).collect();
        let Courses(courses) = Courses::simulate(task, &plans)?;
        let worst = writes_max(policy, flushes, k) as f64;
        let eager = courses.iter().map(|course| course.last().write_cost_eager / worst);
        let claim = format!(
            "k = {k}, one flush of {GIANT} times the size: {policy}: most eager write cost over \
             its worst case for equal flushes (no worse)"
        );
        figure.at_most(claim, most(eager), 1.0);
    }
    Ok(())
}

/// Returns how often minlatency or binomial write a flush at most, among `flushes` with at most `k`
/// runs: the depth of the tree of their schedule.
fn writes_max(policy: &str, flushes: u64, k: u64) -> u64 {
    let mut writes = 0;
    let mut covered = 0;
    while covered < flushes {
        writes += 1;
        covered = match policy {
            "minlatency" => binomial(writes + k, k) - 1,
            _ => covered + binomial(writes + writes.min(k) - 1, writes),
        };
    }
    writes
}

/// Returns the binomial coefficient `upper` over `lower`.
fn binomial(upper: u64, lower: u64) -> u64 {
    // Each product is divisible.
    (1..=lower.min(upper - lower))
        .fold(1, |product, step| product * (upper - lower.min(upper - lower) + step) / step)
}

fn note(figure: &mut Figure, settings: &[Setting], effort: Effort) {
    let [short, _, long, _] = settings else { return };
    figure.note(format!(
        "Simulated by size alone: {} flushes, of which sizes are drawn {} times, and {} flushes, \
         drawn {} times. Every flush is written once, and every output of a merge. Costs are means \
         over draws. With lognormal sizes the mean is always the same and sigma the standard \
         deviation of the logarithm; no flush is larger than 64 times the mean. Early flushes are \
         what a timer or a full log makes: in d a share of memtables is flushed at a tenth of the \
         size.",
        short.flushes,
        short.draws(effort),
        long.flushes,
        SETTINGS[2].draws(effort)
    ));
    figure.note(
        "The least is exact: the best schedule of merges of whole runs for these sizes, in this \
         order, with at most k runs. It knows all sizes ahead. For 24,000 flushes it is not \
         computed.",
    );
    figure.note(
        "The worst case of minlatency and binomial is how often their schedule writes a flush at \
         most. With one flush of nearly all bytes they come to it, and never beyond.",
    );
    figure.explain(
        "may be below",
        "past 4^k flushes, as here, bigtable and exploring grow linearly with the number of \
         flushes. That outweighs what looking at sizes gains. Before 4^k flushes they are below.",
    );
    figure.explain(
        "bigtable and exploring differ",
        "past 4^k flushes their costs depend on when the oldest runs happen to be merged, which \
         small differences of sizes decide. The paper finds the same in its figure 10.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from C(m + k, k) - 1 and the sums of the binomial policy.
    #[test]
    fn writes_of_a_flush_are_bounded_by_the_schedule() {
        assert_eq!(
            [1, 4, 5, 14, 15].map(|flushes| writes_max("minlatency", flushes, 4)),
            [1, 1, 2, 2, 3]
        );
        assert_eq!([1, 2, 4, 5].map(|flushes| writes_max("binomial", flushes, 4)), [1, 2, 2, 3]);
        assert_eq!((binomial(8, 4), binomial(5, 0), binomial(6, 5)), (70, 1, 6));
    }
}
