//! The suite that openraft has for stores.

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use raft_kv::Types;
use raft_kv::log_store::LogStore;
use raft_kv::state_machine::StateMachine;
use tempfile::TempDir;

struct Dirs;

impl StoreBuilder<Types, LogStore, StateMachine, TempDir> for Dirs {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<Types>> {
        let dir = tempfile::tempdir().unwrap();
        let log = LogStore::open(&lsmith::Store::builder(dir.path().join("log"))).unwrap();
        let machine = StateMachine::open(dir.path()).unwrap();
        Ok((dir, log, machine))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openraft_finds_nothing_wrong_with_the_stores() {
    Suite::test_all(Dirs).await.unwrap();
}
