//! Snapshots.

use crate::error::{call, given, lsmith_error_t, quietly};
use crate::store::lsmith_t;
use lsmith::Snapshot;

/// What the store held at one moment.
#[derive(Debug)]
pub struct lsmith_snapshot_t(pub(crate) Snapshot);

/// Returns what the store holds now.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_create_snapshot(
    store: Option<&lsmith_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_snapshot_t>> {
    call(error, None, || Ok(Some(Box::new(lsmith_snapshot_t(given(store, "store")?.0.snapshot())))))
}

/// Destroys a snapshot. Until then the store keeps what it shows.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_release_snapshot(snapshot: Option<Box<lsmith_snapshot_t>>) {
    quietly((), || drop(snapshot));
}

/// Returns the sequence number of the newest write that a snapshot shows.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_snapshot_get_sequence_number(snapshot: Option<&lsmith_snapshot_t>) -> u64 {
    snapshot.map_or(0, |snapshot| snapshot.0.seq().0)
}
