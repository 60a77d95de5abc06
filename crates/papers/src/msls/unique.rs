//! Different keys over the number of requests: the function on which all formulas rest.

use super::design::SKEWS;
use super::panels::{PANELS, in_a_hurry, percent_off};
use super::requests::Requests;
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_model::Popularity;

/// Keys of the paper, and its most requests, ten per key. For the formula.
const KEYS: u64 = 100_000_000;
/// Keys whose requests are counted.
const KEYS_COUNTED: u64 = 10_000_000;
const KEYS_COUNTED_QUICK: u64 = 1_000_000;
/// Requests per key at which both are compared.
const LOADS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 7.0, 10.0];
/// How far the formula may be off what was counted, in percent.
const OFF_MAX: f64 = 0.5;

const MODEL: &str = "model";
const COUNTED: &str = "counted";

/// Requests for `keys` keys, whose different keys are counted.
struct Counting {
    keys: u64,
    skew: f64,
}

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let counted = match effort.is_quick {
        true => in_a_hurry(KEYS_COUNTED_QUICK, effort),
        false => KEYS_COUNTED,
    };
    let panels = PANELS.iter().zip([KEYS, counted]).map(|(name, keys)| Panel {
        name: (*name).to_owned(),
        title: format!("{keys} keys"),
        x: Axis::log("requests", ""),
        y: Axis::log("different keys", ""),
    });
    let mut figure = Figure::empty(info.name, info.title, panels.collect());
    for (name, skew) in SKEWS {
        for (panel, keys) in PANELS.iter().zip([KEYS, counted]) {
            let popularity = Popularity::zipf(keys, skew)?;
            for load in LOADS {
                let requests = (load * keys as f64).round();
                figure.point(panel, &curve(MODEL, name), requests, popularity.unique(requests));
            }
        }
    }
    let jobs: Vec<Counting> =
        SKEWS.iter().map(|(_, skew)| Counting { keys: counted, skew: *skew }).collect();
    let found = measure_all(COUNTED, &jobs, progress)?;
    for ((name, _), found) in SKEWS.iter().zip(&found) {
        for (requests, keys) in found {
            figure.point(PANELS[1], &curve(COUNTED, name), *requests, *keys);
        }
    }
    claims(&mut figure);
    figure.note(
        "Counted are independent random requests. `lsmith model --unique` has the formula for any \
         number of requests, `--merge` that of merged runs, `--interval` that of a swept level.",
    );
    Ok(figure)
}

fn curve(source: &str, popularity: &str) -> String {
    format!("{popularity}: {source}")
}

fn claims(figure: &mut Figure) {
    for (name, _) in SKEWS {
        let [counted, model] = [COUNTED, MODEL].map(|source| curve(source, name));
        let off = figure.curve(PANELS[1], &counted).filter_map(|(requests, keys)| {
            let expected = figure.y(PANELS[1], &model, requests)?;
            Some(percent_off(expected, keys).abs())
        });
        let farthest = off.reduce(f64::max);
        figure.claim(farthest.map(|percent| {
            let claim = format!("{name}: the formula is off what was counted, any requests, %");
            Claim::at_most(claim, percent, OFF_MAX)
        }));
    }
    for panel in PANELS {
        let [uniform, zipf] =
            SKEWS.map(|(name, _)| figure.curve(panel, &curve(MODEL, name)).collect::<Vec<_>>());
        let most = uniform.iter().map(|(requests, keys)| keys / requests).reduce(f64::max);
        figure.claim(most.map(|ratio| {
            let claim =
                format!("{panel}: different keys over requests, most (at most as many keys)");
            Claim::at_most(claim, ratio, 1.0)
        }));
        let over = uniform.iter().zip(&zipf).map(|(even, skewed)| skewed.1 / even.1);
        figure.claim(over.reduce(f64::max).map(|ratio| {
            let claim = format!("{panel}: different keys of zipf over uniform, most (fewer)");
            Claim::at_most(claim, ratio, 1.0)
        }));
    }
}

impl Job for Counting {
    /// For each load the requests and the different keys among them.
    type Output = Vec<(f64, f64)>;

    fn work(&self) -> u64 {
        self.keys * 10
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Vec<(f64, f64)>> {
        let mut requests = Requests::new(self.keys as u32, self.skew);
        let mut is_asked = vec![false; self.keys as usize];
        let mut made = 0;
        let mut asked = 0;
        let mut found = Vec::new();
        for load in LOADS {
            let until = (load * self.keys as f64).round() as u64;
            for _ in made..until {
                let is_known = &mut is_asked[requests.next_place() as usize];
                asked += u64::from(!*is_known);
                *is_known = true;
            }
            ticker.tick(until - made);
            made = until;
            found.push((until as f64, asked as f64));
        }
        Ok(found)
    }
}
