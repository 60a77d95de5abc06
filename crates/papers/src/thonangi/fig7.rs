//! Figure 7: the CPU time of policies on the real store.

use super::scale::{cost_axis, dataset_axis};
use super::steady::{Bench, Keys, Steady};
use super::store::StoreIndex;
use super::sweep::{SEVEN, Sweep, and_own, steady_states};
use crate::form::*;

/// The rate of merges, as in figure 6.
const RATE: f64 = 0.05;
/// The factor by which memory and data are smaller than in the paper. Windows still have tens of
/// blocks; with smaller ones the fixed cost of a merge would dominate.
const SHRINK: u64 = 8;
const SHRINK_QUICK: u64 = 32;
const SIZES_MB: [f64; 3] = [200.0, 800.0, 1500.0];
const SIZES_QUICK_MB: [f64; 2] = [200.0, 500.0];
/// Write costs that differ by at most this are not ordered, in percent.
const TIE: f64 = 5.0;

/// The parts of the CPU time, with their panels.
const TIMES: [(&str, &str); 2] = [("requests", TIME), ("merges", MERGING)];

const TIME: &str = "time";
const MERGING: &str = "merging";
const WRITES: &str = "writes";
const CHOOSING: &str = "choosing";

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let sizes = task.pick(&SIZES_QUICK_MB[..], &SIZES_MB);
    let shrink = task.pick(SHRINK_QUICK * task.effort.shrink / Effort::QUICK.shrink, SHRINK);
    let bench = |policy: &str, size| Bench {
        rate: RATE,
        ..Bench::standard(policy, Keys::NORMAL, size as u64, shrink)
    };
    // On the store learning would take most of the time and give the same thresholds.
    let learned =
        steady_states(task, "thresholds by simulation", spots("", ["mixed"], sizes, bench))?;
    let stores = spots("", and_own(&SEVEN, task), sizes, |curve, size| {
        let learned = learned.at("", curve, size);
        bench(&learned.map_or_else(|| curve.to_owned(), with_thresholds), size).with_own(task)
    });
    let work = |store: &Spot<Bench>| store.job.work();
    let found = task.each_in_turn("runs on the store", &stores, work, |store, ticker| {
        run(&store.job, ticker)
    })?;
    let sweep = Sweep::of(stores, found);
    let ms = || Axis::linear("CPU", "ms per MB of requests");
    let mut figure = task.figure([
        Panel::new(TIME, "all", dataset_axis(), ms()),
        Panel::new(MERGING, "merges alone", dataset_axis(), ms()),
        Panel::new(WRITES, "write cost", dataset_axis(), cost_axis()),
        Panel::new(
            CHOOSING,
            "choosing what to merge",
            dataset_axis(),
            Axis::linear("share of the CPU", "%"),
        ),
    ]);
    sweep.draw_in(&mut figure, TIME, |steady| steady.cpu.all * 1e3);
    sweep.draw_in(&mut figure, MERGING, |steady| steady.cpu.merging * 1e3);
    sweep.draw_in(&mut figure, WRITES, Steady::cost);
    sweep.draw_in(&mut figure, CHOOSING, |steady| steady.cpu.choosing_percent());
    claims(&mut figure, sizes);
    claims_of_growth(&mut figure, sizes);
    explain(&mut figure, &sweep, sizes);
    notes(&mut figure, &sweep, shrink);
    Ok(figure)
}

/// Returns `mixed` with the thresholds that it has learned.
fn with_thresholds(steady: &Steady) -> String {
    let tau = if steady.tau.is_empty() { "0" } else { &steady.tau };
    format!("mixed(tau={tau}, beta={})", steady.beta.unwrap_or(false))
}

fn run(bench: &Bench, ticker: &Ticker<'_>) -> anyhow::Result<Steady> {
    let workload = bench.workload(0.0, 0)?;
    let mut index = StoreIndex::open(bench, &workload)?;
    let steady = bench.when_steady(&mut index, ticker, |settled| settled.measure())?;
    index.check()?;
    Ok(steady)
}

/// Returns the number of pairs of policies at one size whose times have the order of their writes,
/// and the number of pairs whose writes differ.
fn ranked_alike(figure: &Figure, sizes: &[f64], time: &str) -> (usize, usize) {
    let counts = sizes.iter().map(|x| {
        ranked(&SEVEN, |one, other| {
            let excess = |panel| figure.excess(panel, one, other, *x);
            excess(WRITES).zip(excess(time)).filter(|(writes, _)| writes.abs() > TIE)
        })
    });
    counts.fold((0, 0), |sum, (alike, pairs)| (sum.0 + alike, sum.1 + pairs))
}

fn claims(figure: &mut Figure, sizes: &[f64]) {
    for (what, panel) in TIMES {
        let (alike, pairs) = ranked_alike(figure, sizes, panel);
        let percent = (pairs > 0).then(|| alike as f64 / pairs as f64 * 100.0);
        let claim = format!(
            "time of {what} ranks policies largely as writes do: of {pairs} pairs at one size \
             whose writes differ by more than {TIE} %, in this order by time too, %"
        );
        figure.at_least(claim, percent, 80.0);
    }
    for (what, panel) in TIMES {
        let over_least = |x: &f64| {
            let least = least(SEVEN.iter().filter_map(|policy| figure.y(panel, policy, *x)))?;
            Some(percent_off(figure.y(panel, "mixed", *x)?, least))
        };
        let over_least = most(sizes.iter().filter_map(over_least));
        let claim = format!(
            "time of {what}: mixed remains the winner, or loses by a small margin: at most over \
             the least at any size, %"
        );
        figure.at_most(claim, over_least, 5.0);
    }
}

fn claims_of_growth(figure: &mut Figure, sizes: &[f64]) {
    let [first, .., last] = *sizes else { return };
    let grown = |figure: &Figure, panel, policy| {
        over(figure.y(panel, policy, last), figure.y(panel, policy, first))
    };
    let longer = least(SEVEN.iter().filter_map(|policy| grown(figure, TIME, policy)));
    let claim =
        format!("requests take longer as the index grows: {last} MB over {first} MB, least ratio");
    figure.at_least(claim, longer, 1.0);
    let claim = "choosing what to merge takes up to 16 % of the time: at most, %";
    figure.at_most(claim, most(shares(figure, &SEVEN)), 16.0);
    for policy in ["choose_best", "mixed"] {
        let claim = format!(
            "{policy}: the share of choosing falls as the data grow: {last} MB over {first} MB, \
             ratio"
        );
        figure.at_most(claim, grown(figure, CHOOSING, policy), 1.0);
    }
}

/// Returns the shares of the time in which `policies` choose what to merge, in percent.
fn shares(figure: &Figure, policies: &[&str]) -> Vec<f64> {
    let shares = policies.iter().flat_map(|policy| figure.curve(CHOOSING, policy));
    shares.map(|(_, share)| share).collect()
}

/// Explains why times have another order than writes.
fn explain(figure: &mut Figure, sweep: &Sweep, sizes: &[f64]) {
    let Some(&x) = sizes.last() else { return };
    let words = ["full", "choose_best"].into_iter().filter_map(|policy| {
        let cpu = sweep.at("", policy, x)?.cpu;
        let rest = cpu.all - cpu.merging - cpu.choosing;
        Some(format!("{policy} {:.1} and {:.1}", rest * 1e3, cpu.merging * 1e3))
    });
    let times = joined("; ", words);
    let why = format!(
        "nothing waits for a device here, and the CPU that a merge takes is not all. Each window \
         that partial policies take from memory is followed by putting the newest entries among \
         those that stay. An entry is looked at when it comes, and hardly ever again, but its \
         place is copied about {:.0} times before it leaves; under full once. At {x} MB, ms per MB \
         outside of merges and in them: {times}. Small merges also have a fixed part: a file, a \
         record of the manifest, a version of the tree.",
        1.0 / RATE
    );
    figure.explain("time of", why);
    let percent = most(shares(figure, &SEVEN)).unwrap_or_default();
    let why = format!(
        "it is {percent:.1} % at most, so that what falls or rises is hardly more than noise; \
         mixed chooses less where beta is true, as it then merges all of a level"
    );
    figure.explain("the share of choosing", why);
}

fn notes(figure: &mut Figure, sweep: &Sweep, shrink: u64) {
    let words = SEVEN.iter().filter_map(|policy| {
        let percents = || shares(figure, &[policy]);
        Some(format!("{policy} {:.2} to {:.2} %", least(percents())?, most(percents())?))
    });
    let shares = joined("; ", words);
    figure.note(format!("CPU share of choosing what to merge: {shares}."));
    figure.note(format!(
        "Real store, in lockstep, at 1/{shrink} of the paper's scale; merges run on the thread \
         that writes. Time is the CPU time of that thread, user and system, with what making the \
         requests takes (about 3 ms per MB, the same for all); files are real but never synced. \
         The paper has elapsed time on a solid-state drive."
    ));
    let mixed = sweep.iter().map(|(spot, _)| spot).filter(|spot| spot.curve == "mixed");
    let words = mixed.map(|spot| format!("{} MB {}", spot.x, spot.job.policy));
    let learned = joined("; ", words);
    figure.note(format!(
        "mixed runs with what it learns in simulations of the same scale: {learned}."
    ));
}
