//! Dumps a table, block by block.

use super::{Dump, Item};
use crate::files;
use lsmith::ErrorKind;
use lsmith::inspect::{Entry, Footer, Properties, TableBlock, TableFile};
use lsmith_tree::text::display_key;
use serde_json::{Value, json};

impl Dump {
    pub(super) fn table(&mut self) -> anyhow::Result<()> {
        let table = TableFile::open(&*files::env(), &self.path)?;
        self.begin(head(&table), "blocks")?;
        for error in table.damage() {
            self.damaged(error)?;
        }
        for index in 0..table.block_count() {
            match table.block(index) {
                Ok(Some(block)) => self.block(&table, index, &block)?,
                Ok(None) => {
                    let mut item = place(&table, index);
                    item.text += ", zeros: punched out or lost";
                    item.fields["hole"] = json!(true);
                    self.item(item)?;
                }
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    let mut item = place(&table, index);
                    item.text += &format!(", damaged, keys within {}", table.block_keys(index));
                    item.fields["keys"] = json!(table.block_keys(index).to_string());
                    self.item(item)?;
                    self.damaged(&error)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.end(Item { text: String::new(), fields: json!({}) })?)
    }

    fn block(
        &mut self,
        table: &TableFile,
        index: usize,
        block: &TableBlock,
    ) -> std::io::Result<()> {
        let mut item = place(table, index);
        let TableBlock { codec, payload_bytes, entries, .. } = block;
        let keys = table.block_keys(index);
        item.fields["codec"] = json!(codec);
        item.fields["payload_bytes"] = json!(payload_bytes);
        item.fields["keys"] = json!(keys.to_string());
        let codec = match *codec {
            "none" => String::new(),
            codec => format!(", {codec} of {payload_bytes}"),
        };
        item.text += &format!("{codec}, keys within {keys}, entries: {}", entries.len());
        let entries: Vec<(Option<u32>, &Entry)> =
            entries.iter().map(|entry| (None, entry)).collect();
        self.add_entries(&mut item, &entries);
        self.item(item)
    }
}

/// Returns the line of a block: its index, offset and size.
fn place(table: &TableFile, index: usize) -> Item {
    let place = table.block_place(index);
    let bytes = place.end - place.start;
    Item {
        text: format!("block {index} at {}, {bytes} bytes", place.start),
        fields: json!({ "offset": place.start, "bytes": bytes }),
    }
}

/// Returns the header: footer, properties and filter of the table.
fn head(table: &TableFile) -> Item {
    let file_id = table.file_id();
    let bytes = table.bytes();
    let footer = table.footer();
    let properties = table.properties();
    let mut text = format!("table {file_id}, {bytes} bytes");
    let mut fields = json!({ "type": "table", "number": file_id, "bytes": bytes });
    if let Some(footer) = &footer {
        text += &footer_text(footer);
    }
    if let Some(properties) = &properties {
        text += &properties_text(properties);
    }
    if let Some(filter) = table.filter() {
        text += &format!("\nfilter of {} bytes, {} bits per key", filter.bytes, filter.probes);
        fields["filter"] = json!({ "bytes": filter.bytes, "probes": filter.probes });
    }
    fields["footer"] = footer.as_ref().map_or(Value::Null, footer_fields);
    fields["properties"] = properties.as_ref().map_or(Value::Null, properties_fields);
    Item { text, fields }
}

fn footer_text(footer: &Footer) -> String {
    let Footer { version, compressed, undated, outside, expiring, .. } = footer;
    let Footer { filter, index, properties, .. } = footer;
    let compressed = if *compressed { ", compressed" } else { "" };
    let undated = if *undated { ", undated" } else { "" };
    let outside = if *outside { ", from outside" } else { "" };
    let expiring = if *expiring { ", with entries that expire" } else { "" };
    format!(
        ", format {version}{compressed}{undated}{outside}{expiring}\n\
         data 0..{}, filter {filter:?}, index {index:?}, properties {properties:?}",
        filter.start
    )
}

fn footer_fields(footer: &Footer) -> Value {
    let Footer { version, compressed, undated, outside, expiring, .. } = footer;
    let Footer { filter, index, properties, .. } = footer;
    json!({
        "version": version,
        "compressed": compressed,
        "undated": undated,
        "outside": outside,
        "expiring": expiring,
        "filter": [filter.start, filter.end],
        "index": [index.start, index.end],
        "properties": [properties.start, properties.end],
    })
}

fn properties_text(properties: &Properties) -> String {
    let Properties { blocks, entries, tombstones, logical_bytes, seq_min, seq_max, .. } =
        properties;
    let first = display_key(&properties.first_key);
    let last = display_key(&properties.last_key);
    let points = properties.profile_points;
    let operator = properties.operator.as_ref();
    let operator = operator.map_or(String::new(), |name| format!(", operands for `{name}`"));
    format!(
        "\nblocks: {blocks}, entries: {entries}, tombstones: {tombstones}, \
         logical bytes: {logical_bytes}\n\
         numbers {seq_min} to {seq_max}, keys {first} to {last}, profile points: {points}{operator}"
    )
}

fn properties_fields(properties: &Properties) -> Value {
    json!({
        "blocks": properties.blocks,
        "entries": properties.entries,
        "tombstones": properties.tombstones,
        "logical_bytes": properties.logical_bytes,
        "seq_min": properties.seq_min.0,
        "seq_max": properties.seq_max.0,
        "first_key": display_key(&properties.first_key).to_string(),
        "last_key": display_key(&properties.last_key).to_string(),
        "profile_points": properties.profile_points,
        "operator": properties.operator,
    })
}
