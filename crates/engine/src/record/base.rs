//! The keys that are there when a recording begins, read piece by piece.

use super::note::{note, user_key};
use crate::context::Context;
use crate::keyspace::KeyspaceShared;
use crate::keyspaces::Keyspaces;
use crate::recorder::Picked;
use crate::snapshots::SnapshotGuard;
use crate::version::Version;
use bytes::Bytes;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::Result;
use lsmith_storage::expiry::expires_at;
use lsmith_storage::read::VisibleIter;
use lsmith_storage::table::ReadTally;
use lsmith_tree::{EntryKind, KeyRange};
use std::ops::Bound;
use std::sync::Arc;

/// Entries that are looked at in one piece: some milliseconds.
const PIECE_ENTRIES: usize = 10_000;

/// What is left of a base.
#[derive(Debug)]
pub(super) struct Base {
    /// Dropped before the versions.
    snapshot: SnapshotGuard,
    /// The trees that are left, with what they held.
    trees: Vec<(Arc<KeyspaceShared>, Arc<Version>)>,
    /// The last key of the last tree that was looked at.
    behind: Option<Bytes>,
}

impl Base {
    /// Returns all that is there now. The caller keeps writers out.
    pub(super) fn new(context: &Context, keyspaces: &Keyspaces) -> Base {
        let snapshot = context.take_snapshot();
        let trees = keyspaces.all().into_iter().map(|keyspace| {
            let version = keyspace.version.load_full();
            (keyspace, version)
        });
        Base { snapshot, trees: trees.collect(), behind: None }
    }

    /// Records the picked keys of the next piece. Returns false if nothing is left.
    ///
    /// # Errors
    /// As a range read.
    pub(super) fn read_piece(&mut self, context: &Context) -> Result<bool> {
        let Some((keyspace, version)) = self.trees.last() else { return Ok(false) };
        let tally = Arc::new(ReadTally::default());
        let lower = self.behind.take().map_or(Bound::Unbounded, Bound::Excluded);
        let cursor = version.cursor_within(None, || KeyRange::ALL, &tally);
        let entries = VisibleIter::new(cursor, self.snapshot.seq(), lower, Bound::Unbounded);
        let entries = entries.combining(version.rules.combiner()).hiding(version.hidden());
        let mut entries = entries.reading(version.value_reader());
        // The last key, empty at the end.
        let mut last = Vec::new();
        for _ in 0..PIECE_ENTRIES {
            let Some(entry) = entries.next_ref() else {
                last.clear();
                break;
            };
            let (key, value) = match entry {
                // An operator that fails for a key takes no other key with it.
                Err(error) if error.key().is_some() => {
                    last = error.key().unwrap_or_default().to_vec();
                    break;
                }
                entry => entry?,
            };
            last.clear();
            last.extend_from_slice(key);
            let bytes = value.len();
            let user = user_key(keyspace, &last);
            if context.recorder.wants(user) {
                let entry = entries.cursor().entry().filter(|entry| entry.key == last);
                let entry = entry.filter(|entry| entry.kind == EntryKind::Expiring);
                let end = entry.map(|entry| expires_at(entry.value));
                let life = end.and_then(|time| keyspace.rules.micros_until(time));
                let picked = match life {
                    Some(life) => Picked::BaseUntil(user, bytes, life),
                    None => Picked::Base(user, bytes),
                };
                note(context, keyspace, &last, &picked);
            }
        }
        if last.is_empty() {
            self.trees.pop();
        } else {
            self.behind = Some(Bytes::from(last));
        }
        Ok(true)
    }
}
