//! Copies of a whole store: checkpoints, backups, restored stores.

use super::access::wrong_argument;
use super::dump::damage_fields;
use crate::failure::bad_argument;
use crate::files;
use crate::output::{Output, print, print_json};
use anyhow::bail;
use lsmith::{Backup, BackupOptions, Backups, Store};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn checkpoint(store: &Store, to: &Path, json: bool) -> anyhow::Result<()> {
    let made = store.checkpoint(to).map_err(wrong_argument)?;
    if json {
        return print_json(&json!({
            "seq": made.seq.0,
            "linked": made.linked,
            "linked_bytes": made.linked_bytes,
            "copied_bytes": made.copied_bytes,
        }));
    }
    Ok(print(format_args!(
        "checkpoint up to write {}: {} files linked, {} bytes; {} bytes copied",
        made.seq, made.linked, made.linked_bytes, made.copied_bytes
    ))?)
}

pub(super) fn backup(
    store: &Store,
    to: &Path,
    check: bool,
    keep: Option<u64>,
    json: bool,
) -> anyhow::Result<()> {
    if keep == Some(0) {
        return Err(bad_argument("expected at least one backup to keep, found 0"));
    }
    let backups = Backups::with_env(to, files::env());
    let options = BackupOptions::default().check(check);
    let made = store.backup_with(&backups, &options).map_err(wrong_argument)?;
    let removed = match keep {
        Some(count) => backups.keep(usize::try_from(count).unwrap_or(usize::MAX))?,
        None => Vec::new(),
    };
    if json {
        let mut fields = backup_fields(&made);
        fields["removed"] = json!(removed);
        return print_json(&fields);
    }
    let mut output = Output::new();
    output.line(backup_line(&made))?;
    removed.iter().try_for_each(|id| output.line(format_args!("removed {id}")))?;
    Ok(output.finish()?)
}

/// Lists the backups in `dir`, checks them, or removes one.
pub(super) fn backups(
    dir: &Path,
    check: bool,
    removed: Option<u64>,
    json: bool,
) -> anyhow::Result<()> {
    match removed {
        Some(id) => remove(dir, id, json),
        None if check => verify(dir, json),
        None => list(dir, json),
    }
}

fn list(dir: &Path, json: bool) -> anyhow::Result<()> {
    let backups = Backups::with_env(dir, files::env()).list()?;
    if json {
        let backups: Value = backups.iter().map(backup_fields).collect();
        return print_json(&json!({ "backups": backups }));
    }
    let mut output = Output::new();
    backups.iter().try_for_each(|backup| output.line(backup_line(backup)))?;
    Ok(output.finish()?)
}

fn verify(dir: &Path, json: bool) -> anyhow::Result<()> {
    let damage = Backups::with_env(dir, files::env()).verify()?;
    if json {
        let damage: Value = damage.iter().map(damage_fields).collect();
        print_json(&json!({ "damage": damage }))?;
    } else if damage.is_empty() {
        print("no damage found")?;
    } else {
        let mut output = Output::new();
        damage.iter().try_for_each(|error| output.line(error))?;
        output.finish()?;
    }
    match damage.len() {
        0 => Ok(()),
        1 => bail!("1 file is damaged"),
        count => bail!("{count} files are damaged"),
    }
}

fn remove(dir: &Path, id: u64, json: bool) -> anyhow::Result<()> {
    Backups::with_env(dir, files::env()).remove(id)?;
    if json { print_json(&json!({ "removed": id })) } else { Ok(()) }
}

pub(super) fn restore(from: &Path, id: Option<u64>, to: &Path, json: bool) -> anyhow::Result<()> {
    let backups = Backups::with_env(from, files::env());
    let id = match id {
        Some(id) => id,
        None => match backups.list()?.last() {
            Some(newest) => newest.id,
            None => bail!("there is no backup in {}", from.display()),
        },
    };
    let restored = backups.restore(id, to).map_err(wrong_argument)?;
    if json {
        return print_json(&backup_fields(&restored));
    }
    let Backup { seq, bytes, .. } = restored;
    Ok(print(format_args!("restored backup {id} up to write {seq}: {bytes} bytes"))?)
}

fn backup_line(backup: &Backup) -> String {
    let Backup { id, seq, files, bytes, copied_bytes, .. } = backup;
    format!("backup {id} up to write {seq}: {files} files, {bytes} bytes, {copied_bytes} copied")
}

fn backup_fields(backup: &Backup) -> Value {
    json!({
        "backup": backup.id,
        "seq": backup.seq.0,
        "files": backup.files,
        "bytes": backup.bytes,
        "copied_bytes": backup.copied_bytes,
    })
}
