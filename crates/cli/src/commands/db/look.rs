//! Commands that only read a store.

use super::access::{Print, bounds_of, bytes_of};
use crate::args::ScanArgs;
use crate::commands::picture::{KEY_OF_RUNS, runs, runs_fields};
use crate::layout::is_csv;
use crate::output::{Output, print, print_json};
use crate::table::Importance::{Least, Rank};
use crate::table::{ranked, short_bytes, table};
use crate::text::Coding;
use anyhow::bail;
use lsmith::{Keyspace, KeyspaceInfo, Store};
use serde_json::{Map, Value, json};

pub(super) fn get(keyspace: &Keyspace, key: &[u8], print: Print) -> anyhow::Result<()> {
    let Print { coding, json } = print;
    let Some(value) = keyspace.get(key)? else {
        bail!("there is no key `{}` in keyspace {}", coding.show(key), keyspace.name());
    };
    if json {
        return print_json(&coding.object(&[("key", key), ("value", &value)]));
    }
    let mut output = Output::new();
    match coding {
        Coding::Raw => output.bytes(&value)?,
        _ => output.line(coding.show(&value))?,
    }
    Ok(output.finish()?)
}

pub(super) fn id(store: &Store, json: bool) -> anyhow::Result<()> {
    let [id, origin] = [store.id(), store.origin()].map(|id| id.map(|id| id.to_string()));
    if json {
        return print_json(&json!({ "id": id, "origin": origin }));
    }
    match id {
        Some(id) => print(id)?,
        None => print("none: an earlier version made the store, and nobody has opened it since")?,
    }
    if let Some(origin) = origin {
        print(format_args!("made of {origin}"))?;
    }
    Ok(())
}

pub(super) fn scan(keyspace: &Keyspace, args: &ScanArgs, print: Print) -> anyhow::Result<()> {
    // Filters may hold prefixes, which the bounds of one do not say.
    let entries = match &args.range.prefix {
        Some(prefix) => keyspace.prefix(bytes_of(prefix, print.coding)?),
        None => keyspace.range(bounds_of(&args.range, print.coding)?),
    };
    let limit = args.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    if args.reverse {
        print_entries(entries.rev().take(limit), print)
    } else {
        print_entries(entries.take(limit), print)
    }
}

/// Prints entries one by one, without collecting them.
fn print_entries<B: AsRef<[u8]>>(
    entries: impl Iterator<Item = lsmith::Result<(B, B)>>,
    print: Print,
) -> anyhow::Result<()> {
    let Print { coding, json } = print;
    let mut output = Output::new();
    let mut separator = "{\"entries\":[";
    for entry in entries {
        let (key, value) = match entry {
            Ok(entry) => entry,
            Err(error) => {
                if json {
                    // What was printed so far becomes an object too.
                    let start = if separator == "," { "" } else { separator };
                    let message = json!(error.to_string());
                    output.line(format_args!("{start}],\"error\":{message}}}"))?;
                }
                output.finish()?;
                return Err(error.into());
            }
        };
        let key = key.as_ref();
        let value = value.as_ref();
        if json {
            let entry = coding.object(&[("key", key), ("value", value)]);
            output.bytes(format!("{separator}{entry}").as_bytes())?;
            separator = ",";
        } else {
            output.line(format_args!("{}\t{}", coding.show(key), coding.show(value)))?;
        }
    }
    if json {
        let start = if separator == "," { "" } else { separator };
        output.line(format_args!("{start}]}}"))?;
    }
    Ok(output.finish()?)
}

/// Returns the statistics of a keyspace by name.
pub(super) fn stat_fields(keyspace: &Keyspace) -> Map<String, Value> {
    let stats = keyspace.stats();
    let mut fields = Map::new();
    for (name, value) in [
        ("keyspace", json!(stats.name)),
        ("group", json!(stats.group)),
        ("policy", json!(stats.policy)),
        ("compression", json!(stats.compression)),
        ("memtable_bytes", json!(stats.memtable_bytes)),
        ("memory_bytes", json!(stats.memory_bytes)),
        ("fence_bytes", json!(stats.fence_bytes)),
        ("filter_bytes", json!(stats.filter_bytes)),
        ("profile_bytes", json!(stats.profile_bytes)),
        ("runs", json!(stats.runs)),
        ("tables", json!(stats.tables)),
        ("table_bytes", json!(stats.table_bytes)),
        ("live_bytes", json!(stats.live_bytes)),
        ("dead_bytes", json!(stats.dead_bytes)),
        ("punched_bytes", json!(stats.punched_bytes)),
        ("value_files", json!(stats.value_files)),
        ("value_bytes", json!(stats.value_bytes)),
        ("value_garbage_bytes", json!(stats.value_garbage_bytes)),
        ("logical_bytes", json!(stats.logical_bytes)),
        ("entries", json!(stats.entries)),
        ("tombstones", json!(stats.tombstones)),
        ("flushes", json!(stats.flushes)),
        ("pressure", json!(stats.pressure)),
        ("keyspaces", json!(keyspace.store().keyspaces())),
    ] {
        fields.insert(name.to_owned(), value);
    }
    fields
}

pub(super) fn metrics(store: &Store, json: bool) -> anyhow::Result<()> {
    let text = store.metrics();
    if json {
        return print_json(&json!({ "metrics": text }));
    }
    Ok(print(text.trim_end())?)
}

pub(super) fn stats(keyspace: &Keyspace, json: bool) -> anyhow::Result<()> {
    let fields = stat_fields(keyspace);
    if json {
        return print_json(&fields);
    }
    let rows = fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
        let (text, unit) = with_unit(name, value);
        vec![name.clone(), text, unit]
    });
    Ok(print(table(&["of the keyspace", "value", "unit"], 3, rows.collect()))?)
}

/// Returns the value of a field in full, and its unit. Large sizes are also given in short.
fn with_unit(name: &str, value: &Value) -> (String, String) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    };
    let unit = match value.as_u64() {
        Some(bytes) if name.ends_with("_bytes") && bytes >= 1000 && !is_csv() => {
            format!("bytes ({})", short_bytes(bytes))
        }
        Some(_) if name.ends_with("_bytes") => "bytes".to_owned(),
        None if name == "pressure" => "0 (none) to 1 (writes stop)".to_owned(),
        _ => String::new(),
    };
    (text, unit)
}

/// Prints what the manifest says of keyspaces.
pub(super) fn list(found: &[KeyspaceInfo], json: bool) -> anyhow::Result<()> {
    let fields = |info: &KeyspaceInfo| {
        [
            ("id", json!(info.id)),
            ("name", json!(info.name)),
            ("group", json!(info.group)),
            ("policy", json!(info.policy)),
            ("compression", json!(info.compression)),
            ("memtable_bytes", json!(info.memtable_bytes)),
            ("keep_numbers", json!(info.keep_numbers)),
            ("filter_bits", json!(info.filter_bits)),
            ("prefix_bytes", json!(info.prefix_bytes)),
            ("operator", json!(info.operator)),
            ("expires", json!(info.expiry.is_some())),
            ("expire_after", json!(info.expiry.and_then(|expiry| expiry.ticks()))),
        ]
    };
    if json {
        let object = |info| fields(info).map(|(name, value)| (name.to_owned(), value));
        let objects = found.iter().map(|info| Value::Object(object(info).into_iter().collect()));
        return print_json(&json!({ "keyspaces": objects.collect::<Value>() }));
    }
    let header = [
        "id",
        "name",
        "group",
        "policy",
        "compression",
        "memtable_bytes",
        "keep_numbers",
        "filter_bits",
        "prefix_bytes",
        "operator",
        "expires",
        "expire_after",
    ];
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows = found.iter().map(|info| fields(info).iter().map(|(_, value)| text(value)).collect());
    Ok(print(table(&header, 1, rows.collect()))?)
}

pub(super) fn keyspaces(store: &Store, json: bool) -> anyhow::Result<()> {
    let names = store.keyspaces();
    let found = names.iter().map(|name| store.existing_keyspace(name));
    let mut spaces: Vec<Keyspace> = found.collect::<Result<_, _>>()?;
    spaces.sort_by_key(Keyspace::id);
    let fields = |space: &Keyspace| {
        let stats = space.stats();
        [
            ("id", json!(space.id())),
            ("name", json!(stats.name)),
            ("group", json!(stats.group)),
            ("policy", json!(stats.policy)),
            ("compression", json!(stats.compression)),
            ("memtable_bytes", json!(stats.memtable_bytes)),
            ("memory_bytes", json!(stats.memory_bytes)),
            ("runs", json!(stats.runs)),
            ("tables", json!(stats.tables)),
            ("value_files", json!(stats.value_files)),
            ("value_bytes", json!(stats.value_bytes)),
            ("value_garbage_bytes", json!(stats.value_garbage_bytes)),
            ("logical_bytes", json!(stats.logical_bytes)),
            ("table_bytes", json!(stats.table_bytes)),
            ("entries", json!(stats.entries)),
        ]
    };
    if json {
        let object = |space| fields(space).map(|(name, value)| (name.to_owned(), value));
        let objects = spaces.iter().map(|space| Value::Object(object(space).into_iter().collect()));
        return print_json(&json!({ "keyspaces": objects.collect::<Value>() }));
    }
    let header = [
        ("id", Rank(0)),
        ("name", Rank(1)),
        ("group", Rank(2)),
        ("policy", Rank(3)),
        ("compression", Least),
        ("memtable", Least),
        ("in memory", Rank(7)),
        ("runs", Rank(5)),
        ("tables", Least),
        ("logical bytes", Least),
        ("table bytes", Rank(4)),
        ("entries", Rank(6)),
    ];
    let text = |(name, value): (&str, Value)| match value {
        Value::String(text) => text,
        Value::Null => "-".to_owned(),
        Value::Number(bytes) if name.ends_with("_bytes") => {
            short_bytes(bytes.as_u64().unwrap_or_default())
        }
        value => value.to_string(),
    };
    let rows = spaces.iter().map(|space| fields(space).map(text).to_vec());
    Ok(print(ranked(&header, 5, rows.collect()))?)
}

pub(super) fn tree(keyspace: &Keyspace, short: bool, json: bool) -> anyhow::Result<()> {
    let tree = keyspace.tree();
    if json {
        return print_json(&json!({ "tree": tree.to_string(), "runs": runs_fields(&tree) }));
    }
    if short {
        return Ok(print(format_args!("{}\n\n{KEY_OF_RUNS}", runs(&tree)))?);
    }
    Ok(print(tree.to_string().trim_end())?)
}

pub(super) fn policy(keyspace: &Keyspace, json: bool) -> anyhow::Result<()> {
    let spec = keyspace.merge_policy();
    let explanation = keyspace.explain();
    let plan = explanation.plan.map(|plan| plan.to_string());
    if json {
        let runners_up = explanation
            .runners_up
            .iter()
            .map(|(plan, why)| json!({ "plan": plan.to_string(), "why": why }));
        return print_json(&json!({
            "policy": spec,
            "plan": plan,
            "runners_up": runners_up.collect::<Value>(),
            "notes": explanation.notes,
        }));
    }
    let mut output = Output::new();
    output.line(format_args!("policy {spec}"))?;
    output.line(plan.as_deref().unwrap_or("nothing to merge"))?;
    for (plan, why) in &explanation.runners_up {
        output.line(format_args!("not {plan}: {why}"))?;
    }
    for note in &explanation.notes {
        output.line(note)?;
    }
    Ok(output.finish()?)
}

pub(super) fn compression(keyspace: &Keyspace, json: bool) -> anyhow::Result<()> {
    let codecs = keyspace.compression();
    if json {
        print_json(&json!({ "compression": codecs }))
    } else {
        Ok(print(format_args!("compression {codecs}"))?)
    }
}
