//! Figure 9: seven policies over the size of the records.

use super::scale::{POINTS, cost_axis, scale};
use super::steady::{Bench, Keys};
use super::sweep::{KEEPING, PAIRS, SEVEN, Spot, Sweep, least, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;
use lsmith_lab::plot::Axis;

const DATASET_MB: u64 = 300;

/// Measures the figure of the paper.
pub(crate) fn measure_uniform(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (mut figure, sweep) = measure(info, Keys::Uniform, effort, progress)?;
    for (base, paper) in [("full", -33.0), ("rr", -23.0), ("choose_best", -23.0)] {
        figure.claim(sweep.excess("", "mixed", base, 25.0).map(|percent| {
            Claim::near(format!("25 bytes: mixed over {base}, %"), paper, percent, POINTS)
        }));
    }
    claims(&mut figure, &sweep);
    let why = "Policies that keep level 1 nearly full let more of them meet there.";
    explain_large(&mut figure, &sweep, why);
    Ok(figure)
}

/// Measures the same under `normal`, where results are similar, as the paper says.
pub(crate) fn measure_normal(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (mut figure, sweep) = measure(info, Keys::NORMAL, effort, progress)?;
    for base in ["full", "rr", "choose_best"] {
        figure.claim(sweep.excess("", "mixed", base, 25.0).map(|percent| {
            let claim = format!("25 bytes: mixed holds a significant lead over {base}: by, %");
            Claim::at_least(claim, -percent, 5.0)
        }));
    }
    claims(&mut figure, &sweep);
    let why = "rr leaves all records equally long in level 1. The best windows take the densest \
               keys, which are the newest, so that fewer of them meet their deletes there.";
    explain_large(&mut figure, &sweep, why);
    Ok(figure)
}

fn measure(
    info: &FigureInfo,
    keys: Keys,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<(Figure, Sweep)> {
    let payloads: &[u64] = if effort.is_quick {
        &[25, 100, 500, 4000]
    } else {
        &[25, 50, 100, 250, 500, 1000, 2000, 4000]
    };
    // Large records are few. A smaller scale would leave too few and would not save time.
    let shrink = |payload: u64| (scale(effort, DATASET_MB) * 100 / payload.max(100)).max(1);
    let mut spots = Vec::new();
    for curve in SEVEN {
        for &payload_bytes in payloads {
            let bench = Bench::standard(curve, keys, DATASET_MB, shrink(payload_bytes));
            let curve = curve.to_owned();
            let x = payload_bytes as f64;
            let bench = Bench { payload_bytes, ..bench };
            spots.push(Spot { panel: "", curve, x, bench });
        }
    }
    let sweep = Sweep::measure(info.name, spots, progress)?;
    let panel = Panel::only(Axis::log("payload", "bytes"), cost_axis());
    let mut figure = Figure::empty(info.name, info.title, vec![panel]);
    sweep.draw(&mut figure, |steady| steady.write_cost_blocks);
    if effort.is_quick {
        let words = payloads.iter().map(|&bytes| format!("{bytes} bytes 1/{}", shrink(bytes)));
        let scales = words.collect::<Vec<String>>().join(", ");
        figure.note(format!("Memory and data are a part of the paper's: {scales}."));
    }
    Ok((figure, sweep))
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    let large = KEEPING.iter().filter_map(|policy| sweep.cost("", policy, 4000.0));
    let spread = most(large.clone()).zip(least(large)).map(|(most, least)| most / least - 1.0);
    figure.claim(spread.map(|spread| {
        let claim = "4000 bytes: the four policies that keep blocks cost the same: within, %";
        Claim::at_most(claim, spread * 100.0, 2.5)
    }));
    for (keeps, plain) in PAIRS {
        let xs = sweep.xs("");
        let saved: Vec<f64> =
            xs.iter().filter_map(|x| sweep.excess("", plain, keeps, *x)).collect();
        figure.claim(least(saved.windows(2).map(|pair| pair[1] - pair[0])).map(|points| {
            let claim = format!(
                "{plain} falls behind {keeps} further with each larger payload: at least by, \
                 percentage points"
            );
            Claim::at_least(claim, points, -0.5)
        }));
    }
    let flat = PAIRS.into_iter().filter_map(|(_, plain)| {
        let costs: Vec<f64> =
            sweep.xs("").into_iter().filter_map(|x| sweep.cost("", plain, x)).collect();
        Some(most(costs.clone())? / least(costs)? - 1.0)
    });
    figure.claim(most(flat).map(|spread| {
        let claim = "policies that do not keep blocks are flat over all payloads: within, %";
        Claim::at_most(claim, spread * 100.0, 10.0)
    }));
}

/// Explains why policies differ although every block is kept.
fn explain_large(figure: &mut Figure, sweep: &Sweep, why_some_meet: &str) {
    let words = KEEPING.iter().filter_map(|policy| {
        let steady = sweep.at("", policy, 4000.0)?;
        let written = steady.write_cost_blocks;
        let merged = steady.records_merged;
        let met = (1.0 - written / merged) * 100.0;
        Some(format!("{policy} {merged:.1}, {met:.1} %, {written:.1}"))
    });
    let policies: Vec<String> = words.collect();
    let why = format!(
        "at 4000 bytes a block is one record, and every block below memory is kept: a record is \
         written once, when it leaves memory, unless a delete meets its insert in level 1 and both \
         vanish unwritten. Records that leave memory per MB, the part of them that vanishes so, \
         blocks written per MB: {}. {why_some_meet} The difference is small beside what these \
         policies cost at 25 bytes.",
        policies.join("; ")
    );
    figure.explain("4000 bytes", why);
}
