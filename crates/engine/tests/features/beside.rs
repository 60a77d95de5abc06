//! A reader beside the writer.

use crate::run::Run;
use lsmith::{Snapshot, Store};
use std::sync::Arc;

/// A reader, and a snapshot of it with what it showed.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) held: Option<(Snapshot, u64)>,
    pub(crate) store: Option<Store>,
}

impl Run {
    /// Opens a reader or refreshes it: it shows all that was acknowledged, whatever snapshots and
    /// iterators of it live.
    pub(crate) fn look_beside(&mut self) {
        if !self.has(crate::Feature::Reader) {
            return;
        }
        let Beside { held, store } = std::mem::take(&mut self.beside);
        let mut held = held.filter(|_| store.is_some());
        let store = match store {
            Some(store) => {
                let before = store.keyspaces();
                let iterators: Vec<_> = before
                    .iter()
                    .filter_map(|name| store.existing_keyspace(name).ok())
                    .map(|space| space.iter())
                    .collect();
                store.refresh().unwrap();
                drop(iterators);
                store
            }
            None => {
                held = None;
                let dir = self.dir.clone();
                let builder = self.builder(&dir).env(Arc::new(self.env.clone()));
                builder.read_only(true).open().unwrap()
            }
        };
        let mut names: Vec<_> = self.oracle.spaces.iter().map(|space| space.name.clone()).collect();
        names.sort();
        let mut found = store.keyspaces();
        found.sort();
        assert_eq!(found, names, "the keyspaces of a reader");
        self.check_store(&store, u64::MAX);
        let seq = store.snapshot().seq().0;
        // The number of an arrival is not in the log, from which a reader learns numbers.
        if !self.has(crate::Feature::Arrivals) {
            assert_eq!(seq, self.oracle.last, "a reader shows all that was acknowledged");
        }
        // A batch to two keyspaces is seen as a whole; the check above says so.
        if self.dice.chance(40) {
            held = Some((store.snapshot(), seq));
        } else if self.dice.chance(30) {
            held = None;
        }
        let keeps = self.dice.chance(80);
        self.beside = Beside { held, store: keeps.then_some(store) };
    }
}
