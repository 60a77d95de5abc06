//! What a run costs the reads that the tree has counted.

use crate::ParamInfo;
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::TreeView;

/// The parameter that asks for prices from reads, with its value.
pub(crate) const FROM_READS: (&str, &str) = ("price", "reads");

/// The written bytes that cost as much as one run does in a lookup, and in a range read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPrice {
    pub(crate) get: u64,
    pub(crate) scan: u64,
}

impl ReadPrice {
    /// What they cost if all blocks are in memory: 48 ns for a filter and 860 ns for a seek, where
    /// a merge takes 2 ns for each byte that it writes.
    pub(crate) const IN_MEMORY: ReadPrice = ReadPrice { get: 24, scan: 430 };

    /// The parameter `get` with its usual default.
    pub(crate) const GET: ParamInfo = ParamInfo {
        name: "get",
        default: "24",
        meaning: "with price=reads: written bytes that cost as much as one run in a lookup",
    };

    /// The parameter `scan` with its usual default.
    pub(crate) const SCAN: ParamInfo = ParamInfo {
        name: "scan",
        default: "430",
        meaning: "with price=reads: written bytes that cost as much as one run in a range read",
    };

    /// Reads `get` and `scan`, whose defaults are in `usual`. `None` unless the parameter `asking`
    /// has its value.
    ///
    /// # Errors
    /// Fails if a value is out of range, or if `get` or `scan` is given without `asking`.
    pub(crate) fn read(
        params: &Params<'_>,
        asking: (&str, &str),
        usual: ReadPrice,
    ) -> Result<Option<ReadPrice>, SpecError> {
        let (name, value) = asking;
        if params.text(name) == Some(value) {
            let bytes = 0..=1 << 40;
            let get = params.bytes("get", usual.get, bytes.clone())?;
            return Ok(Some(ReadPrice { get, scan: params.bytes("scan", usual.scan, bytes)? }));
        }
        if params.has("get") || params.has("scan") {
            let message = format!("get and scan say what reads cost: they need {name}={value}");
            return Err(SpecError::conflict(message));
        }
        Ok(None)
    }

    /// Returns `spec` with what is not as in `usual`.
    pub(crate) fn write(self, spec: Spec, usual: ReadPrice) -> Spec {
        let bytes = |spec: Spec, name, bytes, usual| match bytes == usual {
            true => spec,
            false => spec.with(name, format_bytes(bytes)),
        };
        let spec = bytes(spec, "get", self.get, usual.get);
        bytes(spec, "scan", self.scan, usual.scan)
    }

    /// Returns what a run costs while a memtable is written, in flushes of `unit` bytes. `None`
    /// until reads were counted for one memtable.
    pub(crate) fn at(self, view: &TreeView, unit: f64) -> Option<f64> {
        if view.tree.reads().memtables == 0 {
            return None;
        }
        let reads = view.tree.reads().per_memtable();
        let gets = (reads.found + reads.absent) * self.get as f64;
        Some((gets + reads.scans * self.scan as f64) / unit)
    }
}
