//! What a run costs the reads that the tree has counted.

use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::TreeView;

/// The written bytes that cost as much as one run does in a lookup, and in a range read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReadPrice {
    pub(crate) get: u64,
    pub(crate) scan: u64,
}

impl ReadPrice {
    /// Reads `get` and `scan`, whose defaults are in `usual`. `None` without `price=reads`.
    ///
    /// # Errors
    /// Fails if a value is out of range, or if `get` or `scan` is given without `price=reads`.
    pub(crate) fn read(
        params: &Params<'_>,
        usual: ReadPrice,
    ) -> Result<Option<ReadPrice>, SpecError> {
        if params.text("price") == Some("reads") {
            let bytes = 0..=1 << 40;
            let get = params.bytes("get", usual.get, bytes.clone())?;
            return Ok(Some(ReadPrice { get, scan: params.bytes("scan", usual.scan, bytes)? }));
        }
        if params.has("get") || params.has("scan") {
            let message = "get and scan say what reads cost: they need price=reads";
            return Err(SpecError::conflict(message));
        }
        Ok(None)
    }

    /// Returns `spec` with `price=reads`, and with what is not as in `usual`.
    pub(crate) fn write(self, spec: Spec, usual: ReadPrice) -> Spec {
        let bytes = |spec: Spec, name, bytes, usual| match bytes == usual {
            true => spec,
            false => spec.with(name, format_bytes(bytes)),
        };
        let spec = bytes(spec.with("price", "reads"), "get", self.get, usual.get);
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
