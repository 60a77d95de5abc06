//! Commands that change a store.

use super::access::{Print, builder, no_keyspace, wrong_argument};
use super::look;
use crate::args::DbArgs;
use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::output::{print, print_json};
use crate::text::Coding;
use anyhow::{Context, bail};
use lsmith::{Batch, Builder, Keyspace, PersistMode, Store};
use lsmith_lab::Progress;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Lines between two updates of the progress bar.
const LINES_PER_UPDATE: u64 = 4096;

pub(super) fn put(keyspace: &Keyspace, key: &[u8], value: &[u8], how: Print) -> anyhow::Result<()> {
    let mut batch = Batch::new();
    batch.put(keyspace, key, value);
    keyspace.store().write(batch, PersistMode::SyncData)?;
    if how.json { print_json(&how.coding.object(&[("put", key)])) } else { Ok(()) }
}

pub(super) fn delete(keyspace: &Keyspace, key: &[u8], how: Print) -> anyhow::Result<()> {
    let mut batch = Batch::new();
    batch.delete(keyspace, key);
    keyspace.store().write(batch, PersistMode::SyncData)?;
    if how.json { print_json(&how.coding.object(&[("deleted", key)])) } else { Ok(()) }
}

pub(super) fn delete_range(
    keyspace: &Keyspace,
    from: &[u8],
    to: &[u8],
    how: Print,
) -> anyhow::Result<()> {
    let mut batch = Batch::new();
    batch.delete_range(keyspace, from..to);
    keyspace.store().write(batch, PersistMode::SyncData).map_err(wrong_argument)?;
    let deleted = || how.coding.object(&[("deleted_from", from), ("deleted_to", to)]);
    if how.json { print_json(&deleted()) } else { Ok(()) }
}

/// Opens the input file. Call it before opening the store: a wrong name must not create a store.
pub(super) fn open_input(file: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    match File::open(file) {
        Ok(input) => Ok(Box::new(BufReader::with_capacity(1 << 20, input))),
        Err(error) => Err(bad_argument(format!("cannot open {}: {error}", file.display()))),
    }
}

/// Puts each line of `input`, the contents of `file`. Returns the number of lines.
pub(super) fn put_lines(
    keyspace: &Keyspace,
    file: &Path,
    mut input: Box<dyn BufRead>,
    coding: Coding,
) -> anyhow::Result<u64> {
    let bars = Bars::new();
    bars.begin(&format!("ingesting {}", file.display()), 0);
    let mut count = 0;
    let put = |key: &[u8], value: &[u8]| Ok(keyspace.put(key, value)?);
    let ended = each_line(&mut *input, coding, &mut count, &bars, put);
    // Entries put before an error stay, and must survive a crash.
    keyspace.store().persist(PersistMode::SyncAll)?;
    drop(bars);
    ended.with_context(|| format!("{}, line {}", file.display(), count + 1))?;
    Ok(count)
}

pub(super) fn load(
    keyspace: &Keyspace,
    file: &Path,
    mut input: Box<dyn BufRead>,
    how: Print,
) -> anyhow::Result<()> {
    let bars = Bars::new();
    bars.begin(&format!("loading {}", file.display()), 0);
    let mut load = keyspace.bulk_load()?;
    let mut count = 0;
    let put = |key: &[u8], value: &[u8]| Ok(load.put(key, value)?);
    let ended = each_line(&mut *input, how.coding, &mut count, &bars, put);
    ended.with_context(|| format!("{}, line {}", file.display(), count + 1))?;
    let loaded = load.finish()?;
    drop(bars);
    if how.json {
        return print_json(&json!({
            "loaded": loaded.entries,
            "tables": loaded.tables,
            "table_bytes": loaded.table_bytes,
        }));
    }
    let message =
        format!("loaded {} entries, {} bytes in tables", loaded.entries, loaded.table_bytes);
    Ok(print(message)?)
}

/// Passes key and value of each line to `take`, and counts finished lines in `count`.
fn each_line(
    input: &mut dyn BufRead,
    coding: Coding,
    count: &mut u64,
    progress: &dyn Progress,
    mut take: impl FnMut(&[u8], &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let Some(tab) = text.iter().position(|&byte| byte == b'\t') else {
            bail!("expected a key, a tab and a value, found no tab");
        };
        let of = |text| coding.parse(text).map_err(anyhow::Error::msg);
        take(&of(&text[..tab])?, &of(&text[tab + 1..])?)?;
        *count += 1;
        if (*count).is_multiple_of(LINES_PER_UPDATE) {
            progress.advance(*count);
        }
        line.clear();
    }
    Ok(())
}

pub(super) fn compact(keyspace: &Keyspace, json: bool) -> anyhow::Result<()> {
    let bars = Bars::new();
    bars.begin("merging everything into one run", 0);
    keyspace.merge()?;
    drop(bars);
    let stats = keyspace.stats();
    if json {
        return print_json(&json!({
            "runs": stats.runs,
            "tables": stats.tables,
            "table_bytes": stats.table_bytes,
            "entries": stats.entries,
        }));
    }
    let message = format!("{} entries, {} bytes in tables", stats.entries, stats.table_bytes);
    Ok(print(message)?)
}

pub(super) fn set_policy(keyspace: &Keyspace, spec: &str, json: bool) -> anyhow::Result<()> {
    keyspace.set_merge_policy(spec).map_err(wrong_argument)?;
    let spec = keyspace.merge_policy();
    if json {
        print_json(&json!({ "policy": spec }))
    } else {
        Ok(print(format_args!("policy {spec}"))?)
    }
}

pub(super) fn set_compression(keyspace: &Keyspace, codecs: &str, json: bool) -> anyhow::Result<()> {
    keyspace.set_compression(codecs)?;
    look::compression(keyspace, json)
}

pub(super) fn drop_keyspace(store: &Store, name: &str, json: bool) -> anyhow::Result<()> {
    let dropped = store.drop_keyspace(name);
    dropped.map_err(|error| no_keyspace(store, name, error))?;
    if json {
        print_json(&json!({ "dropped": name }))
    } else {
        Ok(print(format_args!("dropped {name}"))?)
    }
}

pub(super) fn renew_keys(args: &DbArgs, json: bool) -> anyhow::Result<()> {
    if args.key_file.is_none() {
        return Err(bad_argument("expected `--key-file`, the newest key"));
    }
    builder(&args.dir).create_if_missing(false).renew_keys(true).open()?;
    if json {
        print_json(&json!({ "renewed": true }))
    } else {
        Ok(print("all files have the newest key")?)
    }
}

pub(super) fn clear(keyspace: &Keyspace, json: bool) -> anyhow::Result<()> {
    keyspace.clear()?;
    let name = keyspace.name();
    if json {
        print_json(&json!({ "cleared": name }))
    } else {
        Ok(print(format_args!("cleared {name}"))?)
    }
}

pub(super) fn destroy(store: &Builder, yes: bool, json: bool) -> anyhow::Result<()> {
    if !yes {
        return Err(bad_argument("expected `--yes`, which says that all entries may be lost"));
    }
    let left = store.destroy()?;
    let left: Vec<_> = left.iter().map(|path| path.display().to_string()).collect();
    if json {
        return print_json(&json!({ "destroyed": true, "left": left }));
    }
    print("destroyed the store")?;
    for path in left {
        print(format_args!("{path} is not the store's: it is left there"))?;
    }
    Ok(())
}

pub(super) fn rename(store: &Store, from: &str, to: &str, json: bool) -> anyhow::Result<()> {
    let renamed = store.rename_keyspace(from, to);
    renamed.map_err(|error| no_keyspace(store, from, error))?;
    if json {
        print_json(&json!({ "renamed": from, "to": to }))
    } else {
        Ok(print(format_args!("renamed {from} to {to}"))?)
    }
}
