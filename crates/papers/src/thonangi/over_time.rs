//! Figures 3 and 4: what merges have written into each level, over time.

use super::fit::fit;
use super::scale::{POINTS, scale_note, small_scale};
use super::steady::{Bench, Course, Keys, LevelNow, REQUESTS_MAX};
use super::sweep::{least, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_sim::BlockSim;

/// The setting of figure 2a at its smallest size.
const DATASET_MB: u64 = 20;
/// Megabytes of requests that are watched, at the paper's scale.
const WATCHED_MB: f64 = 150.0;
/// Points of a curve.
const POINTS_DRAWN: usize = 300;
/// The ratio of neighbouring levels.
const RATIO: f64 = 10.0;
/// The part of a level that a window takes.
const RATE: f64 = 0.05;

/// The levels of one policy, after every few requests.
struct Watched(Vec<(f64, Vec<LevelNow>)>);

struct Watch {
    bench: Bench,
    megabytes: f64,
}

/// Measures figure 3.
pub(crate) fn measure_two(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let found = watch(info, effort, &["full", "choose_best"], progress)?;
    let mut figure = drawn(info, effort, &found);
    if let [(_, full), (_, best)] = &found[..] {
        claims_of_steps(&mut figure, full, best);
        claims_of_windows(&mut figure, full, best, effort);
        explain_frequency(&mut figure, full, best);
    }
    Ok(figure)
}

/// Measures figure 4.
pub(crate) fn measure_three(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let found = watch(info, effort, &["full", "choose_best", "test_mixed"], progress)?;
    let mut figure = drawn(info, effort, &found);
    if let [(_, full), (_, best), (_, mixed)] = &found[..] {
        claims_of_mixing(&mut figure, full, best, mixed);
    }
    Ok(figure)
}

fn watch<'a>(
    info: &FigureInfo,
    effort: Effort,
    policies: &[&'a str],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<(&'a str, Watched)>> {
    let shrink = small_scale(effort);
    let watch = |policy: &&str| Watch {
        bench: Bench::small(policy, Keys::Uniform, DATASET_MB, shrink),
        megabytes: WATCHED_MB / shrink as f64,
    };
    let jobs: Vec<Watch> = policies.iter().map(watch).collect();
    let found = measure_all(info.name, &jobs, progress)?;
    Ok(policies.iter().copied().zip(found).collect())
}

impl Job for Watch {
    type Output = Watched;

    fn work(&self) -> u64 {
        self.bench.work()
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Watched> {
        let sizes = self.bench.sizes();
        let workload = self.bench.workload(0.5, REQUESTS_MAX)?;
        let index = BlockSim::new(&self.bench.build_policy()?, sizes);
        let mut course = Course { index, ops: workload.ops(), ticker };
        course.run(workload.load_ops())?;
        Ok(Watched(self.bench.settled(course, sizes)?.watch(self.megabytes)?))
    }
}

fn drawn(info: &FigureInfo, effort: Effort, found: &[(&str, Watched)]) -> Figure {
    let panel = |level: usize| Panel {
        name: format!("L{level}"),
        title: format!("merges into level {level}"),
        x: Axis::linear("requests", "MB"),
        y: Axis::linear("written so far", "blocks"),
    };
    let mut figure = Figure::empty(info.name, info.title, vec![panel(1), panel(2)]);
    let shrink = small_scale(effort) as f64;
    for level in [1, 2] {
        for (policy, watched) in found {
            let step = (watched.0.len() / POINTS_DRAWN).max(1);
            for (x, y) in watched.written(level).into_iter().step_by(step) {
                figure.point(&format!("L{level}"), policy, x * shrink, y * shrink);
            }
        }
    }
    figure.note(scale_note([(DATASET_MB, small_scale(effort))]));
    figure
}

impl Watched {
    fn at(levels: &[LevelNow], level: usize) -> LevelNow {
        levels.get(level - 1).copied().unwrap_or_default()
    }

    /// Returns the blocks written into `level` since the start, over megabytes.
    fn written(&self, level: usize) -> Vec<(f64, f64)> {
        let Watched(seen) = self;
        let start = seen.first().map_or(0, |(_, levels)| Watched::at(levels, level).written);
        let points = seen
            .iter()
            .map(|(x, levels)| (*x, (Watched::at(levels, level).written - start) as f64));
        points.collect()
    }

    /// Returns the jumps of [`Watched::written`], with their megabytes.
    fn jumps(&self, level: usize) -> Vec<(f64, f64)> {
        let written = self.written(level);
        let jumps = written.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1));
        jumps.filter(|(_, height)| *height > 0.0).collect()
    }

    fn merges(&self, level: usize) -> f64 {
        let Watched(seen) = self;
        let merges = |levels: &Vec<LevelNow>| Watched::at(levels, level).merges;
        let first = seen.first().map_or(0, |(_, levels)| merges(levels));
        (seen.last().map_or(0, |(_, levels)| merges(levels)) - first) as f64
    }

    /// Returns the blocks written into `level` per megabyte.
    fn cost(&self, level: usize) -> f64 {
        self.written(level).last().map_or(0.0, |(x, y)| y / x)
    }

    /// Returns the costs of merges into level 1 by cycle: from one merge into level 2 to the next.
    fn cycles(&self) -> Vec<Vec<f64>> {
        let ends: Vec<f64> = self.jumps(2).into_iter().map(|(x, _)| x).collect();
        let jumps = self.jumps(1);
        let cycle = |pair: &[f64]| {
            // The merge that overflows level 1 comes with the merge into level 2.
            let within = jumps.iter().filter(|(x, _)| *x > pair[0] && *x <= pair[1]);
            within.map(|(_, height)| *height).collect()
        };
        ends.windows(2).map(cycle).collect()
    }
}

fn claims_of_steps(figure: &mut Figure, full: &Watched, best: &Watched) {
    let heights = || full.jumps(2).into_iter().map(|(_, height)| height);
    figure.claim(most(heights()).zip(least(heights())).map(|(most, least)| {
        let claim = "full, level 2: jumps have the same height: largest over least, less 1, in %";
        Claim::at_most(claim, (most / least - 1.0) * 100.0, 10.0)
    }));
    let claim =
        "full: merges into level 1 are at least 10 times as frequent as into level 2: ratio";
    figure.claim(Claim::at_least(claim, full.merges(1) / full.merges(2), RATIO));
    let cycles = full.cycles();
    let rising = cycles.iter().flat_map(|cycle| cycle.windows(2)).map(|pair| pair[1] > pair[0]);
    let rising: Vec<bool> = rising.collect();
    let share = rising.iter().filter(|rises| **rises).count() as f64 / rising.len() as f64;
    let claim = "full, level 1: jumps start small and grow until level 1 is full: steps that rise \
                 within a cycle, %";
    figure.claim(Claim::at_least(claim, share * 100.0, 90.0));
    let growth = cycles.iter().filter_map(|cycle| Some(cycle.last()? / cycle.first()?));
    figure.claim(least(growth).map(|ratio| {
        let claim = "full, level 1: the last jump of a cycle over the first: at least";
        Claim::at_least(claim, ratio, 3.0)
    }));
    // A full merge moves as much as 20 windows.
    let windows = best.cost(1);
    let firsts = cycles.iter().filter_map(|cycle| cycle.first().copied());
    let megabytes = full.0.last().map_or(0.0, |(x, _)| *x) / full.merges(1);
    figure.claim(most(firsts).map(|first| {
        let claim = "there are moments at which full costs less than choose_best: its first merges \
                     into level 1, blocks per MB over those of choose_best";
        Claim::at_most(claim, first / megabytes / windows, 1.0)
    }));
}

fn claims_of_windows(figure: &mut Figure, full: &Watched, best: &Watched, effort: Effort) {
    for level in [1, 2] {
        let claim = format!(
            "choose_best: merges into level {level} are at least 20 times as frequent as those of \
             full: ratio"
        );
        let ratio = best.merges(level) / full.merges(level);
        figure.claim(Claim::at_least(claim, ratio, 1.0 / RATE));
        figure.claim(fit(&best.written(level), 1).map(|line| {
            let claim =
                format!("choose_best: the slope of level {level} remains constant over time: R^2");
            Claim::at_least(claim, line.explained, 0.999)
        }));
    }
    let capacity = Bench::small("choose_best", Keys::Uniform, DATASET_MB, small_scale(effort))
        .sizes()
        .memory_blocks as f64
        * RATIO;
    let fills = best.0.iter().map(|(_, levels)| Watched::at(levels, 1).blocks as f64 / capacity);
    figure.claim(least(fills).map(|fill| {
        let claim = "choose_best: level 1 is at least 95 % full at all times: least, %";
        // The window is rounded to whole blocks, and blocks that it leaves behind may be joined.
        Claim::at_least(claim, fill * 100.0, (1.0 - RATE) * 100.0 - 0.5)
    }));
}

/// Explains why the windows of level 1 are fewer than 20 for each full merge of it.
fn explain_frequency(figure: &mut Figure, full: &Watched, best: &Watched) {
    let merges = |watched: &Watched| watched.merges(1) / watched.merges(2);
    let why = format!(
        "level 1 is always full under choose_best, so that more deletes meet their inserts in it \
         and fewer records go on. A merge into level 2 comes after {:.1} into level 1 under \
         choose_best, and after {:.1} under full",
        merges(best),
        merges(full)
    );
    figure.explain("merges into level 2 are at least 20 times", why);
}

fn claims_of_mixing(figure: &mut Figure, full: &Watched, best: &Watched, mixed: &Watched) {
    let excess = |level, base: &Watched| (mixed.cost(level) / base.cost(level) - 1.0) * 100.0;
    for (base, name) in [(full, "full"), (best, "choose_best")] {
        let claim =
            format!("merges into level 1 cost test_mixed substantially less than {name}: by, %");
        figure.claim(Claim::at_least(claim, -excess(1, base), 10.0));
    }
    let claim = "merges into level 2 cost test_mixed practically the same as full: within, %";
    figure.claim(Claim::at_most(claim, excess(2, full).abs(), 5.0));
    let claim = "merges into level 2 cost test_mixed more than choose_best: by, %";
    figure.claim(Claim::at_least(claim, excess(2, best), 0.0));
    let all = |watched: &Watched| watched.cost(1) + watched.cost(2);
    for (base, name, paper) in [(full, "full", -34.0), (best, "choose_best", -20.0)] {
        let claim = format!("both levels: test_mixed over {name}, %");
        let percent = (all(mixed) / all(base) - 1.0) * 100.0;
        figure.claim(Claim::near(claim, paper, percent, POINTS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns levels 1 and 2 where level 2 is written in steps and level 1 with growing jumps.
    fn steps(height: impl Fn(usize) -> u64) -> Watched {
        let mut levels = vec![LevelNow::default(); 2];
        let seen = (0..400).map(|at| {
            if at % 4 == 3 {
                let merge = at / 4 % 10;
                levels[0].written += height(merge);
                levels[0].merges += 1;
                if merge == 9 {
                    levels[1].written += 5000;
                    levels[1].merges += 1;
                }
            }
            (at as f64 / 4.0, levels.clone())
        });
        Watched(seen.collect())
    }

    #[test]
    fn cycles_end_with_merges_into_level_2() {
        let watched = steps(|merge| 100 * (merge as u64 + 1));
        assert_eq!(watched.merges(1), 100.0);
        assert_eq!(watched.jumps(2).len(), 10);
        let cycles = watched.cycles();
        assert_eq!(cycles.len(), 9);
        assert!(cycles.iter().all(|cycle| cycle.len() == 10 && cycle[0] == 100.0), "{cycles:?}");
    }

    #[test]
    fn claims_of_steps_are_judged_by_the_data() {
        let verdicts = |full: &Watched| {
            let mut figure = Figure::empty("thonangi-fig3", "", Vec::new());
            claims_of_steps(&mut figure, full, &steps(|_| 500));
            let holds = figure.claims.iter().map(|claim| claim.verdict);
            holds.map(|verdict| verdict == crate::Verdict::Holds).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&steps(|merge| 100 * (merge as u64 + 1))), [true; 5]);
        assert_eq!(verdicts(&steps(|_| 600)), [true, true, false, false, false]);
    }
}
