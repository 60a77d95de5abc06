//! Figures 3 and 4: what merges have written into each level, over time.

use super::fit::fit;
use super::scale::{POINTS, scale_note, small_scale};
use super::steady::{Bench, Keys, LevelNow};
use super::sweep::and_own;
use crate::form::*;

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

pub(crate) fn measure_two(task: &Task<'_>) -> anyhow::Result<Figure> {
    let (mut figure, [full, best]) = watch(task, ["full", "choose_best"])?;
    claims_of_steps(&mut figure, &full, &best);
    claims_of_windows(&mut figure, &full, &best, task.effort);
    explain_frequency(&mut figure, &full, &best);
    Ok(figure)
}

pub(crate) fn measure_three(task: &Task<'_>) -> anyhow::Result<Figure> {
    let (mut figure, watched) = watch(task, ["full", "choose_best", "test_mixed"])?;
    claims_of_mixing(&mut figure, &watched);
    Ok(figure)
}

/// Watches `policies`, and draws what they have written.
fn watch<const N: usize>(
    task: &Task<'_>,
    policies: [&str; N],
) -> anyhow::Result<(Figure, [Watched; N])> {
    let shrink = small_scale(task.effort);
    let curves = and_own(&policies, task);
    let bench = |policy: &String| Bench::small(policy, Keys::Uniform, DATASET_MB, shrink);
    let benches: Vec<Bench> = curves.iter().map(|curve| bench(curve).with_own(task)).collect();
    let found = task.each(task.name(), &benches, Bench::work, |bench, ticker| {
        let megabytes = WATCHED_MB / shrink as f64;
        bench.when_steady(bench.sim()?, ticker, |settled| settled.watch(megabytes))
    })?;
    let found: Vec<Watched> = found.into_iter().map(Watched).collect();
    let mut figure = task.figure([1, 2].map(|level| {
        let [x, y] = [("requests", "MB"), ("written so far", "blocks")]
            .map(|(label, unit)| Axis::linear(label, unit));
        Panel::new(format!("L{level}"), format!("merges into level {level}"), x, y)
    }));
    let scaled = |(x, y): (f64, f64)| (x * shrink as f64, y * shrink as f64);
    for level in [1, 2] {
        for (policy, watched) in curves.iter().zip(&found) {
            let step = (watched.0.len() / POINTS_DRAWN).max(1);
            let points = watched.written(level).into_iter().step_by(step).map(scaled);
            figure.draw(&format!("L{level}"), policy, points);
        }
    }
    figure.note(scale_note([(DATASET_MB, shrink)]));
    let of_paper: Vec<Watched> = found.into_iter().take(N).collect();
    let found = of_paper.try_into().map_err(|_| anyhow::anyhow!("a policy has one result"))?;
    Ok((figure, found))
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
    let spread = over(most(heights()), least(heights())).map(|ratio| (ratio - 1.0) * 100.0);
    let claim = "full, level 2: jumps have the same height: largest over least, less 1, in %";
    figure.at_most(claim, spread, 10.0);
    let claim = "full: merges into level 1 are at least 10 times as frequent as into level 2: \
                 ratio";
    figure.at_least(claim, full.merges(1) / full.merges(2), RATIO);
    let cycles = full.cycles();
    let rising = cycles.iter().flat_map(|cycle| cycle.windows(2)).map(|pair| pair[1] > pair[0]);
    let rising: Vec<bool> = rising.collect();
    let share = rising.iter().filter(|rises| **rises).count() as f64 / rising.len() as f64;
    let claim = "full, level 1: jumps start small and grow until level 1 is full: steps that rise \
                 within a cycle, %";
    figure.at_least(claim, share * 100.0, 90.0);
    let growth = cycles.iter().filter_map(|cycle| Some(cycle.last()? / cycle.first()?));
    let claim = "full, level 1: the last jump of a cycle over the first: at least";
    figure.at_least(claim, least(growth), 3.0);
    // A full merge moves as much as 20 windows.
    let windows = best.cost(1);
    let firsts = most(cycles.iter().filter_map(|cycle| cycle.first().copied()));
    let megabytes = full.0.last().map_or(0.0, |(x, _)| *x) / full.merges(1);
    let claim = "there are moments at which full costs less than choose_best: its first merges \
                 into level 1, blocks per MB over those of choose_best";
    figure.at_most(claim, firsts.map(|first| first / megabytes / windows), 1.0);
}

fn claims_of_windows(figure: &mut Figure, full: &Watched, best: &Watched, effort: Effort) {
    for level in [1, 2] {
        let ratio = best.merges(level) / full.merges(level);
        let claim = format!(
            "choose_best: merges into level {level} are at least 20 times as frequent as those of \
             full: ratio"
        );
        figure.at_least(claim, ratio, 1.0 / RATE);
        let explained = fit(&best.written(level), 1).map(|line| line.explained);
        let claim =
            format!("choose_best: the slope of level {level} remains constant over time: R^2");
        figure.at_least(claim, explained, 0.999);
    }
    let bench = Bench::small("choose_best", Keys::Uniform, DATASET_MB, small_scale(effort));
    let capacity = bench.sizes().memory_blocks as f64 * RATIO;
    let fills = best.0.iter().map(|(_, levels)| Watched::at(levels, 1).blocks as f64 / capacity);
    let fill = least(fills).map(|fill| fill * 100.0);
    // The window is rounded to whole blocks, and blocks that it leaves behind may be joined.
    let bound = (1.0 - RATE) * 100.0 - 0.5;
    let claim = "choose_best: level 1 is at least 95 % full at all times: least, %";
    figure.at_least(claim, fill, bound);
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

fn claims_of_mixing(figure: &mut Figure, [full, best, mixed]: &[Watched; 3]) {
    let excess = |level, base: &Watched| percent_off(mixed.cost(level), base.cost(level));
    for (base, name) in [(full, "full"), (best, "choose_best")] {
        let claim =
            format!("merges into level 1 cost test_mixed substantially less than {name}: by, %");
        figure.at_least(claim, -excess(1, base), 10.0);
    }
    let claim = "merges into level 2 cost test_mixed practically the same as full: within, %";
    figure.at_most(claim, excess(2, full).abs(), 5.0);
    let claim = "merges into level 2 cost test_mixed more than choose_best: by, %";
    figure.at_least(claim, excess(2, best), 0.0);
    let all = |watched: &Watched| watched.cost(1) + watched.cost(2);
    for (base, name, paper) in [(full, "full", -34.0), (best, "choose_best", -20.0)] {
        let percent = percent_off(all(mixed), all(base));
        figure.near(format!("both levels: test_mixed over {name}, %"), paper, percent, POINTS);
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
