//! Policies of other systems, beside figures of these systems and what their rules come to.

mod dynamic;
mod levels;
mod ratios;
mod reads;
mod rounds;
mod stripes;

use crate::form::*;
use anyhow::Context;
use lsmith_model::optimum::Hull;
use lsmith_sim::{Figures, UNIT_BYTES, simulate_unit};
use lsmith_workload::Rng;

/// A power of 2 and of 4, so that levels of these ratios are full at the end.
const FLUSHES: u64 = 4096;

/// The curve of the least cost at as many runs.
const LEAST: &str = "least";
const HULL_POINTS: usize = 60;
const RUNS_SHOWN: f64 = 30.0;

/// The policies of the first panel: the curve, and its settings.
const EQUAL: [(&str, &[&str]); 10] = [
    ("ucs", &["w=L10", "w=L4", "w=N", "w=T4", "w=T8", "w=T4/L4"]),
    ("lazy_leveling", &["ratio=2", "ratio=3", "ratio=4", "ratio=6", "ratio=10"]),
    (
        "fluid",
        &["inner=1, last=1", "inner=3, last=3", "ratio=10, inner=1, last=1", "ratio=10, inner=3"],
    ),
    ("autumn", &["ratio=2", "ratio=3", "ratio=4", "ratio=6", "ratio=10"]),
    ("vertiorizon", &["levels=2", "levels=3", "levels=5", "levels=3, merge=leveling"]),
    ("lucene_tiered", &["tier=2", "tier=3", "tier=4", "tier=6", "tier=10"]),
    ("clickhouse", &["base=2", "base=3", "base=5", "base=8"]),
    ("ics", &["threshold=0.5", "threshold=0.7", "threshold=1", "threshold=2", "threshold=4"]),
    ("tiered", &["ratio=2", "ratio=4", "ratio=8"]),
    ("minlatency", &["k=4", "k=6", "k=8", "k=12"]),
];

/// The policies of the panels with a largest merge.
const CAPPED: [&str; 4] = [
    "lucene_tiered(tier=8, at_once=8)",
    "lucene_tiered",
    "lucene_tiered(tier=16, at_once=16)",
    "clickhouse(largest=5GiB)",
];

/// The flushes of Lucene's simulation, and their bytes.
const LUCENE_FLUSHES: usize = 555;
const LUCENE_BYTES: u64 = 300 << 20;
/// Flushes of random size: how many there are, and the most bytes.
const RANDOM_FLUSHES: usize = 1000;
const RANDOM_BYTES_MAX: u64 = 244 << 20;
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// What `TieredMergePolicy` of Lucene 9.12 comes to.
struct Published {
    write: f64,
    runs_mean: f64,
    runs_max: f64,
}

/// Source: pull request 13430 of Lucene, and the same by its test class, 9.12.3.
const LUCENE: Published = Published { write: 1.99, runs_mean: 33.6, runs_max: 65.0 };
/// The same test class with flushes of random size.
const LUCENE_RANDOM: Published = Published { write: 2.88, runs_mean: 36.4, runs_max: 55.0 };

/// How far a figure may be off from Lucene's, as a share of it.
const TOLERANCE: f64 = 0.05;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let x = || Axis::log("runs after a flush, mean", "");
    let cost = || Axis::log("write cost", "bytes written per byte flushed");
    let mut figure = task.figure([
        Panel::new("a", format!("{FLUSHES} flushes of one size"), x(), cost()),
        Panel::new("b", format!("{LUCENE_FLUSHES} flushes of 300 MB, 5 GiB at most"), x(), cost()),
        Panel::new("c", "1000 flushes of up to 244 MB, 5 GiB at most", x(), cost()),
        levels::panel(),
        levels::deletes_panel(),
        reads::panel(),
        ratios::panel(),
        stripes::panel(),
        dynamic::panel(),
    ]);
    equal_flushes(task, &mut figure)?;
    let flushes = vec![LUCENE_BYTES; LUCENE_FLUSHES];
    capped(task, &mut figure, "b", &[flushes], &LUCENE)?;
    let draws: Vec<Vec<u64>> = SEEDS.into_iter().map(random_sizes).collect();
    capped(task, &mut figure, "c", &draws, &LUCENE_RANDOM)?;
    levels::measure(task, &mut figure)?;
    reads::measure(task, &mut figure)?;
    ratios::measure(task, &mut figure)?;
    stripes::measure(task, &mut figure)?;
    dynamic::measure(task, &mut figure)?;
    notes(&mut figure);
    Ok(figure)
}

fn random_sizes(seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed, 0);
    (0..RANDOM_FLUSHES).map(|_| rng.below(RANDOM_BYTES_MAX) + 1).collect()
}

fn simulate(task: &Task<'_>, spec: &str, sizes: &[u64], memtable: u64) -> anyhow::Result<Figures> {
    let policy = task.policy(spec)?;
    let simulated = simulate_unit(&policy, sizes.iter().copied(), memtable, &mut |_| {});
    Ok(simulated.with_context(|| format!("policy {spec}"))?.figures)
}

fn equal_flushes(task: &Task<'_>, figure: &mut Figure) -> anyhow::Result<()> {
    let sizes = vec![UNIT_BYTES; FLUSHES as usize];
    let cost = |spec: &str| simulate(task, spec, &sizes, UNIT_BYTES);
    for (curve, settings) in EQUAL {
        let mut points = Vec::new();
        for setting in settings {
            let found = cost(&format!("{curve}({setting})"))?;
            points.push((found.read_cost_mean, found.write_cost_system));
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        figure.draw("a", curve, points);
    }
    let hull = Hull::new(FLUSHES);
    let points = hull.points(HULL_POINTS).into_iter().map(|it| (it.runs_mean, it.write_cost));
    figure.draw("a", LEAST, points.filter(|(runs, _)| *runs <= RUNS_SHOWN));

    // The levels of these ratios. Each byte is written once, and on each level so many times more.
    for (w, write, runs_mean, runs_max) in [
        ("L4", 1.0 + 6.0 * (2.0 + 3.0 + 4.0) / 4.0, 6.0 * 0.75, 6.0),
        ("L10", 19.25, 3.44, 4.0),
        ("N", 1.0 + 12.0, 12.0 * 0.5, 12.0),
        ("T4", 1.0 + 6.0, 6.0 * 1.5, 18.0),
    ] {
        let found = cost(&format!("ucs(w={w})"))?;
        figure.near(format!("ucs, {w}: write cost"), write, found.write_cost_system, 0.005);
        figure.near(format!("ucs, {w}: mean runs"), runs_mean, found.read_cost_mean, 0.005);
        figure.near(format!("ucs, {w}: most runs"), runs_max, found.runs_max as f64, 0.0);
    }
    for (fluid, other) in [
        ("fluid(ratio=4, inner=1, last=1)", "cola(ratio=4)"),
        ("fluid(ratio=4, inner=3, last=3)", "tiered(ratio=4)"),
    ] {
        let (found, expected) = (cost(fluid)?, cost(other)?);
        let claim = format!("{fluid}: mean runs as {other}");
        figure.near(claim, expected.read_cost_mean, found.read_cost_mean, 0.005);
        let claim = format!("{fluid}: write cost over that of {other}");
        figure.at_most(claim, found.write_cost_system / expected.write_cost_system, 1.0);
    }
    for ratio in [4, 10] {
        let lazy = cost(&format!("lazy_leveling(ratio={ratio})"))?;
        let leveling = cost(&format!("fluid(ratio={ratio}, inner=1, last=1)"))?;
        let tiering = cost(&format!("tiered(ratio={ratio})"))?;
        let claim = format!("lazy leveling, ratio {ratio}: write cost over leveling");
        figure.at_most(claim, lazy.write_cost_system / leveling.write_cost_system, 1.0);
        let claim = format!("lazy leveling, ratio {ratio}: mean runs over tiering");
        figure.at_most(claim, lazy.read_cost_mean / tiering.read_cost_mean, 1.0);
    }
    autumn(figure, &cost)?;
    rounds::judge(figure, &cost)?;
    let ics = cost("ics")?;
    figure.at_most("ics: most runs, each as large as all newer ones", ics.runs_max as f64, 12.0);
    let found = cost("clickhouse")?;
    let depth = (FLUSHES as f64).log(5.0);
    let claim = "clickhouse: write cost, at most 1 + the logarithm of flushes to the base";
    figure.at_most(claim, found.write_cost_system, 1.0 + depth);
    Ok(())
}

/// Judges levels whose ratios grow with their number. `cost` simulates a policy.
fn autumn(
    figure: &mut Figure,
    cost: &impl Fn(&str) -> anyhow::Result<Figures>,
) -> anyhow::Result<()> {
    let leveling = |ratio: u64| cost(&format!("fluid(ratio={ratio}, inner=1, last=1)"));
    let (same, expected) = (cost("autumn(ratio=4, c=1)")?, leveling(4)?);
    let claim = "autumn, c 1: write cost as leveling";
    figure.near(claim, expected.write_cost_system, same.write_cost_system, 0.0);
    let claim = "autumn, c 1: mean runs as leveling";
    figure.near(claim, expected.read_cost_mean, same.read_cost_mean, 0.0);
    let all = (2..=32).map(leveling).collect::<anyhow::Result<Vec<Figures>>>()?;
    for (ratio, c) in [(2, 0.8), (4, 0.8), (2, 0.5)] {
        let name = format!("autumn, ratio {ratio}, c {c}");
        let found = cost(&format!("autumn(ratio={ratio}, c={c})"))?;
        // Levels by equation 5 of the paper.
        let held = |levels: i32| {
            f64::from(ratio).powi(levels) / f64::powf(c, f64::from(levels * (levels - 1) / 2))
        };
        let levels = (1..64).find(|levels| held(*levels) >= FLUSHES as f64).unwrap_or(64);
        figure.at_most(
            format!("{name}: most runs, one a level"),
            found.runs_max as f64,
            levels.into(),
        );
        let of_ratio = &all[ratio as usize - 2];
        let runs = found.read_cost_mean / of_ratio.read_cost_mean;
        figure.at_most(format!("{name}: mean runs over leveling"), runs, 1.0);
        let few = all.iter().filter(|it| it.read_cost_mean <= found.read_cost_mean);
        let least = few.map(|it| it.write_cost_system).fold(f64::INFINITY, f64::min);
        let claim = format!("{name}: write cost over leveling with no more runs");
        figure.at_most(claim, found.write_cost_system / least, 1.0);
    }
    figure.explain(
        "autumn, ratio 2",
        "The paper says that writes stay fast. For as many levels, equal ratios write least. Here \
         the first level has the largest ratio, and each memtable is merged into it.",
    );
    Ok(())
}

/// Draws and judges policies with a largest merge, each as the mean over `draws` of flush sizes.
fn capped(
    task: &Task<'_>,
    figure: &mut Figure,
    panel: &str,
    draws: &[Vec<u64>],
    published: &Published,
) -> anyhow::Result<()> {
    figure.point(panel, "Lucene 9.12", published.runs_mean, published.write);
    for spec in CAPPED {
        let mut all = Vec::new();
        for sizes in draws {
            all.push(simulate(task, spec, sizes, sizes.iter().copied().max().unwrap_or(1))?);
        }
        let mean_of = |value: fn(&Figures) -> f64| mean(all.iter().map(value)).unwrap_or(f64::NAN);
        let write = mean_of(|it| it.write_cost_system);
        let runs_mean = mean_of(|it| it.read_cost_mean);
        let runs_max = mean_of(|it| it.runs_max as f64);
        figure.point(panel, spec, runs_mean, write);
        if spec == "lucene_tiered" {
            let mut near = |what: &str, published: f64, found: f64| {
                let claim = format!("{panel}, lucene_tiered: {what} of Lucene");
                figure.near(claim, published, found, TOLERANCE * published);
            };
            near("write cost", published.write, write);
            near("mean segments", published.runs_mean, runs_mean);
            near("most segments", published.runs_max, runs_max);
        }
    }
    Ok(())
}

fn notes(figure: &mut Figure) {
    figure.explain(
        "lucene_tiered: ",
        "Lucene merges any segments and fills a merge up to 5 GB with small ones. Merges of \
         neighbours cannot, and what is left between two large runs stays.",
    );
    figure.note(format!(
        "Simulated by size alone: flushes share no key. {FLUSHES} flushes of one size end where \
         levels of ratio 2 and 4 are full. What is claimed of ucs there follows from its rule. For \
         L10 it is the sum over all flushes of what the rule merges. The least is over all \
         schedules of merges of whole runs that know the number of flushes."
    ));
    figure.note(format!(
        "Lucene's figures are those of its own simulation, without deletes. A gigabyte is 2^30 \
         bytes. Flushes of random size are the means of {} draws here, and one draw of another \
         generator there.",
        SEEDS.len()
    ));
}
