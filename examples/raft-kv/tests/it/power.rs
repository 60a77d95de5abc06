//! What was promised survives power loss, on a disk in memory.

use lsmith::Store;
use lsmith::env::{Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::vote::RaftLeaderId;
use openraft::{EntryPayload, alias::LeaderIdOf};
use raft_kv::log_store::LogStore;
use raft_kv::state_machine::State;
use raft_kv::{Command, Entry, LogId, Types, Vote};
use std::io;
use std::sync::Arc;

const LOSSES: [Loss; 5] = [
    Loss::Nothing,
    Loss::Everything,
    Loss::Parts { keep: 0.5 },
    Loss::Torn { logs: false },
    Loss::Later,
];

fn open(env: Arc<dyn Env>) -> LogStore {
    LogStore::open(&Store::builder("/log").memtable_bytes(16 << 10).env(env)).unwrap()
}

fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(LeaderIdOf::<Types>::new(term, 1).to_committed(), index)
}

fn entry(term: u64, index: u64) -> Entry {
    let command = Command::Put { key: format!("{}", index % 7), value: format!("{term}-{index}") };
    Entry::new(log_id(term, index), EntryPayload::Normal(command))
}

/// Appends, and returns once the log says that the entries are safe, or that they are not.
async fn append(log: &mut LogStore, entries: Vec<Entry>) -> io::Result<()> {
    let (done, synced) = Types::oneshot();
    log.append(entries, IOFlushed::signal(done)).await?;
    synced.await.unwrap()
}

/// What the log was asked for and has confirmed.
#[derive(Clone, Default)]
struct Promised {
    vote: Option<Vote>,
    purged: Option<LogId>,
    /// The entries that are left, in their order.
    entries: Vec<Entry>,
}

impl Promised {
    fn next(&self) -> u64 {
        let last = self.entries.last().map(|entry| entry.index());
        last.or(self.purged.map(|purged| purged.index())).map_or(0, |last| last + 1)
    }

    /// Does something to the log.
    async fn step(&mut self, log: &mut LogStore, random: &mut fastrand::Rng, term: u64) {
        match random.u32(..10) {
            0 => {
                let vote = Vote::new(term, random.u64(1..4));
                log.save_vote(&vote).await.unwrap();
                self.vote = Some(vote);
            }
            1 if !self.entries.is_empty() => {
                let kept = random.usize(..self.entries.len());
                let last = kept.checked_sub(1).map(|last| self.entries[last].log_id());
                log.truncate_after(last.or(self.purged)).await.unwrap();
                self.entries.truncate(kept);
            }
            2 if self.entries.len() > 1 => {
                let gone = random.usize(1..self.entries.len());
                let last = self.entries[gone - 1].log_id();
                log.purge(last).await.unwrap();
                self.entries.drain(..gone);
                self.purged = Some(last);
            }
            _ => {
                let first = self.next();
                let count = random.u64(1..5);
                let entries: Vec<Entry> =
                    (first..first + count).map(|index| entry(term, index)).collect();
                append(log, entries.clone()).await.unwrap();
                self.entries.extend(entries);
            }
        }
    }

    /// Panics if `log` lacks what was promised. Purged entries may be back.
    async fn check(&mut self, log: &mut LogStore, when: &str) {
        assert_eq!(log.read_vote().await.unwrap(), self.vote, "{when}");
        let state = log.get_log_state().await.unwrap();
        let last = self.entries.last().map(|entry| entry.log_id()).or(self.purged);
        assert!(state.last_purged_log_id <= self.purged, "{when}");
        assert_eq!(state.last_log_id, last, "{when}");
        let first = self.purged.map_or(0, |purged| purged.index() + 1);
        let found = log.try_get_log_entries(first..).await.unwrap();
        assert_eq!(found, self.entries, "{when}");
        // All that is there is one piece, right behind what it says is purged.
        let all = log.try_get_log_entries(..).await.unwrap();
        let behind = state.last_purged_log_id.map_or(0, |purged| purged.index() + 1);
        assert!(all.first().is_none_or(|entry| entry.index() == behind), "{when}");
        self.purged = state.last_purged_log_id;
        self.entries = all;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_log_confirmed_survives_power_loss() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = MemEnv::new();
        let mut promised = Promised::default();
        for life in 1..6 {
            let mut log = open(Arc::new(disk.clone()));
            promised.check(&mut log, &format!("seed {seed}, life {life}")).await;
            for _ in 0..random.u32(1..30) {
                promised.step(&mut log, &mut random, life).await;
            }
            let loss = *random.choice(&LOSSES).unwrap();
            disk = disk.power_loss(random.u64(..), loss);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_sync_fails_is_not_confirmed() {
    let env = FaultEnv::new(Arc::new(MemEnv::new()));
    let mut log = open(Arc::new(env.clone()));
    append(&mut log, vec![entry(1, 0)]).await.unwrap();
    env.set(Fault {
        class: Some(OpClass::LogSync),
        after: 0,
        lasting: Lasting::Forever,
        kind: io::ErrorKind::Other,
    });
    append(&mut log, vec![entry(1, 1)]).await.unwrap_err();
    log.save_vote(&Vote::new(2, 2)).await.unwrap_err();
}

/// The value that key `key` has once the commands up to `index` are applied.
fn value_at(key: u64, index: u64) -> Option<String> {
    let last = (0..=index).rev().find(|index| index % 7 == key)?;
    Some(format!("1-{last}"))
}

#[test]
fn the_state_holds_exactly_the_entries_that_it_says() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = MemEnv::new();
        let open = |disk: &MemEnv| {
            let builder = Store::builder("/state").memtable_bytes(16 << 10);
            State::of(builder.env(Arc::new(disk.clone())).open().unwrap()).unwrap()
        };
        for life in 1..6 {
            let state = open(&disk);
            let (last, members) = state.applied().unwrap();
            let next = match last {
                Some(last) => {
                    for key in 0..7 {
                        let value = state.get(&key.to_string()).unwrap();
                        let expected = value_at(key, last.index());
                        assert_eq!(value, expected, "seed {seed}, life {life}, key {key}");
                    }
                    last.index() + 1
                }
                None => 0,
            };
            for index in next..next + random.u64(1..40) {
                let EntryPayload::Normal(command) = entry(1, index).payload else { panic!() };
                state.apply(Some(&command), &(Some(log_id(1, index)), members.clone())).unwrap();
            }
            disk = disk.power_loss(random.u64(..), *random.choice(&LOSSES).unwrap());
        }
    }
}
