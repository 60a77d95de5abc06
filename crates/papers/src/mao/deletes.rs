//! Write cost over flushes where keys are deleted.

use super::course::{Course, course, panel};
use super::fit::most;
use super::updates::{BOUNDED, LEVELED, Run, Scale, TIERED, cost_ratio, turned_by};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;
use lsmith_lab::plot::Axis;

/// The shares of updates that delete. 70 % of the writes are updates, mostly of new keys.
const SHARES: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

/// The share of the curves over flushes.
const SHOWN: f64 = 0.5;

/// The static policies, and with flushes counted by size.
const BY_SIZE: [(&str, &str); 2] = [
    ("minlatency(k=6)", "minlatency(k=6, count=size)"),
    ("binomial(k=6)", "binomial(k=6, count=size)"),
];

/// Costs that differ by at most this share count as equal when policies are ranked.
const TIE: f64 = 0.03;

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let scale = Scale::of(effort);
    let stacks = || BOUNDED.into_iter().chain(TIERED);
    let by_size = || BY_SIZE.into_iter().map(|(_, by_size)| by_size);
    let mut runs = Vec::new();
    for deletes in SHARES {
        let run = Run::Update { share: 0.7, deletes, dist: "latest" };
        let workload = scale.workload(run, "hashed")?;
        let leveled = LEVELED.into_iter().filter(|_| deletes == SHOWN);
        let specs = stacks().chain(by_size()).chain(leveled);
        runs.push((deletes, scale.simulate(&workload, specs, progress)?));
    }
    let loads = scale.workload(Run::Load, "hashed")?;
    let loads = scale.simulate(&loads, stacks().chain(LEVELED), progress)?;

    let by_share = Panel {
        x: Axis::linear("share of updates that delete", ""),
        ..panel("by-share", "k = 6 and tiered, at the end")
    };
    let panels = vec![
        panel("a", "k = 6"),
        panel("b-tiered", "tiered"),
        panel("b-leveled", "leveled"),
        by_share,
    ];
    let mut figure = Figure::empty(info.name, info.title, panels);
    let Some((_, shown)) = runs.iter().find(|(deletes, _)| *deletes == SHOWN) else {
        anyhow::bail!("no run has the share of deletes that is shown");
    };
    for (letter, specs) in [("a", BOUNDED), ("b-tiered", TIERED), ("b-leveled", LEVELED)] {
        for spec in specs {
            let course = course(shown, spec);
            course.draw(&mut figure, letter, &course.write_costs());
        }
    }
    for spec in stacks().chain(by_size()) {
        for (deletes, courses) in &runs {
            figure.point("by-share", spec, *deletes, course(courses, spec).write_cost());
        }
    }
    claim_costs(&mut figure, &runs, &loads);
    claim_ranks(&mut figure, shown, &loads);
    figure.note(scale.note());
    note(&mut figure, &runs, &loads);
    Ok(figure)
}

fn claim_costs(figure: &mut Figure, runs: &[(f64, Vec<Course>)], loads: &[Course]) {
    let flushes = |courses: &[Course]| course(courses, BOUNDED[0]).last().parts.flushes as f64;
    for pair in runs.windows(2) {
        let [(fewer, before), (more, after)] = pair else { continue };
        let claim = format!(
            "flushes with {} % of updates deletes over those with {} % (the flush rate falls)",
            more * 100.0,
            fewer * 100.0
        );
        figure.claim(Claim::at_most(claim, flushes(after) / flushes(before), 0.999));
    }
    for (group, specs) in [
        ("minlatency and binomial", &BOUNDED[..2]),
        ("bigtable and exploring", &BOUNDED[2..]),
        ("tiered", &TIERED[..]),
    ] {
        let ratios = runs.iter().filter(|(deletes, _)| *deletes > 0.0).flat_map(|(_, courses)| {
            specs.iter().filter_map(|spec| cost_ratio(courses, loads, spec))
        });
        let wording = match group {
            "minlatency and binomial" => "guaranteed not to increase",
            _ => "slightly reduced",
        };
        figure.claim(most(ratios).map(|ratio| {
            let claim = format!(
                "{group}, any share of deletes: write cost over that without updates at the same \
                 flushes, the most ({wording})"
            );
            Claim::at_most(claim, ratio, 1.0)
        }));
    }
    let Some((_, all)) = runs.last() else { return };
    let cost = |spec: &str| course(all, spec).write_cost();
    let [minlatency, binomial, bigtable, exploring] = BOUNDED.map(cost);
    let claim = "all updates delete: the cheaper of bigtable and exploring over the cheaper of \
                 minlatency and binomial (dynamic policies may be below)";
    figure.claim(Claim::at_most(claim, bigtable.min(exploring) / minlatency.min(binomial), 1.0));
    let ratios = runs.iter().flat_map(|(_, courses)| {
        let cost = |spec: &str| course(courses, spec).write_cost();
        BY_SIZE.map(|(plain, by_size)| cost(by_size) / cost(plain))
    });
    figure.claim(most(ratios).map(|ratio| {
        let claim = "count=size over plain counting, minlatency and binomial, any share, the most \
                     (a way to keep them good candidates)";
        Claim::at_most(claim, ratio, 1.05)
    }));
}

fn claim_ranks(figure: &mut Figure, shown: &[Course], loads: &[Course]) {
    let stacks: Vec<&str> = BOUNDED.into_iter().chain(TIERED).collect();
    let write: fn(&Course) -> f64 = Course::write_cost;
    let read: fn(&Course) -> f64 = |course| course.last().read_cost_mean;
    for (what, cost, group, specs) in [
        ("write", write, "bounded and tiered", &stacks[..]),
        ("read", read, "bounded and tiered", &stacks[..]),
        ("write", write, "leveled", &LEVELED[..]),
    ] {
        let turned = turned_by(shown, loads, specs, TIE, cost);
        let claim = format!(
            "{group}, half of updates delete: pairs of policies of which the other has the higher \
             {what} cost than without updates, differences up to 3 % aside (ranks almost remain)"
        );
        figure.claim(Claim::at_most(claim, turned as f64, 1.0));
    }
}

fn note(figure: &mut Figure, runs: &[(f64, Vec<Course>)], loads: &[Course]) {
    figure.note(
        "The paper has runs with updates, and says what deletes should do; it shows no run with \
         deletes. Here 70 % of the writes go to existing keys, as in its figure 7, and a share of \
         these deletes the key. A delete takes the bytes of its key and 8, so that memtables hold \
         more of them. Tombstones go when a merge takes the oldest run.",
    );
    let row = |(deletes, courses): &(f64, Vec<Course>)| {
        let last = course(courses, BOUNDED[0]).last();
        format!(
            "{} %: {} flushes, minlatency(k=6) {:.2}, space {:.2}",
            deletes * 100.0,
            last.parts.flushes,
            last.write_cost_system,
            last.space_cost_mean
        )
    };
    let rows: Vec<String> = runs.iter().map(row).collect();
    let load = course(loads, BOUNDED[0]).write_cost();
    figure.note(format!("By share of deletes: {}. Without updates {load:.2}.", rows.join("; ")));
}
