//! Figure 7: the CPU time of policies on the real store.

use super::scale::{cost_axis, dataset_axis};
use super::steady::{Bench, Keys, Steady};
use super::store::StoreIndex;
use super::sweep::{SEVEN, Spot, Sweep, least, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_in_turn};

/// The rate of merges, as in figure 6.
const RATE: f64 = 0.05;
/// The factor by which memory and data are smaller than in the paper. Windows still have tens of
/// blocks; with smaller ones the fixed cost of a merge would dominate.
const SHRINK: u64 = 8;
const SHRINK_QUICK: u64 = 32;
const SIZES_MB: [u64; 3] = [200, 800, 1500];
const SIZES_QUICK_MB: [u64; 2] = [200, 500];
/// Write costs that differ by at most this are not ordered, in percent.
const TIE: f64 = 5.0;

/// The axis of seconds per megabyte of requests.
type Time = fn(&Steady) -> f64;

/// The parts of the CPU time.
const TIMES: [(&str, Time); 2] =
    [("requests", |steady| steady.cpu.all), ("merges", |steady| steady.cpu.merging)];

/// A measurement of a store.
struct Stored(Spot);

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (sizes, shrink) = if effort.is_quick {
        (&SIZES_QUICK_MB[..], SHRINK_QUICK * effort.shrink / Effort::QUICK.shrink)
    } else {
        (&SIZES_MB[..], SHRINK)
    };
    let bench = |policy: &str, size| Bench {
        rate: RATE,
        ..Bench::standard(policy, Keys::NORMAL, size, shrink)
    };
    let learned = learn(sizes, bench, progress)?;
    let mut stores = Vec::new();
    for curve in SEVEN {
        for &size in sizes {
            let mut bench = bench(curve, size);
            if let Some(steady) = learned.at("", curve, size as f64) {
                bench.policy = with_thresholds(steady);
            }
            let x = size as f64;
            stores.push(Stored(Spot { panel: "", curve: curve.to_owned(), x, bench }));
        }
    }
    let found = measure_in_turn("runs on the store", &stores, progress)?;
    let sweep = Sweep::of(stores.into_iter().map(|Stored(spot)| spot).zip(found).collect());
    let mut figure = Figure::empty(info.name, info.title, panels());
    draw(&mut figure, &sweep);
    claims(&mut figure, &sweep);
    claims_of_growth(&mut figure, &sweep);
    explain(&mut figure, &sweep);
    notes(&mut figure, &sweep, shrink);
    Ok(figure)
}

/// Returns the thresholds that `mixed` learns in simulations of the same scale. On the store
/// learning would take most of the time and give the same thresholds.
fn learn(
    sizes: &[u64],
    bench: impl Fn(&str, u64) -> Bench,
    progress: &SharedProgress,
) -> anyhow::Result<Sweep> {
    let spot = |&size: &u64| {
        let curve = "mixed".to_owned();
        let bench = bench("mixed", size);
        Spot { panel: "", curve, x: size as f64, bench }
    };
    Sweep::measure("thresholds by simulation", sizes.iter().map(spot).collect(), progress)
}

fn with_thresholds(steady: &Steady) -> String {
    let tau = if steady.tau.is_empty() { "0" } else { &steady.tau };
    format!("mixed(tau={tau}, beta={})", steady.beta.unwrap_or(false))
}

impl Job for Stored {
    type Output = Steady;

    fn work(&self) -> u64 {
        self.0.bench.work()
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Steady> {
        let bench = &self.0.bench;
        let workload = bench.workload(0.0, 0)?;
        let mut index = StoreIndex::open(bench, &workload)?;
        let steady = bench.steady(&mut index, bench.sizes(), ticker)?;
        index.check()?;
        Ok(steady)
    }
}

fn panels() -> Vec<Panel> {
    let panel = |name: &str, title: &str, y| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: dataset_axis(),
        y,
    };
    vec![
        panel("time", "all", Axis::linear("CPU", "ms per MB of requests")),
        panel("merging", "merges alone", Axis::linear("CPU", "ms per MB of requests")),
        panel("writes", "write cost", cost_axis()),
        panel("choosing", "choosing what to merge", Axis::linear("share of the CPU", "%")),
    ]
}

fn draw(figure: &mut Figure, sweep: &Sweep) {
    sweep.draw_in(figure, "time", |steady| steady.cpu.all * 1e3);
    sweep.draw_in(figure, "merging", |steady| steady.cpu.merging * 1e3);
    sweep.draw_in(figure, "writes", |steady| steady.write_cost_blocks);
    sweep.draw_in(figure, "choosing", |steady| steady.cpu.choosing_percent());
}

/// Returns the number of pairs of policies at one size whose times have the order of their writes,
/// and the number of pairs whose writes differ.
fn ranked(sweep: &Sweep, time: impl Fn(&Steady) -> f64) -> (usize, usize) {
    let mut pairs = 0;
    let mut alike = 0;
    for x in sweep.xs("") {
        for (index, one) in SEVEN.iter().enumerate() {
            for other in &SEVEN[index + 1..] {
                let steady = sweep.at("", one, x).zip(sweep.at("", other, x));
                let Some((one, other)) = steady else { continue };
                let writes = one.write_cost_blocks / other.write_cost_blocks - 1.0;
                if writes.abs() * 100.0 > TIE {
                    pairs += 1;
                    alike += usize::from((writes > 0.0) == (time(one) > time(other)));
                }
            }
        }
    }
    (alike, pairs)
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    for (what, time) in TIMES {
        let (alike, pairs) = ranked(sweep, time);
        figure.claim((pairs > 0).then(|| {
            let claim = format!(
                "time of {what} ranks policies largely as writes do: of {pairs} pairs at one size \
                 whose writes differ by more than {TIE} %, in this order by time too, %"
            );
            Claim::at_least(claim, alike as f64 / pairs as f64 * 100.0, 80.0)
        }));
    }
    let xs = sweep.xs("");
    for (what, time) in TIMES {
        let took = |policy: &str, x| sweep.at("", policy, x).map(time);
        let over_least = |x: f64| {
            let others = SEVEN.iter().filter_map(|policy| took(policy, x));
            Some((took("mixed", x)? / least(others)? - 1.0) * 100.0)
        };
        figure.claim(most(xs.iter().filter_map(|x| over_least(*x))).map(|percent| {
            let claim = format!(
                "time of {what}: mixed remains the winner, or loses by a small margin: at most \
                 over the least at any size, %"
            );
            Claim::at_most(claim, percent, 5.0)
        }));
    }
}

fn claims_of_growth(figure: &mut Figure, sweep: &Sweep) {
    let cpu = |policy: &str, x| sweep.at("", policy, x).map(|steady| steady.cpu);
    let xs = sweep.xs("");
    let (Some(first), Some(last)) = (xs.first().copied(), xs.last().copied()) else { return };
    let grown = SEVEN.iter().filter_map(|p| Some(cpu(p, last)?.all / cpu(p, first)?.all));
    figure.claim(least(grown).map(|ratio| {
        let claim = format!(
            "requests take longer as the index grows: {last} MB over {first} MB, least ratio"
        );
        Claim::at_least(claim, ratio, 1.0)
    }));
    let shares =
        |x| SEVEN.iter().filter_map(move |policy| Some(cpu(policy, x)?.choosing_percent()));
    figure.claim(most(xs.iter().copied().flat_map(shares)).map(|percent| {
        Claim::at_most(
            "choosing what to merge takes up to 16 % of the time: at most, %",
            percent,
            16.0,
        )
    }));
    for policy in ["choose_best", "mixed"] {
        let share = |x| Some(cpu(policy, x)?.choosing_percent());
        figure.claim(share(last).zip(share(first)).map(|(late, early)| {
            let claim = format!(
                "{policy}: the share of choosing falls as the data grow: {last} MB over {first} \
                 MB, ratio"
            );
            Claim::at_most(claim, late / early, 1.0)
        }));
    }
}

/// Explains why times have another order than writes.
fn explain(figure: &mut Figure, sweep: &Sweep) {
    let Some(x) = sweep.xs("").last().copied() else { return };
    let words = ["full", "choose_best"].into_iter().filter_map(|policy| {
        let cpu = sweep.at("", policy, x)?.cpu;
        let rest = cpu.all - cpu.merging - cpu.choosing;
        Some(format!("{policy} {:.1} and {:.1}", rest * 1e3, cpu.merging * 1e3))
    });
    let times = words.collect::<Vec<String>>().join("; ");
    let why = format!(
        "nothing waits for a device here, and the CPU that a merge takes is not all. Each window \
         that partial policies take from memory is followed by putting the newest entries among \
         those that stay. An entry is looked at when it comes, and hardly ever again, but its \
         place is copied about {:.0} times before it leaves; under full once. At {x} MB, ms per \
         MB outside of merges and in them: {times}. Small merges also have a fixed part: a file, \
         a record of the manifest, a version of the tree.",
        1.0 / RATE
    );
    figure.explain("time of", why);
    let percents = SEVEN.iter().flat_map(|policy| {
        let at = |x| Some(sweep.at("", policy, x)?.cpu.choosing_percent());
        sweep.xs("").into_iter().filter_map(at)
    });
    let percent = most(percents).unwrap_or_default();
    let why = format!(
        "it is {percent:.1} % at most, so that what falls or rises is hardly more than noise; \
         mixed chooses less where beta is true, as it then merges all of a level"
    );
    figure.explain("the share of choosing", why);
}

fn notes(figure: &mut Figure, sweep: &Sweep, shrink: u64) {
    let words = SEVEN.iter().filter_map(|policy| {
        let sizes = sweep.xs("").into_iter();
        let shares = sizes.filter_map(|x| Some(sweep.at("", policy, x)?.cpu.choosing_percent()));
        let percents: Vec<f64> = shares.collect();
        let low = least(percents.iter().copied())?;
        let high = most(percents)?;
        Some(format!("{policy} {low:.2} to {high:.2} %"))
    });
    let shares: Vec<String> = words.collect();
    figure.note(format!("CPU share of choosing what to merge: {}.", shares.join("; ")));
    figure.note(format!(
        "Real store, in lockstep, at 1/{shrink} of the paper's scale; merges run on the thread \
         that writes. Time is the CPU time of that thread, user and system, with what making \
         the requests takes (about 3 ms per MB, the same for all); files are real but never \
         synced. The paper has elapsed time on a solid-state drive."
    ));
    let words = sweep.xs("").into_iter().filter_map(|x| {
        let policy = sweep.spot("", "mixed", x)?.bench.policy.clone();
        Some(format!("{x} MB {policy}"))
    });
    let learned: Vec<String> = words.collect();
    figure.note(format!(
        "mixed runs with what it learns in simulations of the same scale: {}.",
        learned.join("; ")
    ));
}
