//! Dumps logs, manifests and spills, record by record.

use super::{Dump, Item};
use crate::files;
use lsmith::inspect::{Content, Entry, FileType, LogFile, LogRecord};
use serde_json::{Value, json};
use std::io;

impl Dump {
    pub(super) fn log(&mut self) -> anyhow::Result<()> {
        let log = LogFile::open(&*files::env(), &self.path)?;
        let name = match log.file_type() {
            FileType::Manifest => "manifest",
            FileType::Copy => "copy",
            _ => "log",
        };
        let file_id = log.file_id();
        let bytes = log.bytes();
        let fields = json!({ "type": name, "number": file_id, "bytes": bytes });
        self.begin(Item { text: format!("{name} {file_id}, {bytes} bytes"), fields }, "records")?;
        let mut end = 0;
        let mut damage = log.damage();
        for record in log.records() {
            if let Some(error) = damage.take_if(|error| error.offset() <= Some(record.offset)) {
                self.damaged(error)?;
            } else if record.skipped > 0 && log.damage().is_some() {
                let message = format!("{} bytes are not a record", record.skipped);
                let at = record.offset - record.skipped;
                self.damaged(&lsmith::Error::corruption(&self.path, at, message))?;
            }
            end = record.offset + record.bytes;
            let dropped = log.torn().is_some_and(|(offset, _)| record.offset >= offset);
            self.record(&record, dropped)?;
        }
        if let Some(error) = damage {
            self.damaged(error)?;
        }
        Ok(self.end(end_of(&log, end))?)
    }

    fn record(&mut self, record: &LogRecord, dropped: bool) -> io::Result<()> {
        let LogRecord { offset, bytes, marked, content, .. } = record;
        let mut text = format!("record at {offset}, {bytes} bytes");
        if *marked {
            text += ", all before it synced";
        }
        if dropped {
            text += ", behind the torn end";
        }
        let fields =
            json!({ "offset": offset, "bytes": bytes, "marked": marked, "dropped": dropped });
        let mut item = Item { text, fields };
        match content {
            Ok(content) => self.add_content(&mut item, content),
            Err(error) => {
                self.item(item)?;
                return self.damaged(error);
            }
        }
        self.item(item)
    }

    fn add_content(&mut self, item: &mut Item, content: &Content) {
        match content {
            Content::Start { before, first, synced } => {
                item.fields["before"] = json!(before);
                item.fields["first"] = json!(first.0);
                item.fields["synced"] = json!(synced);
                let link = format!(", follows log {before}, of which {synced} bytes were synced");
                item.text += &format!("{link}; first number {first}");
            }
            Content::Batch { first, seq_count, writes } => {
                item.fields["first"] = json!(first.0);
                item.fields["numbers"] = json!(seq_count);
                item.text += &match (writes.len(), seq_count) {
                    (0, 1) => format!(", number {first}, a bulk load"),
                    (0, _) => {
                        format!(", numbers {first} to {}, no writes", first.0 + seq_count - 1)
                    }
                    (count, _) => format!(", first number {first}, writes: {count}"),
                };
                let entries: Vec<(Option<u32>, &Entry)> =
                    writes.iter().map(|write| (Some(write.keyspace), &write.entry)).collect();
                self.add_entries(item, &entries);
                let ranges = writes.iter().filter_map(|write| Some((write, write.range.as_ref()?)));
                let ranges: Vec<String> = ranges
                    .map(|(write, range)| format!("{} deletes {range}", write.entry.seq))
                    .collect();
                if !ranges.is_empty() {
                    item.fields["ranges"] = json!(ranges);
                    ranges.iter().for_each(|range| item.text += &format!("\n  {range}"));
                }
            }
            Content::Copy { keyspace, entries } => {
                item.fields["keyspace"] = json!(keyspace);
                item.text += &format!(", keyspace {keyspace}, entries: {}", entries.len());
                let entries: Vec<_> = entries.iter().map(|entry| (None, entry)).collect();
                self.add_entries(item, &entries);
            }
            Content::Text(text) if self.take(1) == 1 => {
                item.fields["text"] = json!(text);
                text.lines().for_each(|line| item.text += &format!("\n  {line}"));
            }
            _ => {}
        }
    }
}

/// Returns the footer for `log`, whose last record ends at `end`: clean, torn or damaged.
fn end_of(log: &LogFile, end: u64) -> Item {
    let (name, offset, bytes_dropped) = match (log.torn(), log.damage()) {
        (Some((offset, bytes)), _) => ("torn", Some(offset), bytes),
        (None, Some(error)) => ("damaged", error.offset(), 0),
        (None, None) => ("clean", Some(end), 0),
    };
    let at = offset.map_or(String::new(), |offset| format!(" at {offset}"));
    let dropped = match name {
        "torn" => format!(", {bytes_dropped} bytes are left out on opening"),
        _ => String::new(),
    };
    let end: Value = json!({ "how": name, "offset": offset, "bytes_dropped": bytes_dropped });
    Item { text: format!("end: {name}{at}{dropped}"), fields: json!({ "end": end }) }
}
