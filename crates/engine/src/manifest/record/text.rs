//! The records of the manifest as text, and back.
//!
//! ```text
//! next_file 12
//! keyspace 0 default memtable 4MiB policy tiered(ratio=4)
//! compressed_keyspace none,zstd 1 logs memtable 4MiB policy tiered(ratio=4)
//! numbered_keyspace none 3 parts memtable 4MiB policy tiered(ratio=4)
//! group none 2 orders memtable 4MiB policy tiered(ratio=4)
//! member 2 0 rows
//! expiry 3600 keyspace 5 sessions memtable 4MiB policy tiered(ratio=4)
//! operator counter keyspace 4 visits memtable 4MiB policy tiered(ratio=4)
//! filters 4 8 keyspace 6 edges memtable 4MiB policy tiered(ratio=4)
//! policy 0 leveled(ratio=10)
//! compression 0 lz4
//! deletes_ranges 0
//! synced 5130
//! identity 0123456789abcdef0123456789abcdef
//! clock unix_seconds
//! spill 0 file 15 upto 4800 entries 977
//! short_tree 0 flushed 5123
//! taken 5400 k..m
//! <the text form of a tree>
//! short_edit 0 flushed 6001
//! taken 6350 a..c
//! <the text form of an edit>
//! ```
//!
//! Each line `taken` is a [`Mark`]: a part of memory that a plan took by key range, up to a
//! sequence number. The record of a tree lists all marks of the keyspace. The record of an edit
//! lists only its new marks. Trees and edits are [shortened](crate::manifest::bare). Older stores
//! have records `tree` and `edit`, which are not shortened. This version reads them, and never
//! writes them.

use super::{KeyspaceRecord, LogRow, Record, RecordFault, Spill};
use crate::identity::{Identity, StoreId};
use crate::manifest::keyspaces::KeyspaceChange;
use crate::manifest::taken::Mark;
use crate::options::FilterChoice;
use crate::rules::{Expiry, Life};
use lsmith_spec::{format_bytes, parse_bytes};
use lsmith_tree::SeqNo;

impl Record {
    /// Returns the record as text.
    pub(crate) fn encode(&self) -> String {
        match self {
            Record::NextFile(file_id) => format!("next_file {file_id}\n"),
            Record::Keyspace(keyspace) => format!("keyspace {}\n", keyspace.encode()),
            Record::CompressedKeyspace(keyspace, compression) => {
                format!("compressed_keyspace {compression} {}\n", keyspace.encode())
            }
            Record::NumberedKeyspace(keyspace, compression) => {
                format!("numbered_keyspace {compression} {}\n", keyspace.encode())
            }
            Record::Group(group, compression) => {
                format!("group {compression} {}\n", group.encode())
            }
            Record::Member { group, member, name } => {
                format!("member {group} {member} {name}\n")
            }
            Record::Expiry { expiry, made } => match expiry.ticks() {
                Some(after) => format!("expiry {after} {}", made.encode()),
                None => format!("expiry none {}", made.encode()),
            },
            Record::Operator { operator, made } => format!("operator {operator} {}", made.encode()),
            Record::Filters { filters: FilterChoice { bits, prefix_bytes }, made } => {
                let bits = bits.map_or("store".to_string(), |bits| bits.to_string());
                let prefix = prefix_bytes.map_or("none".to_string(), |bytes| bytes.to_string());
                format!("filters {bits} {prefix} {}", made.encode())
            }
            Record::Compression { keyspace, compression } => {
                format!("compression {keyspace} {compression}\n")
            }
            Record::DeletesRanges { keyspace } => format!("deletes_ranges {keyspace}\n"),
            Record::Clock(name) => format!("clock {name}\n"),
            Record::Policy { keyspace, policy } => format!("policy {keyspace} {policy}\n"),
            Record::Tree { keyspace, flushed_seq, taken, tree } => {
                format!("short_tree {keyspace} flushed {flushed_seq}\n{}{tree}", taken_lines(taken))
            }
            Record::Edit { keyspace, flushed_seq, taken, edit } => {
                format!("short_edit {keyspace} flushed {flushed_seq}\n{}{edit}", taken_lines(taken))
            }
            Record::Together(edits) => {
                let edits: Vec<String> = edits.iter().map(Record::encode).collect();
                let bytes = edits.iter().map(|edit| format!(" {}", edit.len()));
                format!("together{}\n{}", bytes.collect::<String>(), edits.concat())
            }
            Record::Spill { keyspace, spill: Spill { file, newest, entries } } => {
                format!("spill {keyspace} file {file} upto {newest} entries {entries}\n")
            }
            Record::Change(change) => change.encode(),
            Record::Logs(LogRow { from, first, newest }) => {
                format!("logs from {from} first {first} newest {newest}\n")
            }
            Record::Synced(seq) => format!("synced {seq}\n"),
            Record::Linked => "linked\n".to_string(),
            Record::Identity(Identity { id, origin: None }) => format!("identity {id}\n"),
            Record::Identity(Identity { id, origin: Some(origin) }) => {
                format!("identity {id} of {origin}\n")
            }
            Record::Backup(stamp) => format!("backup {stamp:032x}\n"),
        }
    }

    /// Parses the payload of a record.
    ///
    /// # Errors
    /// Fails if the kind is unknown, or the payload does not fit it. Does not check bounds.
    pub(crate) fn decode(payload: &[u8]) -> Result<Record, RecordFault> {
        let text = std::str::from_utf8(payload).map_err(|_| bad("a record", "text"))?;
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
        match kind {
            "next_file" => integer(rest).map(Record::NextFile),
            "keyspace" => {
                keyspace(rest).ok_or_else(|| bad("a keyspace", rest)).map(Record::Keyspace)
            }
            "compressed_keyspace" => {
                compressed(rest).map(|(made, codecs)| Record::CompressedKeyspace(made, codecs))
            }
            "numbered_keyspace" => {
                compressed(rest).map(|(made, codecs)| Record::NumberedKeyspace(made, codecs))
            }
            "group" => compressed(rest).map(|(made, codecs)| Record::Group(made, codecs)),
            "operator" => operator(rest),
            "expiry" => expiry(rest),
            "filters" => filters(rest),
            "member" => member(rest).ok_or_else(|| bad("a keyspace of a group", rest)),
            "compression" => {
                let (id, codecs) = rest.split_once(' ').ok_or_else(|| bad("codecs", rest))?;
                // The codecs come before the name in the record of a compressed keyspace, where a
                // space ends them.
                if codecs.contains(' ') {
                    return Err(bad("codecs without spaces", codecs));
                }
                Ok(Record::Compression { keyspace: integer(id)?, compression: codecs.to_string() })
            }
            "deletes_ranges" => integer(rest).map(|keyspace| Record::DeletesRanges { keyspace }),
            "clock" => Ok(Record::Clock(rest.to_string())),
            "policy" => {
                let (id, policy) = rest.split_once(' ').ok_or_else(|| bad("a policy", rest))?;
                Ok(Record::Policy { keyspace: integer(id)?, policy: policy.to_string() })
            }
            "tree" | "short_tree" => {
                let (keyspace, flushed_seq) = flushed(rest)?;
                let (taken, body) = take_taken(body)?;
                let tree = body.parse().map_err(|error| RecordFault::Bad(format!("{error}")))?;
                Ok(Record::Tree { keyspace, flushed_seq, taken, tree: Box::new(tree) })
            }
            "edit" | "short_edit" => edit(rest, body),
            "together" => together(rest, body),
            "spill" => spill(rest).ok_or_else(|| bad("a spill", rest)),
            "logs" => logs(rest).ok_or_else(|| bad("a row of logs", rest)),
            "synced" => integer(rest).map(|seq| Record::Synced(SeqNo(seq))),
            "linked" if rest.is_empty() => Ok(Record::Linked),
            "identity" => identity(rest).ok_or_else(|| bad("an identity", rest)),
            "backup" => backup(rest).ok_or_else(|| bad("the stamp of a backup", rest)),
            _ => match KeyspaceChange::decode(kind, rest) {
                Some(change) => change.map(Record::Change).map_err(RecordFault::Bad),
                None => Err(RecordFault::Unknown(kind.chars().take(24).collect())),
            },
        }
    }
}

impl KeyspaceRecord {
    fn encode(&self) -> String {
        let KeyspaceRecord { id, name, policy, memtable_bytes } = self;
        format!("{id} {name} memtable {} policy {policy}", format_bytes(*memtable_bytes))
    }
}

fn bad(expected: &str, found: &str) -> RecordFault {
    RecordFault::Bad(format!("expected {expected}, found `{found}`"))
}

fn integer<T: std::str::FromStr>(text: &str) -> Result<T, RecordFault> {
    text.parse().map_err(|_| bad("a number", text))
}

fn member(text: &str) -> Option<Record> {
    let (group, text) = text.split_once(' ')?;
    let (member, name) = text.split_once(' ')?;
    let (group, member) = (group.parse().ok()?, member.parse().ok()?);
    Some(Record::Member { group, member, name: name.to_string() })
}

/// Parses the change of a tree, with marks in front.
fn edit(head: &str, body: &str) -> Result<Record, RecordFault> {
    let (keyspace, flushed_seq) = flushed(head)?;
    let (taken, body) = take_taken(body)?;
    let edit = body.parse().map_err(|error| RecordFault::Bad(format!("{error}")))?;
    Ok(Record::Edit { keyspace, flushed_seq, taken, edit })
}

/// Parses the bytes of each edit, and the edits.
fn together(bytes: &str, mut body: &str) -> Result<Record, RecordFault> {
    let mut edits = Vec::new();
    for bytes in bytes.split(' ') {
        let parts = body.split_at_checked(integer(bytes)?);
        let (text, rest) = parts.ok_or_else(|| bad("the edit of a keyspace", body))?;
        body = rest;
        let lines = text.strip_prefix("short_edit ").and_then(|text| text.split_once('\n'));
        let (head, text) = lines.ok_or_else(|| bad("the edit of a keyspace", text))?;
        edits.push(edit(head, text)?);
    }
    if body.is_empty() { Ok(Record::Together(edits)) } else { Err(bad("no more edits", body)) }
}

/// Parses the name of an operator, and the record behind it, which must make a keyspace.
fn operator(text: &str) -> Result<Record, RecordFault> {
    let (name, made) = made_with(text)?;
    Ok(Record::Operator { operator: name.to_string(), made })
}

/// Parses the time that values live, or `none`, and the record behind it.
fn expiry(text: &str) -> Result<Record, RecordFault> {
    let (after, made) = made_with(text)?;
    let after = if after == "none" { None } else { Some(integer(after)?) };
    Ok(Record::Expiry { expiry: Expiry { after: after.map(Life::Ticks) }, made })
}

/// Parses bits per key or `store`, the length of prefixes or `none`, and the record behind them.
fn filters(text: &str) -> Result<Record, RecordFault> {
    let mut words = text.splitn(3, ' ');
    let (Some(bits), Some(prefix), Some(made)) = (words.next(), words.next(), words.next()) else {
        return Err(bad("filters of a keyspace", text));
    };
    let bits = if bits == "store" { None } else { Some(integer(bits)?) };
    let prefix_bytes = if prefix == "none" { None } else { Some(integer(prefix)?) };
    let made = nested(made, &["filters ", "operator ", "expiry "])?;
    match made.makes_tree() {
        Some(_) => {
            let filters = FilterChoice { bits, prefix_bytes };
            Ok(Record::Filters { filters, made: Box::new(made) })
        }
        None => Err(bad("the record of a keyspace or a group", text)),
    }
}

/// Parses a word, and the record of a keyspace behind it.
fn made_with(text: &str) -> Result<(&str, Box<Record>), RecordFault> {
    let (word, made) = text.split_once(' ').ok_or_else(|| bad("a keyspace", text))?;
    let made = nested(made, &["operator ", "expiry "])?;
    match made.makes() {
        Some(_) => Ok((word, Box::new(made))),
        None => Err(bad("the record of a keyspace", text)),
    }
}

/// Parses a record in another one, which is of none of the kinds `but`: these could have records of
/// their own without end.
fn nested(text: &str, but: &[&str]) -> Result<Record, RecordFault> {
    if but.iter().any(|kind| text.starts_with(kind)) {
        return Err(bad("the record of a keyspace or a group", text));
    }
    Record::decode(text.as_bytes())
}

/// Parses codecs, and the keyspace behind them.
fn compressed(text: &str) -> Result<(KeyspaceRecord, String), RecordFault> {
    let parts = text.split_once(' ');
    let parsed = parts.and_then(|(codecs, rest)| Some((keyspace(rest)?, codecs.to_string())));
    parsed.ok_or_else(|| bad("a keyspace", text))
}

fn keyspace(text: &str) -> Option<KeyspaceRecord> {
    let (id, text) = text.split_once(' ')?;
    let (name, text) = text.split_once(" memtable ")?;
    let (memtable, policy) = text.split_once(" policy ")?;
    Some(KeyspaceRecord {
        id: id.parse().ok()?,
        name: name.to_string(),
        policy: policy.to_string(),
        memtable_bytes: parse_bytes(memtable).ok()?,
    })
}

/// Parses for example `0 flushed 5123`.
fn flushed(text: &str) -> Result<(u32, SeqNo), RecordFault> {
    let (keyspace, seq) = text.split_once(" flushed ").ok_or_else(|| bad("`flushed`", text))?;
    Ok((integer(keyspace)?, SeqNo(integer(seq)?)))
}

/// Parses for example `0 file 15 upto 4800 entries 977`.
fn spill(text: &str) -> Option<Record> {
    let (keyspace, text) = text.split_once(" file ")?;
    let (file, text) = text.split_once(" upto ")?;
    let (newest, entries) = text.split_once(" entries ")?;
    let spill = Spill {
        file: file.parse().ok()?,
        newest: SeqNo(newest.parse().ok()?),
        entries: entries.parse().ok()?,
    };
    Some(Record::Spill { keyspace: keyspace.parse().ok()?, spill })
}

/// Parses the identity of a store, and of the one that it was made of.
fn identity(text: &str) -> Option<Record> {
    let (id, origin) = match text.split_once(" of ") {
        Some((id, origin)) => (id, Some(origin.parse().ok()?)),
        None => (text, None),
    };
    let id: StoreId = id.parse().ok()?;
    Some(Record::Identity(Identity { id, origin }))
}

/// Parses a stamp of 32 hexadecimal digits.
fn backup(text: &str) -> Option<Record> {
    let is_stamp = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_stamp.then(|| u128::from_str_radix(text, 16).ok().map(Record::Backup)).flatten()
}

/// Parses for example `from 13 first 5124 newest 16`.
fn logs(text: &str) -> Option<Record> {
    let (from, text) = text.strip_prefix("from ")?.split_once(" first ")?;
    let (first, newest) = text.split_once(" newest ")?;
    Some(Record::Logs(LogRow {
        from: from.parse().ok()?,
        first: SeqNo(first.parse().ok()?),
        newest: newest.parse().ok()?,
    }))
}

fn taken_lines(taken: &[Mark]) -> String {
    taken.iter().map(|Mark { range, newest }| format!("taken {newest} {range}\n")).collect()
}

/// Returns the marks at the start of `body`, and the rest behind them.
fn take_taken(mut body: &str) -> Result<(Vec<Mark>, &str), RecordFault> {
    let mut taken = Vec::new();
    while let Some(rest) = body.strip_prefix("taken ") {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        let (newest, range) = line.split_once(' ').ok_or_else(|| bad("a mark", line))?;
        let range = range.parse().map_err(|error| RecordFault::Bad(format!("{error}")))?;
        taken.push(Mark { range, newest: SeqNo(integer(newest)?) });
        body = behind;
    }
    Ok((taken, body))
}
