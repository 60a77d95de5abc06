//! What Ahn et al., "Jungle", HotStorage 2019, left for later: thresholds of their own for levels
//! and for key ranges, compared with one threshold for all append
//! tables.

use super::jungle_fig6::{Aged, Aging, ROUNDS};
use crate::form::*;

/// The factor by which the full measurement is smaller than the paper's store.
const SHRINK: u64 = 16;

/// The thresholds that hold for all append tables.
const THRESHOLDS: [f64; 7] = [1.25, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0];

/// What all append tables together may hold, per live byte.
const SPACES: [f64; 4] = [1.3, 1.5, 2.0, 3.0];

/// A threshold for each level, level 0 first.
const LEVELS: [&str; 2] = ["10/10/2", "10/5/3"];

const ONE: &str = "one c";
const BY_LEVEL: &str = "c by level";
const BY_RANGE: &str = "c by key range";

/// A panel, and the share of updates that go to the first tenth of the keys.
const UPDATES: [(&str, &str, f64); 2] =
    [("hot", "nine in ten updates go to a tenth of the keys", 0.9), ("even", "even updates", 0.0)];

fn jobs(hot: f64, shrink: u64) -> Vec<Aging> {
    let new = |curve, spec| Aging { curve, threshold: None, spec, shrink, rounds: ROUNDS, hot };
    let one = THRESHOLDS.map(|c| new(ONE, format!("jungle(c={c})")));
    let levels = LEVELS.map(|c| new(BY_LEVEL, format!("jungle(c={c})")));
    let ranges = SPACES.map(|space| new(BY_RANGE, format!("jungle(space={space})")));
    one.into_iter().chain(levels).chain(ranges).collect()
}

/// Returns what one threshold writes if it holds `space`: between two measured ones, along a line.
fn write_of_one(frontier: &[(f64, f64)], space: f64) -> Option<f64> {
    let above = frontier.iter().position(|(held, _)| *held >= space)?;
    let (least, left) = frontier[above.checked_sub(1)?];
    let (most, right) = frontier[above];
    Some(left + (right - left) * (space - least) / (most - least))
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shrink = SHRINK * task.pick(task.effort.shrink, 1);
    let jobs: Vec<Aging> = UPDATES.iter().flat_map(|(.., hot)| jobs(*hot, shrink)).collect();
    let found = task.each("keyed simulation", &jobs, Aging::work, Aging::measure)?;
    let panels = UPDATES.map(|(name, title, _)| {
        Panel::new(
            name,
            title,
            Axis::linear("bytes held per live byte, mean", ""),
            Axis::linear("bytes written per byte of updates", ""),
        )
    });
    let mut figure = task.figure(panels);
    for (panel, _, hot) in UPDATES {
        let of_panel = jobs.iter().zip(&found).filter(|(job, _)| job.hot == hot);
        for (job, Aged { write, space_mean, .. }) in of_panel.clone() {
            figure.point(panel, job.curve, *space_mean, *write);
        }
        let mut frontier: Vec<(f64, f64)> = figure.curve(panel, ONE).collect();
        frontier.sort_by(|left, right| left.0.total_cmp(&right.0));
        for (job, Aged { write, space_mean, .. }) in of_panel {
            let one = write_of_one(&frontier, *space_mean);
            let Some(one) = one.filter(|_| job.curve != ONE) else { continue };
            // Where all tables are written alike, thresholds of their own have nothing to win.
            let bound = if job.curve == BY_RANGE && hot > 0.0 { 0.99 } else { 1.03 };
            let claim =
                format!("{}, {panel}: writes over those of one c in as much space", job.spec);
            figure.at_most(claim, write / one, bound);
        }
    }
    figure.note(format!(
        "A keyed simulation of the store of `jungle-fig6` at 1/{shrink} of its scale: {} records. \
         `space` is one limit for all append tables. Those are rewritten first whose dead bytes, \
         over live ones, times the age of the file are most.",
        jobs.first().map_or(0, Aging::keys),
    ));
    Ok(figure)
}
