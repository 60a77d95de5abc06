//! `db report`: a page about a store.

use super::look::stat_fields;
use crate::output::{print, print_json};
use crate::page;
use lsmith::Store;
use lsmith_lab::history::History;
use lsmith_lab::page::Group;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn report(store: &Store, dir: &Path, html: &Path, json: bool) -> anyhow::Result<()> {
    let names = store.keyspaces();
    let made = names.iter().map(|name| {
        let keyspace = store.existing_keyspace(name)?;
        let fields = Value::Object(stat_fields(&keyspace));
        let tree = keyspace.tree();
        let policy = keyspace.stats().policy;
        let history = History::of_tree(&format!("{name}: {policy}"), "the store", &tree);
        Ok(Group::of_keyspace(name, &policy, &fields, history))
    });
    let groups = made.collect::<lsmith::Result<Vec<Group>>>()?;
    let keyspaces = groups.len();
    page::write(&format!("lsmith store {}", dir.display()), groups, Some(html), None)?;
    if json {
        return print_json(&json!({ "html": html.to_string_lossy(), "keyspaces": keyspaces }));
    }
    Ok(print(format_args!("written: {}", html.display()))?)
}
