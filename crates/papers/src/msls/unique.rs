//! Different keys over the number of requests: the function on which all formulas rest.

use super::panels::{POPULARITIES, in_a_hurry};
use super::requests::Requests;
use crate::form::*;
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

const PANELS: [&str; 2] = ["a", "b"];

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let counted = task.pick(in_a_hurry(KEYS_COUNTED_QUICK, task.effort), KEYS_COUNTED);
    let panels = [(PANELS[0], KEYS), (PANELS[1], counted)];
    let mut figure = task.figure(panels.map(|(name, keys)| {
        let y = Axis::log("different keys", "");
        Panel::new(name, format!("{keys} keys"), Axis::log("requests", ""), y)
    }));
    for (_, name, skew) in POPULARITIES {
        for (panel, keys) in panels {
            let popularity = Popularity::zipf(keys, skew)?;
            let requests = LOADS.map(|load| (load * keys as f64).round());
            let unique = requests.map(|requests| (requests, popularity.unique(requests)));
            figure.draw(panel, &curve(MODEL, name), unique);
        }
    }
    let skews = POPULARITIES.map(|(_, _, skew)| skew);
    let found = task.each(
        COUNTED,
        &skews,
        |_| counted * 10,
        |skew, ticker| Ok(count(counted, *skew, ticker)),
    )?;
    for ((_, name, _), found) in POPULARITIES.iter().zip(found) {
        figure.draw(PANELS[1], &curve(COUNTED, name), found);
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
    for (_, name, _) in POPULARITIES {
        let [counted, model] = [COUNTED, MODEL].map(|source| curve(source, name));
        let off = figure.curve(PANELS[1], &counted).filter_map(|(requests, keys)| {
            Some(percent_off(figure.y(PANELS[1], &model, requests)?, keys))
        });
        let off = farthest(off);
        let claim = format!("{name}: the formula is off what was counted, any requests, %");
        figure.at_most(claim, off, OFF_MAX);
    }
    for panel in PANELS {
        let [uniform, zipf] = POPULARITIES
            .map(|(_, name, _)| figure.curve(panel, &curve(MODEL, name)).collect::<Vec<_>>());
        let ratio = most(uniform.iter().map(|(requests, keys)| keys / requests));
        let claim = format!("{panel}: different keys over requests, most (at most as many keys)");
        figure.at_most(claim, ratio, 1.0);
        let over = most(uniform.iter().zip(&zipf).map(|(even, skewed)| skewed.1 / even.1));
        let claim = format!("{panel}: different keys of zipf over uniform, most (fewer)");
        figure.at_most(claim, over, 1.0);
    }
}

/// Makes requests for `keys` keys. Returns for each load the requests and the different keys among
/// them.
fn count(keys: u64, skew: f64, ticker: &Ticker<'_>) -> Vec<(f64, f64)> {
    let mut requests = Requests::new(keys as u32, skew);
    let mut is_asked = vec![false; keys as usize];
    let mut made = 0;
    let mut asked: u64 = 0;
    let mut found = Vec::new();
    for load in LOADS {
        let until = (load * keys as f64).round() as u64;
        for _ in made..until {
            let is_known = &mut is_asked[requests.next_place() as usize];
            asked += u64::from(!*is_known);
            *is_known = true;
        }
        ticker.tick(until - made);
        made = until;
        found.push((until as f64, asked as f64));
    }
    found
}
