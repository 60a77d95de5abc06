//! `db verify`: lists damage and the log parts that opening the store leaves out.

use super::access::builder;
use super::dump::damage_fields;
use crate::files;
use crate::output::{Output, print_json};
use anyhow::bail;
use lsmith::{Clock, Error, ErrorKind, LeftOut, Store, inspect};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn verify(dir: &Path, json: bool) -> anyhow::Result<()> {
    let (damage, left_out) = match builder(dir).clock(Clock::fixed(0)).read_only(true).open() {
        Ok(store) => (store.verify()?, left_out(&store)?),
        Err(error) => (damage_of_files(dir, error)?, Vec::new()),
    };
    if json {
        let left_out: Value = left_out.iter().map(left_out_fields).collect();
        let damage: Value = damage.iter().map(damage_fields).collect();
        print_json(&json!({ "damage": damage, "left_out": left_out }))?;
    } else {
        let mut output = Output::new();
        damage.iter().try_for_each(|error| output.line(error))?;
        left_out.iter().try_for_each(|left_out| output.line(left_out))?;
        if damage.is_empty() {
            output.line("no damage found")?;
        }
        output.finish()?;
    }
    match damage.len() {
        0 => Ok(()),
        1 => bail!("1 place is damaged"),
        count => bail!("{count} places are damaged"),
    }
}

/// Returns the log parts and files that were left out; none if the manifest is damaged.
fn left_out(store: &Store) -> lsmith::Result<Vec<LeftOut>> {
    match store.left_out() {
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(Vec::new()),
        found => found,
    }
}

/// Returns all damage of a store that does not open because of `error`.
fn damage_of_files(dir: &Path, error: Error) -> lsmith::Result<Vec<Error>> {
    if error.kind() != ErrorKind::Corruption {
        return Err(error);
    }
    let mut damage = inspect::damage(&*files::env(), dir)?;
    let place = |error: &Error| (error.path().map(Path::to_path_buf), error.offset());
    if !damage.iter().any(|other| place(other) == place(&error)) {
        damage.insert(0, error);
    }
    Ok(damage)
}

fn left_out_fields(left_out: &LeftOut) -> Value {
    json!({
        "path": left_out.path.to_string_lossy(),
        "offset": left_out.offset,
        "bytes": left_out.bytes,
        "reason": left_out.reason.name(),
        "message": left_out.to_string(),
    })
}
