//! A reader beside the writer.

use crate::meeting::Meeting;
use crate::oracle::{Fed, Oracle, Space, What};
use crate::run::Run;
use crate::scripted::Scripted;
use lsmith::{Batch, PersistMode, Snapshot, Store};
use std::sync::Arc;

/// A reader, and a snapshot of it with what it showed.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) held: Option<(Snapshot, u64)>,
    pub(crate) store: Option<(Store, Scripted<Meeting>)>,
}

/// What the writer does while the reader looks at the disk: it makes a keyspace, if it likes, and
/// writes one batch to all keyspaces.
struct Meanwhile {
    /// The oracle before all that.
    before: Oracle,
    /// The name of the new keyspace.
    new: Option<String>,
    changes: Vec<Fed>,
}

impl Run {
    /// Opens a reader or refreshes it: it shows all that was acknowledged, whatever snapshots and
    /// iterators of it live.
    pub(crate) fn look_beside(&mut self) {
        if !self.has(crate::Feature::Reader) {
            return;
        }
        if self.dice.chance(40) {
            self.write_while_it_looks();
        }
        let Beside { held, store } = std::mem::take(&mut self.beside);
        let mut held = held.filter(|_| store.is_some());
        let (store, disk) = self.looked(store);
        self.check_names(&store);
        self.check_store(&store, u64::MAX);
        let seq = store.snapshot().seq().0;
        // The number of an ingest or a clearing is not in the log, and a reader learns it from the
        // keyspace alone.
        if !self.has(crate::Feature::Arrivals) && !self.has(crate::Feature::Names) {
            assert_eq!(seq, self.oracle.last, "a reader shows all that was acknowledged");
        }
        if self.dice.chance(40) {
            held = Some((store.snapshot(), seq));
        } else if self.dice.chance(30) {
            held = None;
        }
        let keeps = self.dice.chance(80);
        self.beside = Beside { held, store: keeps.then_some((store, disk)) };
    }

    /// Returns a reader that was opened or refreshed just now.
    fn looked(&mut self, open: Option<(Store, Scripted<Meeting>)>) -> (Store, Scripted<Meeting>) {
        let Some((store, disk)) = open else {
            let disk = Meeting::over(self.env.clone());
            return (self.open_beside(&disk), disk);
        };
        let before = store.keyspaces();
        let iterators: Vec<_> = before
            .iter()
            .filter_map(|name| store.existing_keyspace(name).ok())
            .map(|space| space.iter())
            .collect();
        store.refresh().unwrap();
        drop(iterators);
        (store, disk)
    }

    fn open_beside(&mut self, disk: &Scripted<Meeting>) -> Store {
        let dir = self.dir.clone();
        self.builder(&dir).env(Arc::new(disk.clone())).read_only(true).open().unwrap()
    }

    fn check_names(&self, reader: &Store) {
        let mut names: Vec<_> = self.oracle.spaces.iter().map(|space| space.name.clone()).collect();
        names.sort();
        let mut found = reader.keyspaces();
        found.sort();
        assert_eq!(found, names, "the keyspaces of a reader");
    }

    /// While the reader opens or refreshes, the writer may make a keyspace, and it writes one batch
    /// to all keyspaces. The reader shows the whole batch or nothing.
    fn write_while_it_looks(&mut self) {
        let open = self.beside.store.take();
        let disk =
            open.as_ref().map_or_else(|| Meeting::over(self.env.clone()), |open| open.1.clone());
        let meanwhile = self.act_while_it_looks(&disk);
        let reader = match open {
            Some((store, _)) => {
                store.refresh().unwrap();
                store
            }
            None => self.open_beside(&disk),
        };
        if !disk.call_off() {
            self.check_meeting(&reader, meanwhile);
        }
        self.beside.store = Some((reader, disk));
    }

    /// Has the writer act after some looks at `disk`. Returns what it will do.
    fn act_while_it_looks(&mut self, disk: &Scripted<Meeting>) -> Meanwhile {
        let new = ["left", "right", "third", "moved"]
            .into_iter()
            .find(|name| self.oracle.spaces.iter().all(|space| space.name != *name))
            .filter(|_| self.oracle.spaces.len() < 4 && self.dice.chance(50))
            .map(str::to_string);
        let mut ids: Vec<u64> = self.oracle.spaces.iter().map(|space| space.id).collect();
        ids.extend(new.iter().map(|_| self.ids + 1));
        let time = self.put_time().filter(|_| self.has(crate::Feature::Expiry));
        let mut changes = vec![];
        for id in ids {
            // No filter drops or changes it.
            let value = [b"v", &self.value()[..]].concat();
            changes.push(Fed::Key(id, self.key(), What::Put(value, time)));
        }
        let names = self.oracle.spaces.iter().map(|space| space.name.clone());
        let names: Vec<String> = names.chain(new.clone()).collect();
        let (store, options) = (self.store().clone(), self.space_options());
        let (written, makes, flushes) = (changes.clone(), new.clone(), self.dice.chance(30));
        disk.after(self.dice.below(8), move || {
            if let Some(name) = &makes {
                store.keyspace_with(name, &options).unwrap();
            }
            let mut batch = Batch::new();
            for (name, change) in names.iter().zip(&written) {
                let Fed::Key(_, key, What::Put(value, _)) = change else { unreachable!("puts") };
                batch.put(&store.existing_keyspace(name).unwrap(), key, value);
            }
            store.write(batch, PersistMode::Buffer).unwrap();
            if flushes {
                store.flush().unwrap();
            }
        });
        Meanwhile { before: self.oracle.clone(), new, changes }
    }

    /// Notes what the writer has done, and checks that `reader` shows all of it or nothing.
    fn check_meeting(&mut self, reader: &Store, meanwhile: Meanwhile) {
        let Meanwhile { before, new, changes } = meanwhile;
        let mut empty = before.clone();
        if let Some(name) = &new {
            self.ids += 1;
            empty.spaces.push(Space::new(self.ids, name));
            self.oracle = empty.clone();
            self.oracle.synced = self.oracle.last;
        }
        let last = self.last();
        let Fed::Key(first, key, What::Put(value, _)) = &changes[0] else { unreachable!("puts") };
        let first = before.spaces.iter().find(|space| space.id == *first).unwrap().name.clone();
        let found = reader.existing_keyspace(&first).unwrap().get(key).unwrap();
        let shows_it = found.as_deref() == Some(&value[..]);
        self.oracle.apply(changes, last);
        let shown = match new {
            _ if shows_it => self.oracle.clone(),
            Some(name) if reader.keyspaces().contains(&name) => empty,
            _ => before,
        };
        let all = std::mem::replace(&mut self.oracle, shown);
        self.check_names(reader);
        self.check_store(reader, u64::MAX);
        self.oracle = all;
    }
}
