//! `db repair`: copies the readable entries of a damaged store into a new store.

use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::files;
use crate::output::{Output, print_json};
use crate::specs;
use lsmith::{ErrorKind, Finding, FindingKind, RepairOptions, RepairReport};
use lsmith_lab::Progress;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn repair(from: &Path, to: &Path, json: bool) -> anyhow::Result<()> {
    let bars = Bars::new();
    let options = RepairOptions {
        env: files::env(),
        registry: specs::registry().clone(),
        ..RepairOptions::default()
    };
    bars.begin(&format!("saving readable entries into {}", to.display()), 0);
    let outcome = lsmith::repair(&options, from, to);
    let report = outcome.map_err(|error| match error.kind() {
        ErrorKind::InvalidArgument => bad_argument(error),
        _ => error.into(),
    })?;
    drop(bars);
    if json {
        return print_json(&fields(&report));
    }
    let mut output = Output::new();
    report.findings.iter().try_for_each(|finding| output.line(finding))?;
    for space in &report.keyspaces {
        let guess = if space.order_guessed {
            format!(", order guessed for {} keys", space.contested)
        } else {
            String::new()
        };
        output.line(format_args!("keyspace {}: {} entries{guess}", space.name, space.entries))?;
    }
    let to = to.display();
    if report.is_exact() {
        output.line(format_args!("{to} holds all entries of the store"))?
    } else {
        output.line(format_args!("{to} holds the entries that could be saved"))?
    }
    Ok(output.finish()?)
}

fn fields(report: &RepairReport) -> Value {
    let keyspaces = report.keyspaces.iter().map(|space| {
        json!({
            "name": space.name,
            "policy": space.policy,
            "entries": space.entries,
            "order_guessed": space.order_guessed,
            "contested": space.contested,
        })
    });
    json!({
        "exact": report.is_exact(),
        "keyspaces": keyspaces.collect::<Value>(),
        "findings": report.findings.iter().map(finding_fields).collect::<Value>(),
    })
}

fn finding_fields(finding: &Finding) -> Value {
    let mut fields = json!({
        "path": finding.path.to_string_lossy(),
        "offset": finding.offset,
        "keyspace": finding.keyspace,
        "message": finding.message,
    });
    let kind = match &finding.kind {
        FindingKind::LostKeys { keys, older, logged } => {
            fields["keys"] = json!(keys.to_string());
            fields["older"] = json!(older);
            fields["logged"] = json!(logged);
            "lost_keys"
        }
        FindingKind::LostBatches { bytes, writes } => {
            fields["bytes"] = json!(bytes);
            fields["writes"] = json!(writes);
            "lost_batches"
        }
        FindingKind::LeftOut { bytes } => {
            fields["bytes"] = json!(bytes);
            "left_out"
        }
        FindingKind::Guessed => "guessed",
        _ => "harmless",
    };
    fields["kind"] = json!(kind);
    fields
}
