//! `model`: the costs of a policy by formula.

use crate::args::{ModelArgs, ModelOrder};
use crate::failure::bad_argument;
use crate::output::{print, print_json};
use crate::table::{cost, cost_if_known, prose, short, table};
use lsmith_lab::{KeyCounts, ModelSettings, Modelled, formulas, key_counts, model as model_in_lab};
use serde_json::json;

pub(crate) fn model(args: &ModelArgs, is_json: bool) -> anyhow::Result<()> {
    let asks_for_keys = [&args.unique, &args.merge, &args.interval];
    if asks_for_keys.iter().any(|numbers| !numbers.is_empty()) {
        let counts = key_counts(args.keys, args.zipf, asks_for_keys.map(Vec::as_slice))
            .map_err(bad_argument)?;
        return if is_json { print_json(&counts) } else { Ok(print(shown_counts(&counts))?) };
    }
    let Some(policy) = &args.policy else { return list(is_json) };
    let settings = ModelSettings {
        keys: args.keys,
        zipf: args.zipf,
        item_bytes: args.item,
        memtable_bytes: args.memtable.bytes(),
        requests: args.requests.unwrap_or(args.keys),
        filter_bits: args.filter_bits,
        scan_items: args.scan_items,
        is_sequential: args.order == ModelOrder::Sequential,
    };
    let modelled = model_in_lab(policy, &settings).map_err(bad_argument)?;
    if is_json { print_json(&modelled) } else { Ok(print(shown(&modelled))?) }
}

fn list(is_json: bool) -> anyhow::Result<()> {
    if is_json {
        let all: Vec<_> = formulas()
            .iter()
            .map(|info| {
                let params: Vec<_> = info
                    .params
                    .iter()
                    .map(|param| {
                        json!({
                            "name": param.name,
                            "default": param.default,
                            "meaning": param.meaning,
                        })
                    })
                    .collect();
                json!({
                    "name": info.name,
                    "summary": info.summary,
                    "source": info.source,
                    "params": params,
                    "bound": info.bound.map(|bound| bound.name()),
                })
            })
            .collect();
        return print_json(&json!({ "formulas": all }));
    }
    let row = |info: &lsmith_lab::FormulaInfo| {
        let params = info.params.iter().map(|param| format!("{}={}", param.name, param.default));
        let spec = format!("{}({})", info.name, params.collect::<Vec<_>>().join(", "));
        vec![spec.replace("()", ""), info.summary.to_owned(), info.source.to_owned()]
    };
    let rows = formulas().iter().map(row).collect();
    Ok(print(prose(&["formula", "what it computes", "source"], rows))?)
}

fn shown_counts(counts: &KeyCounts) -> String {
    let mut rows = Vec::new();
    let mut row = |what: String, value: f64| {
        let exact = if value.is_finite() { format!("{value:.0}") } else { "never".to_owned() };
        rows.push(vec![what, exact]);
    };
    for found in &counts.unique {
        row(format!("different keys among {} requests", found.requests), found.keys);
    }
    if let Some(merged) = &counts.merge {
        for input in &merged.inputs {
            row(format!("requests of a run of {} keys", input.keys), input.requests);
        }
        row("keys of the merged run".to_owned(), merged.keys);
    }
    for found in &counts.interval {
        row(format!("requests between sweeps of a level of {} keys", found.keys), found.requests);
    }
    table(&["expected", "number"], 1, rows)
}

fn shown(modelled: &Modelled) -> String {
    let mut rows = vec![vec!["formula".to_owned(), modelled.policy.clone()]];
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let at = match modelled.bound {
        Some("upper") => "at most ",
        Some(_) => "at least ",
        None => "",
    };
    row("write_cost_user", format!("{at}{}", cost(modelled.write_cost_user)));
    row("write_cost_system", format!("{at}{}", cost(modelled.write_cost_system)));
    row("read_cost_mean", cost(modelled.read_cost_mean));
    row("runs read by a lookup, key present", cost(modelled.point_read.hit));
    row("runs read by a lookup, key absent", cost(modelled.point_read.miss));
    row("scan_cost_mean, runs", cost(modelled.scan_cost_mean.runs));
    let blocks = format!("scan_cost_mean, blocks, {} entries", modelled.scan_items);
    row(&blocks, cost_if_known(modelled.scan_cost_mean.blocks));
    row("space_cost_mean", cost(modelled.space_cost_mean));
    if !modelled.ignores.is_empty() {
        row("not known to the formula", modelled.ignores.join(", "));
    }
    row("seconds", short(modelled.seconds));
    let figures = table(&["figure", "value"], 2, rows);
    let stage = |stage: &lsmith_lab::ModelStage| {
        vec![stage.name.clone(), cost(stage.cost), cost(stage.reads)]
    };
    let stages = table(
        &["written by stage", "per byte of requests", "read for it"],
        1,
        modelled.stages.iter().map(stage).collect(),
    );
    let level = |(index, (size, runs)): (usize, (&f64, &f64))| {
        vec![index.to_string(), short(*size), cost(*runs)]
    };
    let sizes = modelled.level_sizes.iter().zip(&modelled.level_runs);
    let levels =
        table(&["level, newest first", "bytes", "runs"], 1, sizes.enumerate().map(level).collect());
    format!("{figures}\n\n{stages}\n\n{levels}")
}
