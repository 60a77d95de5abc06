//! The parts of an open store, put together. `Engine` itself does nothing.

use crate::catalog::Catalog;
use crate::commit::Committer;
use crate::context::Context;
use crate::keyspaces::Keyspaces;
use crate::left_out::LeftOut;
use crate::manifest::Manifest;
use crate::merge::Merger;
use crate::scheduler::Scheduler;
use crate::throttle::Throttle;
use crate::wal::Wal;
use crate::write::WritePath;
use std::sync::Arc;

/// The parts of an open store.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) keyspaces: Arc<Keyspaces>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) write_path: WritePath,
    pub(crate) catalog: Catalog,
    /// The parts of the logs that opening left out.
    pub(crate) left_out: Vec<LeftOut>,
}

impl Engine {
    /// Makes the other parts of a store and puts all together.
    pub(crate) fn new(
        context: Arc<Context>,
        manifest: Arc<Manifest>,
        keyspaces: Arc<Keyspaces>,
        wal: Arc<Wal>,
        left_out: Vec<LeftOut>,
    ) -> Engine {
        let committer = Arc::new(Committer::new(&context, &manifest, &keyspaces));
        let merger = Merger::new(&context, &wal, Throttle::new(&context, &keyspaces));
        let scheduler =
            Arc::new(Scheduler::new(&wal, &manifest, &keyspaces, &committer, merger, &context));
        Engine {
            write_path: WritePath::new(&context, &wal, &committer, &scheduler),
            catalog: Catalog::new(&context, &manifest, &keyspaces, &wal),
            context,
            manifest,
            keyspaces,
            wal,
            scheduler,
            left_out,
        }
    }
}
