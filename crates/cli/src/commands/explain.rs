//! `explain`: why one policy writes less than another.

use crate::args::ExplainArgs;
use crate::bars::Bars;
use crate::output::{Output, print_json};
use crate::specs;
use crate::table::{cost, percent, short, table};
use lsmith_lab::explain::{Explained, Side, explain as explain_in_lab};
use lsmith_sim::KeyedWorkload;
use lsmith_tree::{Cause, Causes};

pub(crate) fn explain(args: &ExplainArgs, json: bool) -> anyhow::Result<()> {
    let workload = specs::workload(&args.workload)?;
    let memtable_bytes = args.memtable.of(&workload);
    let policy = |spec: &str| specs::policy_for(spec, &workload, memtable_bytes);
    let [a, b] = [policy(&args.a)?, policy(&args.b)?];
    let workload = KeyedWorkload::new(workload);
    let bars = Bars::new();
    let explained = explain_in_lab([&a, &b], &workload, memtable_bytes, &bars)?;
    drop(bars);
    if json {
        return print_json(&explained);
    }
    let mut output = Output::new();
    for part in shown(&explained) {
        output.line(part)?;
    }
    Ok(output.finish()?)
}

fn shown(explained: &Explained) -> Vec<String> {
    let mut parts: Vec<String> = explained.sentences.clone();
    parts.extend([String::new(), causes(explained)]);
    for side in [&explained.a, &explained.b] {
        parts.extend([String::new(), format!("{}:", side.policy), merges(side)]);
        parts.extend([String::new(), levels(side)]);
        parts.extend([String::new(), sizes(side), String::new(), rules(side)]);
    }
    parts
}

/// Returns the table of the bytes of both policies by cause. The rows sum to the last one.
fn causes(explained: &Explained) -> String {
    let a = &explained.a;
    let b = &explained.b;
    let written = |side: &Side| side.bytes_written as f64;
    let difference = written(b) - written(a);
    let share = |bytes: f64| percent((difference != 0.0).then(|| bytes / difference));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: String, of_a: f64, of_b: f64| {
        let change = of_b - of_a;
        rows.push(vec![name, signed(of_a), signed(of_b), signed(change), share(change)]);
    };
    for cause in Cause::ALL {
        row(words(cause).to_owned(), a.causes.bytes(cause) as f64, b.causes.bytes(cause) as f64);
    }
    row("written".to_owned(), written(a), written(b));
    table(&["bytes by cause", &a.name, &b.name, "second - first", "share %"], 1, rows)
}

/// Returns the words for a cause.
fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::Flushed => "flushed from memory",
        Cause::CarriedDown => "carried down",
        Cause::Overlap => "overlap, rewritten in place",
        Cause::Compacted => "compacted, rewritten alone",
        Cause::Dropped => "dropped, not written",
        Cause::Moved => "moved, not written",
        Cause::Reused => "reused, not written",
    }
}

/// Formats bytes, negative ones with a sign.
fn signed(bytes: f64) -> String {
    if bytes == 0.0 {
        return "0".to_owned();
    }
    let sign = if bytes < 0.0 { "-" } else { "" };
    format!("{sign}{}", short(bytes.abs()))
}

/// Returns the columns for the bytes of causes, and of their sum.
fn cause_cells(causes: &Causes) -> Vec<String> {
    let bytes = causes.each().map(|(_, bytes)| signed(bytes as f64));
    bytes.chain([signed(causes.written() as f64)]).collect()
}

fn merges(side: &Side) -> String {
    let header = [
        "from",
        "to",
        "merges",
        "moves",
        "flushed",
        "carried",
        "overlap",
        "compacted",
        "dropped",
        "moved",
        "reused",
        "written",
    ];
    let rows = side.merges.iter().map(|route| {
        let counts = [route.merges.to_string(), route.moves.to_string()];
        let names = [route.from.clone(), route.to.clone()];
        [&names[..], &counts[..], &cause_cells(&route.causes)].concat()
    });
    counts(&header, 2, rows.collect())
}

/// Returns a table without the columns that are 0 in all rows.
pub(in crate::commands) fn counts(
    header: &[&str],
    left: usize,
    mut rows: Vec<Vec<String>>,
) -> String {
    let is_zero = |at: usize| rows.iter().all(|row| row[at] == "0");
    let kept: Vec<usize> = (0..header.len()).filter(|at| *at < left || !is_zero(*at)).collect();
    let header: Vec<&str> = kept.iter().map(|at| header[*at]).collect();
    for row in &mut rows {
        *row = kept.iter().map(|at| std::mem::take(&mut row[*at])).collect();
    }
    table(&header, left, rows)
}

fn levels(side: &Side) -> String {
    let header = ["level", "runs per lookup", "bytes held", "of them obsolete", "%"];
    let rows = side.reads.iter().map(|reads| {
        let space = side.space.iter().find(|space| space.level == reads.level);
        let held = space.map_or(0.0, |space| space.bytes_mean);
        let obsolete = space.map_or(0.0, |space| space.obsolete_bytes_mean);
        let share = if held > 0.0 { obsolete / held * 100.0 } else { 0.0 };
        vec![
            reads.level.clone(),
            cost(reads.runs_mean),
            signed(held),
            signed(obsolete),
            format!("{share:.0}"),
        ]
    });
    table(&header, 1, rows.collect())
}

fn sizes(side: &Side) -> String {
    let header = ["merges that wrote up to", "merges", "bytes"];
    let rows = side.sizes.iter().map(|class| {
        vec![
            short(class.bytes_max as f64),
            class.merges.to_string(),
            short(class.bytes_written as f64),
        ]
    });
    table(&header, 0, rows.collect())
}

fn rules(side: &Side) -> String {
    let header = ["merged because", "merges", "bytes"];
    let rows = side.rules.iter().map(|rule| {
        vec![rule.reason.clone(), rule.merges.to_string(), short(rule.bytes_written as f64)]
    });
    table(&header, 1, rows.collect())
}
