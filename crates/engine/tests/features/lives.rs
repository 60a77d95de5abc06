//! The ends of lives: closing, power loss, repair; and copies.

use crate::Feature::{Expiry, Filter, Operator};
use crate::beside::Beside;
use crate::operator::Append;
use crate::oracle::Oracle;
use crate::run::Run;
use lsmith::env::Loss;
use lsmith::{PersistMode, RepairOptions, repair};
use std::sync::Arc;

impl Run {
    /// Lets go of all that keeps the store open.
    fn let_go(&mut self) {
        self.check_feed();
        self.held.clear();
        self.feed = None;
        self.beside = Beside::default();
    }

    pub(crate) fn reopen(&mut self) {
        self.let_go();
        self.store = None;
        self.check_recording(true);
        if self.has(Expiry) && self.dice.chance(30) {
            self.open_without_a_clock();
        }
        self.open();
        self.oracle.synced = self.oracle.last;
        assert_eq!(self.last(), self.oracle.last, "a clean end loses nothing");
        self.check_all();
    }

    /// Somebody opens the store without its clock. Either that is refused, or nothing is lost.
    fn open_without_a_clock(&mut self) {
        let env = self.files();
        let builder = lsmith::Store::builder(&self.dir).env(env).operator(Append);
        if let Ok(store) = builder.lockstep(true).open() {
            for name in store.keyspaces() {
                let _may_fail = store.existing_keyspace(&name).and_then(|space| space.merge());
            }
        }
    }

    /// Power fails while the store is open.
    pub(crate) fn lose_power(&mut self) {
        self.let_go();
        let seed = self.dice.number();
        let losses = [
            Loss::Nothing,
            Loss::Everything,
            Loss::Parts { keep: 0.5 },
            Loss::Torn { logs: false },
            Loss::Later,
            Loss::Earlier,
        ];
        let disk = self.env.power_loss(seed, *self.dice.pick(&losses));
        self.store = None;
        self.env = disk;
        self.check_recording(false);
        self.checkpoints.clear();
        self.open();
        let found = self.last();
        let (synced, last) = (self.oracle.synced, self.oracle.last);
        assert!(found >= synced, "write {synced} was synced, found {found}");
        assert!(found <= last, "write {found} was never made, {last} was the last");
        self.oracle.cut(found);
        self.check_all();
        self.check_health();
    }

    /// A repair of a store without damage is a copy.
    pub(crate) fn repair(&mut self) {
        self.let_go();
        self.store = None;
        self.check_recording(true);
        let to = format!("{}r", self.dir);
        let mut options = RepairOptions { env: self.files(), ..RepairOptions::default() };
        options.operators.add(Arc::new(Append));
        let report = repair(&options, &self.dir, &to).unwrap();
        assert!(report.is_exact(), "{:?}", report.findings);
        self.dir = to;
        self.open();
        self.check_all();
        let (last, now) = (self.last(), self.now());
        if self.has(Filter) {
            self.note_what_the_filter_did();
        }
        self.oracle.collapse(last, now);
        self.check_all();
    }

    /// The repaired store has what the filter has made so far, and no more.
    fn note_what_the_filter_did(&mut self) {
        use crate::oracle::{Version, What};
        for at in 0..self.oracle.spaces.len() {
            let id = self.oracle.spaces[at].id;
            let found = crate::reads::content(&self.space(id));
            let space = self.oracle.space(id);
            for (key, versions) in &mut space.versions {
                let number = versions.iter().map(|version| version.number).max().unwrap_or(0) + 1;
                let newest = versions.iter().max_by_key(|version| version.number);
                let time = match newest.map(|version| &version.what) {
                    Some(What::Put(_, time)) => *time,
                    _ => None,
                };
                let what = match found.get(key) {
                    Some(value) => What::Put(value.clone(), time),
                    None => What::Delete,
                };
                versions.push(Version { number, since: 0, what });
            }
        }
    }

    pub(crate) fn make_checkpoint(&mut self) {
        if self.checkpoints.len() > 2 {
            return self.check_checkpoints();
        }
        let dir =
            format!("{}-copy-{}", self.dir, self.oracle.last * 100 + self.dice.below(100) as u64);
        match self.store().checkpoint(&dir) {
            Ok(_) => self.checkpoints.push((dir, self.oracle.clone())),
            Err(error) => assert!(error.to_string().contains("empty"), "{error}"),
        }
    }

    /// Each copy shows what the store held when it was made, whatever the store did since.
    pub(crate) fn check_checkpoints(&mut self) {
        for (dir, oracle) in std::mem::take(&mut self.checkpoints) {
            let store = self.builder(&dir).open().unwrap();
            let own: Oracle = std::mem::replace(&mut self.oracle, oracle);
            self.check_store(&store, u64::MAX);
            // It lives on, and the store does not see it.
            for space in &self.oracle.spaces {
                let space = store.existing_keyspace(&space.name).unwrap();
                self.keys.iter().for_each(|key| space.delete(key).unwrap());
            }
            store.flush().unwrap();
            store.persist(PersistMode::SyncData).unwrap();
            self.oracle = own;
        }
        let _combines = self.has(Operator);
        self.check_store(self.store(), u64::MAX);
    }
}
