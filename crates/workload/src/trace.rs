//! `trace`: a recorded history, operation by operation.

use std::collections::BTreeMap;

use lsmith_spec::{Params, Spec, format_count};

use crate::info::{ParamUnit, WorkloadInfo, param};
use crate::keys::{KeySpace, NamedKeys};
use crate::workload::{Generator, Inputs, KEYS_MAX, Parts, VALUE_BYTES_MAX};
use crate::{Op, WorkloadError};

const HEADER: &str = "timestamp,op,key,value_size";

/// The operations of a CSV file with the header `timestamp,op,key,value_size`, in the order of
/// the file; `op` is `put`, `delete`, `get` or `combine`. Keys hold no comma; nothing is quoted.
/// The timestamp must be a whole number but plays no part.
///
/// A damaged line ends the stream with an error, after the operations before it.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    ops: Vec<TraceOp>,
    /// The first damaged line, if the limit reaches it.
    damage: Option<WorkloadError>,
}

/// An operation in 12 bytes.
#[derive(Clone, Copy, Debug)]
struct TraceOp {
    kind: TraceOpKind,
    item: u32,
    value_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum TraceOpKind {
    Put,
    Delete,
    Get,
    Combine,
}

impl Trace {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "trace",
        summary: "plays a recorded history from a CSV file, which may be compressed (`.gz`)",
        source: "",
        argument: Some("the CSV file"),
        params: &[param("ops", ParamUnit::Count, "stops after that many lines")],
        example: "trace(crates/workload/data/small-trace.csv)",
    };

    /// The format of the file.
    pub(crate) const FORMAT: &str = "\
timestamp,op,key,value_size
1700000000,put,src/main.rs,1204
1700000060,get,src/main.rs,0
1700000120,delete,src/main.rs,0

The first line is the header. Each other line is one operation, in the order in which they are
played: `put`, `get`, `delete` or `combine`. The timestamp is a whole number and plays no part. A
key has no comma, and nothing is quoted. Only puts and combines use value_size, the length of the
value or of the operand in bytes. What combines make has the length of the newest operand.
";

    pub(crate) fn build(params: &Params, inputs: &dyn Inputs) -> Result<Parts, WorkloadError> {
        let file = params.positional(0, "a file name, as in trace(FILE)")?;
        let limit = params.count_if_given("ops", ..)?;
        let mut spec = Spec::bare("trace");
        spec.positional.push(file.to_owned());
        if let Some(ops) = limit {
            spec = spec.with("ops", format_count(ops));
        }

        let text = inputs
            .read(file)
            .map_err(|message| WorkloadError::Input { file: file.to_owned(), message })?;
        let mut lines = lines(&text);
        if lines.next() != Some(HEADER.as_bytes()) {
            let message = format!("not a trace: expected the header `{HEADER}`");
            return Err(WorkloadError::Line { file: file.to_owned(), line: 1, message });
        }
        let mut reader = Reader::default();
        let most = limit.and_then(|ops| usize::try_from(ops).ok()).unwrap_or(usize::MAX);
        let damage = lines.take(most).zip(2..).find_map(|(text, line)| {
            let message = reader.line(text).err()?;
            Some(WorkloadError::Line { file: file.to_owned(), line, message })
        });
        Ok(Parts {
            items: reader.keys.len() as u64,
            keys: KeySpace::Named(reader.keys),
            generator: Generator::Trace(Self { ops: reader.ops, damage }),
            spec,
        })
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.ops.len() as u64
    }

    pub(crate) fn combines(&self) -> bool {
        self.ops.iter().any(|op| matches!(op.kind, TraceOpKind::Combine))
    }

    pub(crate) fn ops(&self) -> TraceOps<'_> {
        TraceOps { ops: self.ops.iter(), damage: self.damage.as_ref() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TraceOps<'a> {
    ops: std::slice::Iter<'a, TraceOp>,
    damage: Option<&'a WorkloadError>,
}

impl TraceOps<'_> {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Result<Op, WorkloadError>> {
        let Some(&TraceOp { kind, item, value_bytes }) = self.ops.next() else {
            return self.damage.take().map(|error| Err(error.clone()));
        };
        let item = u64::from(item);
        Some(Ok(match kind {
            TraceOpKind::Put => Op::put(item, value_bytes),
            TraceOpKind::Delete => Op::delete(item),
            TraceOpKind::Get => Op::read(item),
            TraceOpKind::Combine => Op::combine(item, value_bytes),
        }))
    }
}

/// Returns the lines without their ends. An end after the last line starts no further line.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Operations and keys of the lines read so far.
#[derive(Default)]
struct Reader<'a> {
    ops: Vec<TraceOp>,
    keys: NamedKeys,
    items: BTreeMap<&'a str, u32>,
}

impl<'a> Reader<'a> {
    /// Parses one line after the header. Fails with a message for the malformed field.
    fn line(&mut self, line: &'a [u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?;
        let fields: Vec<&str> = line.splitn(5, ',').collect();
        let &[timestamp, op, key, value_size] = fields.as_slice() else {
            let found = line.split(',').count();
            return Err(format!("expected 4 fields ({HEADER}), found {found}"));
        };
        if timestamp.parse::<u64>().is_err() {
            return Err(format!("timestamp `{timestamp}` is not a whole number"));
        }
        let kind = match op {
            "put" => TraceOpKind::Put,
            "delete" => TraceOpKind::Delete,
            "get" => TraceOpKind::Get,
            "combine" => TraceOpKind::Combine,
            _ => {
                return Err(format!("unknown op `{op}`; expected put, delete, get or combine"));
            }
        };
        if key.is_empty() {
            return Err("the key is empty".to_owned());
        }
        let size =
            value_size.parse::<u32>().ok().filter(|&size| u64::from(size) <= VALUE_BYTES_MAX);
        let Some(size) = size else {
            return Err(format!(
                "value_size `{value_size}` is not a whole number up to {VALUE_BYTES_MAX}"
            ));
        };
        let has_bytes = matches!(kind, TraceOpKind::Put | TraceOpKind::Combine);
        let value_bytes = if has_bytes { size } else { 0 };
        let item = self.item(key)?;
        self.ops.push(TraceOp { kind, item, value_bytes });
        Ok(())
    }

    /// Returns the item of `key`, a new one if the key is.
    fn item(&mut self, key: &'a str) -> Result<u32, String> {
        if let Some(&item) = self.items.get(key) {
            return Ok(item);
        }
        let next = u32::try_from(self.keys.len()).ok().filter(|&item| u64::from(item) < KEYS_MAX);
        let item = next.ok_or_else(|| format!("more than {KEYS_MAX} different keys"))?;
        self.keys.push(key.as_bytes());
        self.items.insert(key, item);
        Ok(item)
    }
}
