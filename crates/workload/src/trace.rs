//! `trace`: a recorded history, operation by operation.

mod format;
mod input;
mod layout;
mod op;
mod oracle;
mod reader;
mod record;
mod recording;
mod rocksdb;
mod source;
mod tectonic;
mod ycsb_lines;

use std::sync::Arc;

use lsmith_spec::{Params, Spec, SpecError, format_count};

use self::format::Format;
pub use self::recording::{Recorded, RecordedCounts};

use self::op::{TraceOp, TraceOpKind};
use self::reader::Operations;
use self::rocksdb::Choice;
use self::source::{Found, Source};
use crate::info::{ParamUnit, WorkloadInfo, param};
use crate::inputs::{Inputs, open};
use crate::keys::KeySpace;
use crate::parts::Parts;
use crate::{Op, WorkloadError};

/// The operations of a file, in its order.
///
/// A damaged line or entry ends the stream with an error, after the operations before it.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Loads first.
    ops: Vec<TraceOp>,
    /// As in [`Lives::Each`](crate::Lives::Each); empty unless they are played.
    lives: Arc<[u32]>,
    /// What a recording says beside its operations.
    recorded: Option<Recorded>,
    /// The first damaged line or entry, if the limit reaches it.
    damage: Option<WorkloadError>,
}

impl Trace {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "trace",
        summary: "plays a recorded history from a file, which may be compressed by gzip or zstd",
        source: "",
        argument: Some("the file"),
        params: &[
            param("ops", ParamUnit::Count, "stops after that many operations"),
            param(
                "format",
                ParamUnit::Word,
                "lsmith, recording, twitter, cachelib, msr, libcachesim, oracle_general, rocksdb, \
                 rocksdb_text, ycsb or tectonic; by the file's name and first bytes if left out",
            ),
            param(
                "keyspace",
                ParamUnit::Word,
                "the keyspace that is played of a recording; its only one if left out",
            ),
            param(
                "family",
                ParamUnit::Count,
                "the column family that is played of a trace of RocksDB; 0 if left out",
            ),
            param(
                "scan_length",
                ParamUnit::Count,
                "the entries that a seek in a trace of RocksDB reads; 1 if left out",
            ),
        ],
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
field, `end`: the key behind the range, which is empty in other lines. With `expire=N`, entries
expire N writes after their own; with `expire=recorded`, as the file says, if it has times to live.

Also read: the cache traces of Twitter (timestamp, key, key size, value size, client, operation,
TTL), of Meta's CacheLib (a header with key, op, size and op_count), of libCacheSim (text, or binary
with 24 bytes for each request: the first request of an object writes it), the block traces of MSR
Cambridge (the key has host, disk and offset), RocksDB's query traces (binary or printed), and what
YCSB's binding `basic` prints. TTLs play a part with `expire=recorded`. A spec of Tectonic is drawn.
docs/traces.md has all of them.
";

    pub(crate) fn build(
        params: &Params,
        seed: u64,
        inputs: &dyn Inputs,
        wants_lives: bool,
    ) -> Result<Parts<Self>, WorkloadError> {
        let file = params.positional(0, "a file name, as in trace(FILE)")?;
        let limit = params.count_if_given("ops", ..)?;
        let names = Format::ALL.map(|(name, _)| name);
        let name = params.text("format").map(|_| params.choice("format", "", &names));
        let name = name.transpose()?;
        let family = params.count_if_given("family", ..=u64::from(u32::MAX))?;
        let scan_length = params.count_if_given("scan_length", 1..=u64::from(u32::MAX))?;
        let keyspace = params.text("keyspace");
        let mut spec = Spec::bare("trace");
        spec.positional.push(file.to_owned());
        if let Some(ops) = limit {
            spec = spec.with("ops", format_count(ops));
        }
        if let Some(name) = name {
            spec = spec.with("format", name);
        }
        if let Some(keyspace) = keyspace {
            spec = spec.with("keyspace", keyspace);
        }
        if let Some(family) = family {
            spec = spec.with("family", format_count(family));
        }
        if let Some(items) = scan_length {
            spec = spec.with("scan_length", format_count(items));
        }
        let below = |count: u64| u32::try_from(count).expect("the ranges end below 2^32");
        let choice = Choice::new(family.map_or(0, below), scan_length.map_or(1, below));
        let known = Format::ALL.iter().find(|(known, _)| Some(*known) == name);
        let source = Source::new(file, limit, choice, keyspace, wants_lives);
        let found = source.read(known.map(|(_, format)| *format), open(inputs, file)?, seed)?;
        if !found.is_of_rocksdb && (family.is_some() || scan_length.is_some()) {
            let message = "family and scan_length need a trace of RocksDB";
            return Err(SpecError::conflict(message).into());
        }
        if found.recorded.is_none() && keyspace.is_some() {
            return Err(SpecError::conflict("keyspace needs a recording").into());
        }
        let Found { read: Operations { ops, keys, lives }, damage, recorded, .. } = found;
        let lives = lives.unwrap_or_default();
        Ok(Parts {
            items: keys.len() as u64,
            keys: KeySpace::Named(keys),
            generator: Self { ops, lives, recorded, damage },
            spec,
        })
    }

    /// Returns the life of each write, if lives are played.
    pub(crate) fn lives(&self) -> Arc<[u32]> {
        Arc::clone(&self.lives)
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.ops.len() as u64
    }

    /// Returns the number of operations that load.
    pub(crate) fn load_ops(&self) -> u64 {
        self.ops.iter().take_while(|op| op.kind == TraceOpKind::Load).count() as u64
    }

    /// Returns what a recording says beside its operations.
    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_ref()
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
            TraceOpKind::Load | TraceOpKind::Put => Op::put(item, size),
            TraceOpKind::Delete => Op::delete(item),
            TraceOpKind::Get => Op::read(item),
            TraceOpKind::Combine => Op::combine(item, size),
            TraceOpKind::Update => Op::read_modify_write(item, size),
            TraceOpKind::Scan => Op::scan(item, size),
            TraceOpKind::DeleteRange => Op::delete_range(item..item + u64::from(size)),
        }))
    }
}
