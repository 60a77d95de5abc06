//! The operations of a trace, as they lie in memory.

/// An operation in 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceOp {
    pub(super) kind: TraceOpKind,
    pub(super) item: u32,
    /// The length of the value; of a scan the entries, of a range delete the items.
    pub(super) size: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceOpKind {
    /// Writes a key before all others: it was there when a recording began.
    Load,
    Put,
    Delete,
    Get,
    Combine,
    /// Reads, then writes.
    Update,
    Scan,
    DeleteRange,
}

impl TraceOpKind {
    /// Returns true if the operation writes an entry.
    pub(super) fn writes(self) -> bool {
        !matches!(self, TraceOpKind::Get | TraceOpKind::Scan)
    }
}
