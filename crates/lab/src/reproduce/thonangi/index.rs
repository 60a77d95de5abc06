//! What requests are made of.

use anyhow::{Context, bail};
use lsmith_sim::BlockSim;
use lsmith_tree::{EntryKind, Tree};
use lsmith_workload::{Op, OpKind};

/// An index, simulated or real.
pub(super) trait Index {
    /// Makes a request; merges that it causes are done when it is.
    fn write(&mut self, op: &Op) -> anyhow::Result<()>;

    /// Looks at the tree as it is now.
    fn look(&mut self) {}

    /// The tree as it was when last [looked](Index::look) at, or later.
    fn tree(&self) -> &Tree;

    /// The CPU taken so far.
    fn cpu(&self) -> Cpu {
        Cpu::default()
    }
}

/// Processor time. Of a simulation there is none to tell of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cpu {
    /// Seconds for everything, or seconds per megabyte.
    pub(super) all: f64,
    /// Of those, what the policy took to choose what to merge.
    pub(super) choosing: f64,
    /// Of those, what merges took, once chosen.
    pub(super) merging: f64,
}

impl Cpu {
    pub(super) fn since(self, earlier: Cpu) -> Cpu {
        Cpu {
            all: self.all - earlier.all,
            choosing: self.choosing - earlier.choosing,
            merging: self.merging - earlier.merging,
        }
    }

    pub(super) fn per(self, megabytes: f64) -> Cpu {
        Cpu {
            all: self.all / megabytes,
            choosing: self.choosing / megabytes,
            merging: self.merging / megabytes,
        }
    }

    /// The share that choosing has, in percent.
    pub(super) fn choosing_percent(self) -> f64 {
        self.choosing / self.all * 100.0
    }
}

impl Index for BlockSim {
    fn write(&mut self, op: &Op) -> anyhow::Result<()> {
        let kind = match op.kind {
            OpKind::Insert => EntryKind::Insert,
            OpKind::Remove => EntryKind::Remove,
            other => bail!("a simulation in blocks only inserts and removes: no {other:?}"),
        };
        let key = u32::try_from(op.item).context("keys are 4 bytes")?;
        Ok(BlockSim::write(self, kind, key)?)
    }

    fn tree(&self) -> &Tree {
        BlockSim::tree(self)
    }
}
