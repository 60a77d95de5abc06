//! The index that requests go to, simulated or real.

use anyhow::{Context, bail};
use lsmith_sim::BlockSim;
use lsmith_tree::{EntryKind, Tree};
use lsmith_workload::{Op, OpKind};

/// A simulated or real index.
pub(super) trait Index {
    /// Makes a request and runs all merges that it causes.
    fn write(&mut self, op: &Op) -> anyhow::Result<()>;

    /// Updates the copy of the tree.
    fn look(&mut self) {}

    /// Returns the tree at the last [`look`](Index::look), or later.
    fn tree(&self) -> &Tree;

    /// Returns the CPU time so far.
    fn cpu(&self) -> Cpu {
        Cpu::default()
    }
}

/// CPU time. It is 0 for simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cpu {
    /// The total, in seconds or in seconds per megabyte.
    pub(super) all: f64,
    /// The part in which the policy chooses plans.
    pub(super) choosing: f64,
    /// The part in which merges run.
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

    /// Returns the share of choosing, in percent.
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
