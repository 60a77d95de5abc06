//! `db dump`: prints a file of a store as text, even if the store cannot be opened.

mod append;
mod log;
mod table;

use super::access::Print;
use crate::args::DumpArgs;
use crate::failure::bad_argument;
use crate::files;
use crate::output::Output;
use crate::text::Coding;
use anyhow::bail;
use lsmith::inspect::{self, AppendFile, Entry, EntryKind, FileType};
use lsmith_tree::text::display_key;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

pub(super) fn dump(dir: &Path, args: &DumpArgs, print: Print) -> anyhow::Result<()> {
    let in_dir = Some(dir.join(&args.file)).filter(|path| path.exists());
    let path = in_dir.unwrap_or_else(|| args.file.clone());
    let file_type = match FileType::of(&path) {
        Some((file_type, _)) => file_type,
        None if inspect::is_table(&*files::env(), &path).is_ok_and(|found| found) => {
            FileType::Table
        }
        None => {
            let message = "expected CURRENT, a table, or a name that ends in .wal, .spill or \
                           .manifest";
            return Err(bad_argument(format!("{}: {message}", path.display())));
        }
    };
    let mut dump = Dump {
        path,
        output: Output::new(),
        json: print.json,
        coding: print.coding,
        values: args.values,
        left: args.limit.unwrap_or(u64::MAX),
        hidden: 0,
        items: 0,
        damage: Vec::new(),
    };
    match file_type {
        FileType::Table if AppendFile::is_append(&*files::env(), &dump.path)? => {
            dump.append_table()?
        }
        FileType::Table => dump.table()?,
        FileType::Current => dump.current()?,
        FileType::Values => {
            bail!("a value file has values alone: a dump of a table says where its values lie")
        }
        _ => dump.log()?,
    }
    let places = dump.damage.len();
    dump.output.finish()?;
    match places {
        0 => Ok(()),
        1 => bail!("1 place is damaged"),
        count => bail!("{count} places are damaged"),
    }
}

/// Prints a file item by item, because it may be large.
struct Dump {
    path: PathBuf,
    output: Output,
    json: bool,
    coding: Coding,
    values: bool,
    /// The number of entries that may still be printed.
    left: u64,
    /// The number of entries left out.
    hidden: u64,
    items: u64,
    damage: Vec<Value>,
}

/// A piece of output, both as text and as JSON.
struct Item {
    text: String,
    fields: Value,
}

impl Dump {
    /// Prints the header. In JSON the items that follow are the array `items`.
    fn begin(&mut self, mut item: Item, items: &str) -> io::Result<()> {
        if !self.json {
            return self.output.line(item.text);
        }
        item.fields["path"] = json!(self.path.to_string_lossy());
        let fields = item.fields.to_string();
        let open = fields.strip_suffix('}').unwrap_or(&fields);
        self.output.bytes(format!("{open},\"{items}\":[").as_bytes())
    }

    fn item(&mut self, item: Item) -> io::Result<()> {
        self.items += 1;
        if !self.json {
            return self.output.line(item.text);
        }
        let separator = if self.items > 1 { "," } else { "" };
        self.output.bytes(format!("{separator}{}", item.fields).as_bytes())
    }

    /// Prints damage at the place where it was found.
    fn damaged(&mut self, error: &lsmith::Error) -> io::Result<()> {
        self.damage.push(damage_fields(error));
        if self.json { Ok(()) } else { self.output.line(format_args!("damaged: {error}")) }
    }

    /// Prints the footer.
    fn end(&mut self, mut item: Item) -> io::Result<()> {
        if self.json {
            item.fields["left_out"] = json!(self.hidden);
            item.fields["damage"] = json!(self.damage);
            let fields = item.fields.to_string();
            let rest = fields.strip_prefix('{').unwrap_or(&fields);
            return self.output.line(format_args!("],{rest}"));
        }
        if self.hidden > 0 {
            self.output.line(format_args!("{} more left out", self.hidden))?;
        }
        if item.text.is_empty() { Ok(()) } else { self.output.line(item.text) }
    }

    /// Returns how many of `count` entries may be printed, and counts them.
    fn take(&mut self, count: usize) -> usize {
        let shown = self.left.min(count as u64);
        self.left -= shown;
        self.hidden += count as u64 - shown;
        shown as usize
    }

    /// Adds the `entries` that may be printed to `item`, each with its keyspace if given.
    fn add_entries(&mut self, item: &mut Item, entries: &[(Option<u32>, &Entry)]) {
        let shown = self.take(entries.len());
        let mut list = Vec::new();
        for (keyspace, entry) in &entries[..shown] {
            let line = self.entry(*keyspace, entry);
            item.text += &line.text;
            list.push(line.fields);
        }
        item.fields["entries"] = json!(entries.len());
        item.fields["shown"] = json!(list);
    }

    fn entry(&self, keyspace: Option<u32>, entry: &Entry) -> Item {
        let Entry { key, seq, kind, value } = entry;
        let kind = kind_name(*kind);
        let bytes = value.len();
        let mut text = format!("\n  {} number {seq} {kind} {bytes}B", self.show(key));
        let mut fields = Map::new();
        self.coding.add(&mut fields, "key", key);
        fields.insert("seq".into(), json!(seq.0));
        fields.insert("kind".into(), json!(kind));
        fields.insert("value_bytes".into(), json!(bytes));
        if let Some(keyspace) = keyspace {
            text += &format!(" keyspace {keyspace}");
            fields.insert("keyspace".into(), json!(keyspace));
        }
        if let Some(reference) = entry.reference() {
            let (file, offset) = (reference.file, reference.offset);
            text += &format!(" to {} bytes in file {file} at {offset}", reference.value_bytes);
            let stored = reference.stored;
            if stored.packing != inspect::Packing::Plain {
                let (bytes, codec) = (stored.bytes, stored.packing.name());
                text += &format!(", {bytes} stored with {codec}");
                fields.insert("value_codec".into(), json!(codec));
                fields.insert("stored_bytes".into(), json!(bytes));
            }
            fields.insert("value_file".into(), json!(file));
            fields.insert("value_offset".into(), json!(offset));
        } else if self.values {
            text += &format!(" {}", self.show(value));
            self.coding.add(&mut fields, "value", value);
        }
        Item { text, fields: Value::Object(fields) }
    }

    /// Returns a key or value between words: in quotes where it needs them, as trees have keys.
    fn show(&self, bytes: &[u8]) -> String {
        match self.coding {
            Coding::Hex => self.coding.show(bytes),
            Coding::Escaped | Coding::Raw => display_key(bytes).to_string(),
        }
    }

    fn current(&mut self) -> anyhow::Result<()> {
        let bytes = std::fs::read(&self.path)?;
        let text = format!("CURRENT, {} bytes", bytes.len());
        let fields = json!({ "type": "current", "bytes": bytes.len() });
        self.begin(Item { text, fields }, "lines")?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            self.item(Item { text: format!("  {line}"), fields: json!(line) })?;
        }
        let (text, manifest) = match inspect::current(&*files::env(), &self.path) {
            Ok(manifest) => (format!("names manifest {manifest}"), Some(manifest)),
            Err(error) => {
                self.damaged(&error)?;
                (String::new(), None)
            }
        };
        Ok(self.end(Item { text, fields: json!({ "manifest": manifest }) })?)
    }
}

/// Returns damage as JSON: path, offset and message.
pub(super) fn damage_fields(error: &lsmith::Error) -> Value {
    json!({
        "path": error.path().map(|path| path.to_string_lossy()),
        "offset": error.offset(),
        "message": error.to_string(),
    })
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Put => "put",
        EntryKind::Delete => "delete",
        EntryKind::Insert => "insert",
        EntryKind::Remove => "remove",
        EntryKind::Combine => "combine",
        EntryKind::Expiring => "expiring",
        EntryKind::PutReference => "put_reference",
        EntryKind::InsertReference => "insert_reference",
    }
}
