//! The page of a diagnosis.

use super::text::{of_family, opened};
use super::watch::{Histories, name_of};
use crate::page;
use anyhow::Context;
use lsmith_doctor::{Diagnosis, FamilyCosts, Replay, Row};
use lsmith_lab::Optimum;
use lsmith_lab::page::{CostPoint, CostSource, Group, PolicyCosts, Table, least};
use serde_json::{Value, json};
use std::path::Path;

/// The columns of the table that are shown at first.
const SHOWN: [&str; 13] = [
    "policy",
    "store",
    "write",
    "write_from",
    "write_to",
    "least",
    "above_least",
    "runs_mean",
    "runs_max",
    "space_peak",
    "space_now",
    "saves",
    "options",
];

/// Writes the page of `diagnosis`, with the trees of each column family that was replayed.
pub(super) fn write(
    path: &Path,
    diagnosis: &Diagnosis,
    mut histories: Vec<(String, Histories)>,
    html: &Path,
) -> anyhow::Result<()> {
    let groups = diagnosis.families.iter().map(|family| {
        let found = histories.iter_mut().find(|(name, _)| *name == family.name);
        let trees = found.map_or_else(Vec::new, |(_, trees)| std::mem::take(trees));
        group(family, diagnosis, trees)
    });
    let groups = groups.collect::<anyhow::Result<Vec<Group>>>()?;
    page::write(&format!("lsmith doctor {}", path.display()), groups, Some(html), None)
}

fn group(
    family: &FamilyCosts,
    diagnosis: &Diagnosis,
    mut trees: Histories,
) -> anyhow::Result<Group> {
    let mut notes = vec![opened(diagnosis)];
    notes.extend(diagnosis.remarks.clone());
    // Tables are for a terminal; the page has its own.
    let lines = of_family(family, diagnosis.store).into_iter();
    notes.extend(lines.filter(|line| !line.is_empty() && !line.contains('\n')));
    let Some(replay) = &family.replay else {
        return Ok(Group { name: family.name.clone(), notes, ..Group::default() });
    };
    // The first one stands above every view.
    notes.insert(
        0,
        format!(
            "The replay of the settings of now is off by {:+.1} %. Costs that differ by less than \
             {:.0} % count as equal.",
            100.0 * replay.error,
            100.0 * replay.band
        ),
    );
    notes.push(
        "The trees are from the replay. It counts bytes in its own entries, which may stand for \
         several of the store."
            .to_owned(),
    );
    let place = |name: &str| {
        replay.rows.iter().position(|row| name_of(row.store, &row.policy, row.is_present) == name)
    };
    // Settings that cost as much as others have no row.
    trees.retain(|tree| place(&tree.name).is_some());
    trees.sort_by_key(|tree| place(&tree.name));
    let rows: Vec<Value> =
        replay.rows.iter().map(|row| object(replay, row)).collect::<Result<_, _>>()?;
    Ok(Group {
        name: family.name.clone(),
        notes,
        sources: vec![CostSource { name: "replay".to_owned() }],
        write_figure: "write".to_owned(),
        alike: replay.band,
        costs: replay.rows.iter().map(costs).collect(),
        least: least(family.flushes),
        table: Table::of_objects(&rows, &SHOWN),
        trees,
    })
}

fn costs(row: &Row) -> PolicyCosts {
    PolicyCosts {
        name: name_of(row.store, &row.policy, row.is_present),
        is_best: false,
        by_source: vec![Some(CostPoint { write: row.write, read: row.runs_mean, space: None })],
        optimum: Some(Optimum {
            runs_max: row.runs_max,
            write_cost_system: row.least,
            is_exact: row.is_exact,
            above: row.write / row.least - 1.0,
            at_mean_runs: None,
            of_parts: None,
            knows_keys: false,
        }),
        put: None,
        course: None,
    }
}

/// Returns the row with the band of the replay's error, and with what it takes to get there.
fn object(replay: &Replay, row: &Row) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(row).context("a row has no JSON form")?;
    let way = replay.moves.iter().find(|way| way.store == row.store && way.policy == row.policy);
    value["write_from"] = json!(row.write / (1.0 + replay.band));
    value["write_to"] = json!(row.write / (1.0 - replay.band));
    value["above_least"] = json!(row.write / row.least - 1.0);
    value["saves"] = json!(1.0 - row.write / replay.replayed);
    value["options"] = json!(way.map(|way| way.options.join(", ")));
    Ok(value)
}
