//! Trees in a few lines, for people.

use crate::table::Importance::{Least, Rank};
use crate::table::{ranked, short, short_bytes};
use lsmith_tree::{LevelId, Run, Tree};
use serde_json::{Value, json};
use std::sync::Arc;

/// The greatest length of a key in a table, in characters.
const KEY_CHARS_MAX: usize = 24;

/// What the columns of [`runs`] mean.
pub(in crate::commands) const KEY_OF_RUNS: &str = "\
Newest run first. mem: runs in memory. L0, L1, ...: levels on storage, newest first.
run: its number. tables: the tables of which it has slices. bytes: keys, values and 8 per entry.
deletes: entries that delete a key. keys: from the first key up to, not including, the last bound.";

/// Returns a table with a row per run, newest first.
pub(in crate::commands) fn runs(tree: &Tree) -> String {
    let row = |(level, run): (LevelId, &Arc<Run>)| {
        let size = run.size();
        let hull = run.hull();
        let start = shortened(&hull.to_string());
        let end = run.slices().len();
        vec![
            level.to_string(),
            run.id().to_string(),
            end.to_string(),
            short_bytes(size.bytes),
            short_count(size.entries),
            short_count(size.tombstones),
            start,
        ]
    };
    let header = [
        ("level", Rank(0)),
        ("run", Rank(1)),
        ("tables", Rank(3)),
        ("bytes", Rank(2)),
        ("entries", Rank(4)),
        ("deletes", Rank(5)),
        ("keys", Least),
    ];
    ranked(&header, 2, tree.runs().map(row).collect())
}

/// Returns the runs of each level as JSON.
pub(in crate::commands) fn runs_fields(tree: &Tree) -> Value {
    let run = |(level, run): (LevelId, &Arc<Run>)| {
        let size = run.size();
        json!({
            "level": level.to_string(),
            "run": run.id().to_string(),
            "tables": run.slices().len(),
            "bytes": size.bytes,
            "entries": size.entries,
            "deletes": size.tombstones,
            "keys": run.hull().to_string(),
        })
    };
    tree.runs().map(run).collect()
}

/// Formats a count: in full up to four digits, else with three digits and a decimal prefix.
pub(in crate::commands) fn short_count(count: u64) -> String {
    if count < 10_000 { count.to_string() } else { short(count as f64) }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 2 * KEY_CHARS_MAX {
        return text.to_owned();
    }
    let cut = |text: &str| match text.chars().count() > KEY_CHARS_MAX {
        true => text.chars().take(KEY_CHARS_MAX - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    };
    match text.split_once("..") {
        Some((start, end)) => format!("{}..{}", cut(start), cut(end)),
        None => cut(text),
    }
}
