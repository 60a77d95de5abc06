//! `db changes`: prints the change feed of a store, as far as its logs go.

use super::wrong_argument;
use crate::output::{Output, json_text, print_json, readable};
use lsmith::{Change, SeqNo};
use serde_json::{Value, json};
use std::path::Path;

/// A printed write: the parts of its line.
struct Line {
    seq: u64,
    parts: Vec<String>,
    fields: Value,
}

pub(super) fn changes(
    dir: &Path,
    from: Option<u64>,
    limit: Option<u64>,
    json: bool,
) -> anyhow::Result<()> {
    // An opening removes logs beyond its bound, and this one only looks.
    let builder = super::builder(dir).create_if_missing(false);
    let store = builder.changes_bytes(u64::MAX).open()?;
    let from = match from {
        Some(from) => SeqNo(from),
        None => store.oldest_change()?,
    };
    let mut feed = store.changes(from).map_err(wrong_argument)?;
    let mut left = limit.unwrap_or(u64::MAX);
    let mut output = Output::new();
    let mut fields = Vec::new();
    while left > 0
        && let Some(batch) = feed.next_batch()?
    {
        let writes = batch.changes.iter().zip(batch.first.0..);
        let mut lines: Vec<Line> = writes.map(|(change, seq)| line(seq, change)).collect();
        if batch.is_load {
            let fields = json!({ "seq": batch.last.0, "load": true });
            lines.push(Line { seq: batch.last.0, parts: vec!["load".into()], fields });
        }
        for line in lines.into_iter().filter(|line| line.seq >= from.0) {
            if left == 0 {
                break;
            }
            left -= 1;
            if json {
                fields.push(line.fields);
            } else {
                output.line(format_args!("{}\t{}", line.seq, line.parts.join("\t")))?;
            }
        }
    }
    if json {
        return print_json(&json!({ "changes": fields }));
    }
    Ok(output.finish()?)
}

fn line(seq: u64, change: &Change) -> Line {
    match change {
        Change::Put { keyspace, key, value } => Line {
            seq,
            parts: vec![keyspace.to_string(), "put".into(), readable(key), readable(value)],
            fields: json!({
                "seq": seq,
                "keyspace": **keyspace,
                "put": json_text(key),
                "value": json_text(value),
            }),
        },
        Change::Delete { keyspace, key } => Line {
            seq,
            parts: vec![keyspace.to_string(), "delete".into(), readable(key)],
            fields: json!({ "seq": seq, "keyspace": **keyspace, "delete": json_text(key) }),
        },
        Change::DeleteRange { keyspace, start, end } => Line {
            seq,
            parts: vec![
                keyspace.to_string(),
                "delete_range".into(),
                readable(start),
                readable(end.as_deref().unwrap_or_default()),
            ],
            fields: json!({
                "seq": seq,
                "keyspace": **keyspace,
                "delete_range": json_text(start),
                "end": end.as_deref().map(json_text),
            }),
        },
        Change::PutUntil { keyspace, key, value, time } => Line {
            seq,
            parts: vec![
                keyspace.to_string(),
                "put_until".into(),
                readable(key),
                readable(value),
                time.to_string(),
            ],
            fields: json!({
                "seq": seq,
                "keyspace": **keyspace,
                "put_until": json_text(key),
                "value": json_text(value),
                "time": time,
            }),
        },
        Change::Combine { keyspace, key, operand } => Line {
            seq,
            parts: vec![keyspace.to_string(), "combine".into(), readable(key), readable(operand)],
            fields: json!({
                "seq": seq,
                "keyspace": **keyspace,
                "combine": json_text(key),
                "operand": json_text(operand),
            }),
        },
        other => Line {
            seq,
            parts: vec![format!("{other:?}")],
            fields: json!({ "seq": seq, "other": format!("{other:?}") }),
        },
    }
}
