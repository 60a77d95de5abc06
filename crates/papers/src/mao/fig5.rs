//! The trade between write cost and read cost.

use super::course::{BOUNDED, Courses, STATIC, flushes_of, specs};
use super::fig4::RATIOS;
use super::fit::between;
use crate::form::*;

/// The approximate flushes of a run.
const FLUSHES: u64 = 24_000;

const BOUNDS: [u64; 6] = [4, 5, 6, 7, 8, 10];

/// More bounds of minlatency, for its write costs at the read costs of tiered. Not drawn.
const FARTHER: [u64; 3] = [12, 14, 16];

/// The points of one policy: write cost and mean read cost, in the order of [`BOUNDS`] or
/// [`RATIOS`].
type Curve = Vec<(f64, f64)>;

/// The curves of all policies.
struct Curves(Courses);

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let flushes = flushes_of(FLUSHES, task.effort);
    let mut all = specs(BOUNDED, "k", &BOUNDS);
    all.extend(specs(["tiered", "leveled"], "ratio", &RATIOS));
    all.extend(specs(["minlatency"], "k", &FARTHER));
    let own = task.own_beside(&all);
    all.extend(own.iter().cloned());
    let curves = Curves(Courses::unit(task, all, flushes, flushes)?);
    let x = Axis::log("write cost", "");
    let mut figure = task.figure([Panel::only(x, Axis::log("runs after a flush, mean", ""))]);
    for name in BOUNDED.into_iter().chain(["tiered", "leveled"]) {
        figure.draw("", name, ascending(&curves.of(name)));
    }
    for spec in &own {
        figure.draw("", spec, curves.points(std::slice::from_ref(spec)));
    }
    claim_large(&mut figure, &curves);
    claim_small(&mut figure, &curves);
    claim_sized(&mut figure, &curves);
    note(&mut figure, flushes);
    Ok(figure)
}

impl Curves {
    fn of(&self, name: &str) -> Curve {
        match name {
            "tiered" | "leveled" => self.points(&specs([name], "ratio", &RATIOS)),
            _ => self.points(&specs([name], "k", &BOUNDS)),
        }
    }

    fn points(&self, specs: &[String]) -> Curve {
        let point = |spec: &String| {
            let figures = self.0.of(spec).last();
            (figures.write_cost_system, figures.read_cost_mean)
        };
        specs.iter().map(point).collect()
    }
}

/// Returns the points of `curve`, write cost ascending.
fn ascending(curve: &[(f64, f64)]) -> Curve {
    let mut curve = curve.to_vec();
    curve.sort_by(|one, other| one.0.total_cmp(&other.0));
    curve
}

/// Returns the points of `curve` as (read cost, write cost), ascending.
fn by_read_cost(curve: &[(f64, f64)]) -> Curve {
    let turned: Curve = curve.iter().map(|(write, read)| (*read, *write)).collect();
    ascending(&turned)
}

/// Returns the least ratio of the write costs of `curve` and of `other` at the same read costs.
/// Between its points `other` is interpolated.
fn least_excess(curve: &[(f64, f64)], other: &[(f64, f64)]) -> Option<f64> {
    let other = by_read_cost(other);
    least(curve.iter().filter_map(|(write, read)| Some(write / between(&other, *read)?)))
}

/// Adds claims for k = 4, 5, 6 and 7: mostly after 4^k flushes.
fn claim_large(figure: &mut Figure, curves: &Curves) {
    let [minlatency, binomial, _, _, constant] = BOUNDED.map(|name| curves.of(name));
    let pairs = minlatency.iter().zip(&binomial).take(4);
    let apart =
        pairs.flat_map(|((w1, r1), (w2, r2))| [(w2 / w1 - 1.0).abs(), (r2 / r1 - 1.0).abs()]);
    let claim = "k = 4 to 7: write and read costs of minlatency and binomial differ at most by \
                 this share (they are the same)";
    figure.at_most(claim, most(apart), 0.05);
    let shares = BOUNDED[..4].iter().flat_map(|name| {
        let curve = curves.of(name).into_iter();
        curve.zip(BOUNDS).take(4).map(|((_, read), k)| read / k as f64)
    });
    let claim = "k = 4 to 7: least mean read cost over k, all but constant (it is close to k)";
    figure.at_least(claim, least(shares), 0.8);
    for name in ["bigtable", "exploring"] {
        let claim = format!(
            "k = 4 to 6: least write cost of {name} over that of minlatency at the same read cost \
             (it is far from the frontier)"
        );
        figure.at_least(claim, least_excess(&curves.of(name)[..3], &minlatency), 1.5);
    }
    let dearer = constant.iter().zip(&minlatency).map(|((one, _), (other, _))| one / other);
    let claim = "least write cost of constant over that of minlatency with the same k (constant is \
                 far from optimal)";
    figure.at_least(claim, least(dearer), 10.0);
}

/// Adds claims for k = 8 and 10: within 4^k flushes.
fn claim_small(figure: &mut Figure, curves: &Curves) {
    let [minlatency, binomial, bigtable, exploring, _] = BOUNDED.map(|name| curves.of(name));
    for name in ["minlatency", "bigtable", "exploring"] {
        let claim = format!(
            "k = 8 and 10: least write cost of {name} over that of binomial at the same read cost \
             (binomial is slightly better)"
        );
        figure.at_least(claim, least_excess(&curves.of(name)[4..], &binomial), 1.0);
    }
    for (name, condition) in
        [("bigtable", "they are comparable"), ("exploring", "it is close to the frontier")]
    {
        let claim = format!(
            "k = 8 and 10: least write cost of {name} over that of minlatency at the same read \
             cost ({condition})"
        );
        figure.near(claim, 1.0, least_excess(&curves.of(name)[4..], &minlatency), 0.2);
    }
    let [eight, ten] = [exploring[4], exploring[5]];
    let apart = most([(ten.0 / eight.0 - 1.0).abs(), (ten.1 / eight.1 - 1.0).abs()]);
    let claim = "k = 8 and 10: write and read costs of exploring differ at most by this share (the \
                 points are indistinguishable)";
    figure.at_most(claim, apart, 0.1);
    let others = binomial[5].1.min(bigtable[5].1).min(minlatency[5].1);
    let claim = "k = 10: read cost of exploring over the least of the others (it lies low)";
    figure.at_most(claim, ten.1 / others, 1.0);
}

fn claim_sized(figure: &mut Figure, curves: &Curves) {
    let tiered = curves.of("tiered");
    let leveled = curves.of("leveled");
    let bounded = || BOUNDED[..4].iter().flat_map(|name| curves.of(name));
    let others = || bounded().chain(leveled.iter().copied());
    let dearest = most(others().map(|(_, read)| read));
    let reads = least(tiered.iter().map(|(_, read)| *read));
    let claim = "least read cost of tiered over the most of all others (tiered is higher)";
    figure.at_least(claim, over(reads, dearest), 1.0);
    let cheapest = least(others().map(|(write, _)| write));
    let writes = most(tiered[1..].iter().map(|(write, _)| *write));
    let claim = "B = 8 to 32: most write cost of tiered over the least of all others (tiered is \
                 significantly lower)";
    figure.at_most(claim, over(writes, cheapest), 0.75);
    let bounded_most = most(bounded().map(|(_, read)| read));
    let leveled_most = most(leveled.iter().map(|(_, read)| *read));
    let claim = "most read cost of leveled over the most of the bounded policies (comparable)";
    figure.near(claim, 1.0, over(leveled_most, bounded_most), 0.2);
    for name in STATIC {
        let claim = format!(
            "least write cost of leveled over that of {name} at the same read cost ({name} is \
             closer to the frontier)"
        );
        figure.at_least(claim, least_excess(&leveled, &curves.of(name)), 2.0);
    }
    let mut longer = curves.of("minlatency");
    longer.extend(curves.points(&specs(["minlatency"], "k", &FARTHER)));
    let claim = "write cost of tiered (B = 4) over that of minlatency with k up to 16 at the same \
                 read cost (minlatency is closer to the frontier)";
    figure.at_least(claim, least_excess(&tiered, &longer), 1.0);
}

fn note(figure: &mut Figure, flushes: u64) {
    figure.note(format!(
        "A curve per policy, a point per k = 4, 5, 6, 7, 8, 10 or ratio = 4, 8, 16, 32, from \
         simulations of {flushes} flushes of equal size. Of the bounded policies and leveled the \
         rightmost point has the least k and the largest ratio; of tiered it has the least ratio."
    ));
    figure.note(
        "Read cost: runs after each flush, averaged; the two runs of level 0 of leveled count one \
         by one, as in the experiments of the paper.",
    );
    figure.explain(
        "binomial is slightly better",
        "with k = 8 and 10 binomial writes a few hundredths more than minlatency at the same read \
         cost, not less: by its definition it merges early. (A published simulator lets it wait \
         until there are more than k runs.)",
    );
    figure.note(
        "\"At the same read cost\" is read off the other curve, straight between its points on \
         logarithmic axes; points beyond its ends are not compared.",
    );
}
