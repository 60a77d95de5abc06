//! Records of the manifest, in text.
//!
//! ```text
//! next_file 12
//! keyspace 0 default memtable 4MiB policy tiered(ratio=4)
//! policy 0 leveled(ratio=10)
//! tree 0 flushed 5123
//! <the text form of a tree>
//! edit 0 flushed 6001
//! <the text form of an edit>
//! ```

use crate::error::{Error, ErrorKind};
use lsmith_spec::{format_bytes, parse_bytes};
use lsmith_tree::{SeqNo, Tree, TreeEdit};
use std::path::Path;

/// A keyspace, when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpaceRecord {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) memtable_bytes: u64,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// File numbers below this one are taken.
    NextFile(u64),
    /// A keyspace was made.
    Space(SpaceRecord),
    /// All of a keyspace's tree.
    Tree { space: u32, flushed_seq: SeqNo, tree: Box<Tree> },
    /// A keyspace changed its policy.
    Policy { space: u32, policy: String },
    /// A change of a tree.
    Edit { space: u32, flushed_seq: SeqNo, edit: TreeEdit },
}

/// Why a payload is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It has a kind that this version does not know.
    Unknown(String),
    /// It is not what its kind must be.
    Bad(String),
}

impl Fault {
    pub(crate) fn at(self, path: &Path, offset: u64) -> Error {
        match self {
            Fault::Bad(told) => Error::corruption(path, offset, told),
            Fault::Unknown(kind) => {
                let told = format!("a record of unknown kind `{kind}`, of a newer version perhaps");
                Error::new(ErrorKind::Unsupported, told).at(path)
            }
        }
    }
}

impl Record {
    pub(crate) fn encode(&self) -> String {
        match self {
            Record::NextFile(number) => format!("next_file {number}\n"),
            Record::Space(SpaceRecord { id, name, policy, memtable_bytes }) => {
                let memtable = format_bytes(*memtable_bytes);
                format!("keyspace {id} {name} memtable {memtable} policy {policy}\n")
            }
            Record::Policy { space, policy } => format!("policy {space} {policy}\n"),
            Record::Tree { space, flushed_seq, tree } => {
                format!("tree {space} flushed {flushed_seq}\n{tree}")
            }
            Record::Edit { space, flushed_seq, edit } => {
                format!("edit {space} flushed {flushed_seq}\n{edit}")
            }
        }
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Record, Fault> {
        let text = std::str::from_utf8(payload).map_err(|_| bad("a record", "text"))?;
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
        match kind {
            "next_file" => number(rest).map(Record::NextFile),
            "keyspace" => space(rest).ok_or_else(|| bad("a keyspace", rest)).map(Record::Space),
            "policy" => {
                let (id, policy) = rest.split_once(' ').ok_or_else(|| bad("a policy", rest))?;
                Ok(Record::Policy { space: number(id)?, policy: policy.to_string() })
            }
            "tree" => {
                let (space, flushed_seq) = flushed(rest)?;
                let tree = body.parse().map_err(|error| Fault::Bad(format!("{error}")))?;
                Ok(Record::Tree { space, flushed_seq, tree: Box::new(tree) })
            }
            "edit" => {
                let (space, flushed_seq) = flushed(rest)?;
                let edit = body.parse().map_err(|error| Fault::Bad(format!("{error}")))?;
                Ok(Record::Edit { space, flushed_seq, edit })
            }
            _ => Err(Fault::Unknown(kind.chars().take(24).collect())),
        }
    }
}

fn bad(expected: &str, found: &str) -> Fault {
    Fault::Bad(format!("expected {expected}, found `{found}`"))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| bad("a number", text))
}

fn space(text: &str) -> Option<SpaceRecord> {
    let (id, text) = text.split_once(' ')?;
    let (name, text) = text.split_once(" memtable ")?;
    let (memtable, policy) = text.split_once(" policy ")?;
    Some(SpaceRecord {
        id: id.parse().ok()?,
        name: name.to_string(),
        policy: policy.to_string(),
        memtable_bytes: parse_bytes(memtable).ok()?,
    })
}

/// `0 flushed 5123`
fn flushed(text: &str) -> Result<(u32, SeqNo), Fault> {
    let (space, seq) = text.split_once(" flushed ").ok_or_else(|| bad("`flushed`", text))?;
    Ok((number(space)?, SeqNo(number(seq)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_their_text() {
        let tree: Tree = "tree flushes 1\nL0 r1[t2:a..z 1MB 5e]\nnote at=7".parse().unwrap();
        let edit: TreeEdit =
            "edit flushes 1\ntake r1 ..\nadd r2 at L1 [t3:a..z 1MB]".parse().unwrap();
        let space = SpaceRecord {
            id: 3,
            name: "users".into(),
            policy: "tiered(ratio=4)".into(),
            memtable_bytes: 1_234_567,
        };
        let seq = SeqNo(77);
        for record in [
            Record::NextFile(12),
            Record::Space(space),
            Record::Policy { space: 3, policy: "leveled(ratio=4, l0=2)".into() },
            Record::Tree { space: 3, flushed_seq: seq, tree: Box::new(tree) },
            Record::Edit { space: 3, flushed_seq: seq, edit },
        ] {
            assert_eq!(Record::decode(record.encode().as_bytes()), Ok(record));
        }
    }

    #[test]
    fn other_payloads_are_faults() {
        assert_eq!(Record::decode(b"blob 7"), Err(Fault::Unknown("blob".into())));
        for bytes in [
            &b"next_file x"[..],
            b"keyspace 1",
            b"edit 0\nedit",
            b"tree 0 flushed 1\nL0",
            b"policy 1",
            b"\xff",
        ] {
            assert!(matches!(Record::decode(bytes), Err(Fault::Bad(_))), "{bytes:?}");
        }
    }
}
