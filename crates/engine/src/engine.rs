//! The parts of an open store, put together. `Engine` itself does nothing.

use crate::catalog::Catalog;
use crate::commit::Committer;
use crate::context::Context;
use crate::identity::Identity;
use crate::keyspaces::Keyspaces;
use crate::leases::Position;
use crate::left_out::LeftOut;
use crate::manifest::Manifest;
use crate::merge::Merger;
use crate::record::Record;
use crate::scheduler::Scheduler;
use crate::throttle::Throttle;
use crate::wal::Wal;
use crate::write::WritePath;
use lsmith_storage::log::LogReader;
use lsmith_storage::sync::Mutex;
use std::sync::Arc;

/// What a reader beside a writer has read.
#[derive(Debug)]
pub(crate) struct ReadView {
    /// How far the manifest had come.
    pub(crate) position: Position,
    /// The newest log that was read to its end, with its file id. `None` if there was none, or if
    /// its end was left out.
    pub(crate) newest_log: Option<(u64, LogReader)>,
}

/// The parts of an open store.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) keyspaces: Arc<Keyspaces>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) record: Arc<Record>,
    pub(crate) write_path: WritePath,
    pub(crate) catalog: Catalog,
    /// Who the store is, if its manifest says it.
    pub(crate) identity: Option<Identity>,
    /// The parts of the logs that opening left out.
    pub(crate) left_out: Vec<LeftOut>,
    /// What was read last, in a store that was opened for reading only. Held by a thread that reads
    /// anew.
    pub(crate) view: Mutex<Option<ReadView>>,
}

impl Engine {
    /// Makes the other parts of a store and puts all together.
    pub(crate) fn new(
        context: Arc<Context>,
        manifest: Arc<Manifest>,
        keyspaces: Arc<Keyspaces>,
        wal: Arc<Wal>,
        identity: Option<Identity>,
        left_out: Vec<LeftOut>,
    ) -> Engine {
        let committer = Arc::new(Committer::new(&context, &manifest, &keyspaces));
        let record = Arc::new(Record::new(&context, &keyspaces, &wal));
        let merger = Merger::new(&context, &wal, Throttle::new(&context, &keyspaces));
        let scheduler =
            Arc::new(Scheduler::new(&wal, &manifest, &keyspaces, &committer, merger, &record));
        Engine {
            write_path: WritePath::new(&context, &wal, &committer, &scheduler),
            catalog: Catalog::new(&context, &manifest, &keyspaces, &wal),
            context,
            manifest,
            keyspaces,
            wal,
            scheduler,
            record,
            identity,
            left_out,
            view: Mutex::default(),
        }
    }
}
