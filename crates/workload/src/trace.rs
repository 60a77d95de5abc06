//! `trace`: a recorded history, operation by operation.

mod layout;
mod op;
mod reader;

use std::io::{BufRead, Read};

use lsmith_spec::{Params, Spec, format_count};

use self::layout::Layout;
use self::op::{TraceOp, TraceOpKind};
use self::reader::Reader;
use crate::info::{ParamUnit, WorkloadInfo, param};
use crate::inputs::{Inputs, failed, open};
use crate::keys::KeySpace;
use crate::parts::Parts;
use crate::{Op, WorkloadError};

/// Longest line: two keys of the greatest length, and room for the rest.
const LINE_BYTES_MAX: u64 = 256 << 10;

/// The operations of a text file, one per line, in the order of the file. [`Layout`] says how
/// lines are read.
///
/// A damaged line ends the stream with an error, after the operations before it.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    ops: Vec<TraceOp>,
    /// The first damaged line, if the limit reaches it.
    damage: Option<WorkloadError>,
}

impl Trace {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "trace",
        summary: "plays a recorded history from a text file, which may be compressed by gzip or \
                  zstd",
        source: "",
        argument: Some("the file"),
        params: &[param("ops", ParamUnit::Count, "stops after that many operations")],
        example: "trace(crates/workload/data/small-trace.csv)",
    };

    /// The format of the file.
    pub(crate) const FORMAT: &str = "\
timestamp,op,key,value_size
1700000000,put,src/main.rs,1204
1700000060,get,src/main.rs,0
1700000120,delete,src/main.rs,0

The first line is the header. Each other line is one operation, in the order in which they are
played: `put`, `get`, `delete`, `combine`, `scan` or `delete_range`. The timestamp is a whole count
and plays no part. A key has no comma, and nothing is quoted. For puts and combines, value_size is
the length of the value or of the operand in bytes; for scans, the count of entries to read. What
combines make has the length of the newest operand. With `delete_range` the header has a fifth
field, `end`: the key behind the range, which is empty in other lines. All keys then have one
length. With `expire=N`, entries expire N writes after their own.

Also read: the cache traces of Twitter (timestamp, key, key size, value size, client, operation,
TTL), of Meta's CacheLib (a header with key, op, size and op_count), and of MSR Cambridge (blocks:
the key has host, disk and offset). TTLs play no part.
";

    pub(crate) fn build(
        params: &Params,
        inputs: &dyn Inputs,
    ) -> Result<Parts<Self>, WorkloadError> {
        let file = params.positional(0, "a file name, as in trace(FILE)")?;
        let limit = params.count_if_given("ops", ..)?;
        let mut spec = Spec::bare("trace");
        spec.positional.push(file.to_owned());
        if let Some(ops) = limit {
            spec = spec.with("ops", format_count(ops));
        }
        let damaged = |line, message| WorkloadError::Line { file: file.to_owned(), line, message };
        let mut lines = Lines { input: open(inputs, file)?, line: Vec::new(), count: 0 };
        let first = lines.next(file)?.unwrap_or(Ok(b"")).unwrap_or(b"\0");
        let layout = Layout::of(first).map_err(|message| damaged(1, message))?;
        let mut reader = Reader::new(limit);
        let mut damage = None;
        if !layout.has_header() {
            damage = reader.line(&layout, first).err().map(|message| damaged(1, message));
        }
        while damage.is_none() && !reader.is_full() {
            let Some(line) = lines.next(file)? else { break };
            let read = line.and_then(|line| reader.line(&layout, line));
            damage = read.err().map(|message| damaged(lines.count, message));
        }
        let (ops, keys) = reader.finish();
        Ok(Parts {
            items: keys.len() as u64,
            keys: KeySpace::Named(keys),
            generator: Self { ops, damage },
            spec,
        })
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.ops.len() as u64
    }

    pub(crate) fn combines(&self) -> bool {
        self.count(TraceOpKind::Combine) > 0
    }

    pub(crate) fn deletes_ranges(&self) -> bool {
        self.count(TraceOpKind::DeleteRange) > 0
    }

    /// Returns the mean number of entries of a scan; `None` without scans.
    pub(crate) fn scan_items(&self) -> Option<f64> {
        let scans = self.ops.iter().filter(|op| op.kind == TraceOpKind::Scan);
        let items: u64 = scans.map(|op| u64::from(op.size)).sum();
        let count = self.count(TraceOpKind::Scan);
        (count > 0).then(|| items as f64 / count as f64)
    }

    /// Returns the share of scans among the operations that read; 0 without reads.
    pub(crate) fn scan_share(&self) -> f64 {
        let scans = self.count(TraceOpKind::Scan);
        let reads = self.count(TraceOpKind::Get) + self.count(TraceOpKind::Update);
        if scans > 0 { scans as f64 / (scans + reads) as f64 } else { 0.0 }
    }

    fn count(&self, kind: TraceOpKind) -> usize {
        self.ops.iter().filter(|op| op.kind == kind).count()
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
        let Some(&TraceOp { kind, item, size }) = self.ops.next() else {
            return self.damage.take().map(|error| Err(error.clone()));
        };
        let item = u64::from(item);
        Some(Ok(match kind {
            TraceOpKind::Put => Op::put(item, size),
            TraceOpKind::Delete => Op::delete(item),
            TraceOpKind::Get => Op::read(item),
            TraceOpKind::Combine => Op::combine(item, size),
            TraceOpKind::Update => Op::read_modify_write(item, size),
            TraceOpKind::Scan => Op::scan(item, size),
            TraceOpKind::DeleteRange => Op::delete_range(item..item + u64::from(size)),
        }))
    }
}

/// Reads lines one by one. An end after the last line starts no further line.
struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    /// The number of the line that was read last, from 1.
    count: u64,
}

impl Lines<'_> {
    /// Returns the next line without its end; a message in place of a line that is too long.
    fn next(&mut self, file: &str) -> Result<Option<Result<&[u8], String>>, WorkloadError> {
        self.line.clear();
        let mut input = (&mut self.input).take(LINE_BYTES_MAX + 1);
        let read = input.read_until(b'\n', &mut self.line);
        if read.map_err(|error| failed(file, error.to_string()))? == 0 {
            return Ok(None);
        }
        self.count += 1;
        if self.line.len() as u64 > LINE_BYTES_MAX {
            return Ok(Some(Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"))));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(Ok(line.strip_suffix(b"\r").unwrap_or(line))))
    }
}
