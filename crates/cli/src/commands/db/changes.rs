//! `db changes`: prints the change feed of a store, as far as its logs go.

use super::access::{Print, builder, wrong_argument};
use crate::output::{Output, print_json};
use crate::text::Coding;
use lsmith::{Change, Clock, SeqNo};
use serde_json::{Map, Value, json};
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
    print: Print,
) -> anyhow::Result<()> {
    // An opening removes logs beyond its bound, and this one only looks. Nothing expires meanwhile.
    let builder = builder(dir).create_if_missing(false).clock(Clock::fixed(0));
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
        let mut lines: Vec<Line> =
            writes.map(|(change, seq)| line(seq, change, print.coding)).collect();
        if batch.is_load {
            let fields = json!({ "seq": batch.last.0, "load": true });
            lines.push(Line { seq: batch.last.0, parts: vec!["load".into()], fields });
        }
        for line in lines.into_iter().filter(|line| line.seq >= from.0) {
            if left == 0 {
                break;
            }
            left -= 1;
            if print.json {
                fields.push(line.fields);
            } else {
                output.line(format_args!("{}\t{}", line.seq, line.parts.join("\t")))?;
            }
        }
    }
    if print.json {
        return print_json(&json!({ "changes": fields }));
    }
    Ok(output.finish()?)
}

fn line(seq: u64, change: &Change, coding: Coding) -> Line {
    let (keyspace, verb, first, second): (_, _, &[u8], Option<(_, &[u8])>) = match change {
        Change::Put { keyspace, key, value } => (keyspace, "put", key, Some(("value", value))),
        Change::Delete { keyspace, key } => (keyspace, "delete", key, None),
        Change::DeleteRange { keyspace, start, end } => {
            (keyspace, "delete_range", start, end.as_ref().map(|end| ("end", &**end)))
        }
        Change::PutUntil { keyspace, key, value, .. } => {
            (keyspace, "put_until", key, Some(("value", value)))
        }
        Change::Combine { keyspace, key, operand } => {
            (keyspace, "combine", key, Some(("operand", operand)))
        }
        other => {
            let text = format!("{other:?}");
            let fields = json!({ "seq": seq, "other": text });
            return Line { seq, parts: vec![text], fields };
        }
    };
    let mut parts = vec![keyspace.to_string(), verb.to_owned(), coding.show(first)];
    let mut fields = Map::new();
    fields.insert("seq".into(), json!(seq));
    fields.insert("keyspace".into(), json!(**keyspace));
    coding.add(&mut fields, verb, first);
    if let Some((name, bytes)) = second {
        parts.push(coding.show(bytes));
        coding.add(&mut fields, name, bytes);
    }
    match change {
        // A range without an end.
        Change::DeleteRange { end: None, .. } => {
            parts.push(String::new());
            fields.insert("end".into(), Value::Null);
        }
        Change::PutUntil { time, .. } => {
            parts.push(time.to_string());
            fields.insert("time".into(), json!(time));
        }
        _ => {}
    }
    Line { seq, parts, fields: Value::Object(fields) }
}
