//! Dumps an append table, leaf by leaf.

use super::{Dump, Item};
use crate::files;
use lsmith::inspect::{AppendFile, AppendLeaf, Entry, Root, RootProperties};
use lsmith_tree::KeyRange;
use lsmith_tree::text::display_key;
use serde_json::{Value, json};

impl Dump {
    pub(super) fn append_table(&mut self) -> anyhow::Result<()> {
        let table = AppendFile::open(&*files::env(), &self.path)?;
        self.begin(head(&table), "leaves")?;
        for error in table.damage() {
            self.damaged(error)?;
        }
        for part in table.parts() {
            self.part(&part)?;
            for error in &part.damage {
                self.damaged(error)?;
            }
            if part.is_lost {
                self.salvaged(&table, &part.keys)?;
            }
        }
        if table.is_rootless() {
            self.salvaged(&table, &KeyRange::ALL)?;
        }
        Ok(self.end(Item { text: String::new(), fields: json!({}) })?)
    }

    fn part(&mut self, part: &AppendLeaf) -> std::io::Result<()> {
        let AppendLeaf { place, keys, entries, is_lost, .. } = part;
        let bytes = place.end - place.start;
        let name = if *is_lost { "node" } else { "leaf" };
        let mut item = Item {
            text: format!("{name} at {}, {bytes} bytes, keys within {keys}", place.start),
            fields: json!({ "offset": place.start, "bytes": bytes, "keys": keys.to_string() }),
        };
        if *is_lost {
            item.text += ", damaged";
        } else {
            item.text += &format!(", entries: {}", entries.len());
            self.add_all(&mut item, entries);
        }
        self.item(item)
    }

    /// Prints what can be found of `keys` although their nodes are damaged.
    fn salvaged(&mut self, table: &AppendFile, keys: &KeyRange) -> std::io::Result<()> {
        let entries = table.salvage(keys);
        let count = entries.len();
        let mut item = Item {
            text: format!("found without nodes, keys within {keys}, entries: {count}"),
            fields: json!({ "offset": Value::Null, "keys": keys.to_string(), "salvaged": true }),
        };
        self.add_all(&mut item, &entries);
        self.item(item)
    }

    fn add_all(&mut self, item: &mut Item, entries: &[Entry]) {
        let entries: Vec<(Option<u32>, &Entry)> =
            entries.iter().map(|entry| (None, entry)).collect();
        self.add_entries(item, &entries);
    }
}

/// Returns the header: the roots of the table.
fn head(table: &AppendFile) -> Item {
    let file_id = table.file_id();
    let bytes = table.bytes();
    let roots = table.roots();
    let end = roots.last().map_or(0, |root| root.end);
    let mut text = format!("append table {file_id}, {bytes} bytes, roots: {}", roots.len());
    roots.iter().for_each(|root| text += &root_text(root));
    if end < bytes {
        text += &format!("\n{} bytes behind the last root", bytes - end);
    }
    let fields = json!({
        "type": "append table",
        "number": file_id,
        "bytes": bytes,
        "bytes_behind": bytes - end,
        "roots": roots.iter().map(root_fields).collect::<Vec<_>>(),
    });
    Item { text, fields }
}

fn root_text(root: &Root) -> String {
    let Root { end, footer, properties, .. } = root;
    let compressed = if footer.compressed { ", compressed" } else { "" };
    let mut text = format!(
        "\nroot {end}, format {}{compressed}, data up to {}, filter {:?}, nodes {:?}, \
         root block {:?}",
        footer.version, footer.filter.start, footer.filter, footer.index, footer.properties
    );
    match properties {
        None => text += "\n  root block damaged",
        Some(properties) => text += &properties_text(properties),
    }
    text
}

fn properties_text(properties: &RootProperties) -> String {
    let RootProperties { batches, appended_bytes, levels, keys, size, .. } = properties;
    let RootProperties { seq_min, seq_max, filter_parts, .. } = properties;
    let first = display_key(&properties.first_key);
    let last = display_key(&properties.last_key);
    format!(
        "\n  batches: {batches}, levels: {levels}, keys: {keys}, entries: {}, tombstones: {}, \
         logical bytes: {} of {appended_bytes} appended\n  numbers {seq_min} to {seq_max}, \
         keys {first} to {last}, filter parts: {filter_parts}",
        size.entries, size.tombstones, size.bytes
    )
}

fn root_fields(root: &Root) -> Value {
    let Root { end, footer, properties, .. } = root;
    json!({
        "root": end,
        "version": footer.version,
        "compressed": footer.compressed,
        "filter": [footer.filter.start, footer.filter.end],
        "nodes": [footer.index.start, footer.index.end],
        "root_block": [footer.properties.start, footer.properties.end],
        "properties": properties.as_ref().map(properties_fields),
    })
}

fn properties_fields(properties: &RootProperties) -> Value {
    json!({
        "batches": properties.batches,
        "appended_bytes": properties.appended_bytes,
        "levels": properties.levels,
        "keys": properties.keys,
        "entries": properties.size.entries,
        "tombstones": properties.size.tombstones,
        "logical_bytes": properties.size.bytes,
        "seq_min": properties.seq_min.0,
        "seq_max": properties.seq_max.0,
        "first_key": display_key(&properties.first_key).to_string(),
        "last_key": display_key(&properties.last_key).to_string(),
        "filter_parts": properties.filter_parts,
    })
}
