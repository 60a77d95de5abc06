//! Merging threads in simulated time.

use super::machine::{Machine, Speed};
use crate::drive::{Drive, UnderWay};
use crate::keyed::KeyedContent;
use crate::{Observer, SimError};
use lsmith_policy::back_pressure::BackPressure;
use lsmith_policy::{Duty, Load, Turn};
use lsmith_tree::{MergePlan, Mode, Size, check_plan};

/// A merging thread.
#[derive(Debug)]
struct Thread {
    duty: Duty,
    work: Option<Work>,
}

/// What a thread does.
#[derive(Debug)]
struct Work {
    plan: UnderWay,
    /// Nanoseconds of work that are left, if the thread were alone.
    cpu: f64,
    /// Nanoseconds of waiting for the device that are left, once no CPU is.
    wait: f64,
}

/// The merging threads of a store.
#[derive(Debug)]
pub(super) struct Threads {
    machine: Machine,
    threads: Vec<Thread>,
    /// Work of folds of memory, which the next plan does.
    fold_nanos: f64,
    /// Logical bytes that were sealed since the tree was last at rest.
    owed_bytes: u64,
    /// Nanoseconds of CPU that merges took so far.
    pub(super) cpu_nanos: f64,
    /// True once nothing is left to do, until something is sealed.
    at_rest: bool,
}

impl Threads {
    pub(super) fn new(machine: Machine, count: usize) -> Threads {
        let thread = |index| Thread { duty: Duty::of(index, count), work: None };
        let threads = (0..count).map(thread).collect();
        Threads { machine, threads, fold_nanos: 0.0, owed_bytes: 0, cpu_nanos: 0.0, at_rest: true }
    }

    /// Notes that a memtable of `size` was sealed. If it `folds`, it becomes one run with memory.
    pub(super) fn sealed(&mut self, size: Size, folds: bool) {
        self.owed_bytes += size.bytes;
        if folds {
            self.fold_nanos += self.machine.fold * size.entries as f64;
        }
        self.at_rest = false;
    }

    /// Returns true if nothing is left to do.
    pub(super) fn is_at_rest(&self) -> bool {
        self.at_rest
    }

    /// Returns the number of threads that use a core.
    pub(super) fn running(&self) -> usize {
        self.works().filter(|work| work.cpu > 0.0).count()
    }

    fn works(&self) -> impl Iterator<Item = &Work> {
        self.threads.iter().filter_map(|thread| thread.work.as_ref())
    }

    /// Returns the nanoseconds until the first thread ends a piece of its work, or `None` if no
    /// thread works.
    pub(super) fn next_end(&self, speed: Speed) -> Option<f64> {
        let ends = self.works().map(|work| match work.cpu > 0.0 {
            true => work.cpu / speed.work,
            false => work.wait,
        });
        ends.reduce(f64::min)
    }

    /// Lets `nanos` pass.
    pub(super) fn pass(&mut self, nanos: f64, speed: Speed) {
        for work in self.threads.iter_mut().filter_map(|thread| thread.work.as_mut()) {
            if work.cpu > 0.0 {
                work.cpu -= nanos * speed.work;
                // What is left by a rounding error would take a step of its own.
                work.cpu = if work.cpu < 1e-3 { 0.0 } else { work.cpu };
                self.cpu_nanos += nanos * speed.share;
            } else {
                work.wait -= nanos;
            }
        }
    }

    /// Commits the plans whose work is done. Returns true if there were any.
    pub(super) fn commit(
        &mut self,
        drive: &mut Drive<KeyedContent>,
        observe: &mut Observer<'_>,
    ) -> Result<bool, SimError> {
        let mut any = false;
        for thread in &mut self.threads {
            let done = thread.work.take_if(|work| work.cpu <= 0.0 && work.wait <= 1e-3);
            if let Some(Work { plan, .. }) = done {
                drive.end(plan, observe)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Gives every idle thread a plan, as the store does.
    pub(super) fn start(&mut self, drive: &mut Drive<KeyedContent>) -> Result<(), SimError> {
        if self.at_rest {
            return Ok(());
        }
        for index in 0..self.threads.len() {
            if self.threads[index].work.is_some() {
                continue;
            }
            if let Some(plan) = self.next_plan(drive, self.threads[index].duty) {
                let plan = drive.begin(plan)?;
                let (cpu, wait) = self.cost(&plan);
                self.threads[index].work = Some(Work { plan, cpu, wait });
            }
        }
        if self.threads.iter().all(|thread| thread.work.is_none()) {
            self.at_rest = true;
            self.owed_bytes = 0;
            drive.rest();
        }
        Ok(())
    }

    fn next_plan(&self, drive: &Drive<KeyedContent>, duty: Duty) -> Option<MergePlan> {
        let view = drive.view();
        let needs = drive.policy().needs();
        let flush = || {
            let plan = drive.flush_left()?;
            check_plan(view, &plan).is_ok().then_some(plan)
        };
        let waits = needs.appends && self.works().next().is_some();
        let proposed = drive.propose().or_else(|| if waits { None } else { flush() });
        let turn =
            Turn { view, duty, waiting_memtables: waiting(drive).0, has_turns: needs.appends };
        turn.plan(proposed, |plan| plan, flush)
    }

    /// Returns the nanoseconds of CPU that `plan` takes, and those for which it then waits.
    fn cost(&mut self, UnderWay { plan, outcome, new_slices }: &UnderWay) -> (f64, f64) {
        let Machine { flush, merge, append, sync, .. } = self.machine;
        let files = 0.5 * (1 + (*new_slices).max(1)) as f64;
        let own = self.machine.plan * files + std::mem::take(&mut self.fold_nanos);
        if plan.mode != Mode::Merge {
            return (own, 0.0);
        }
        let memory = outcome.from_memory;
        let read = outcome.read.entries.saturating_sub(outcome.reused.entries);
        let written = outcome.written.bytes as f64;
        let entries = if plan.makes_append() {
            append.nanos((memory.entries + read) as f64, written)
        } else {
            let read_bytes = outcome.read.bytes.saturating_sub(outcome.reused.bytes);
            let all = (memory.bytes + read_bytes).max(1) as f64;
            let from_memory = written * memory.bytes as f64 / all;
            let of_memory = flush.nanos(memory.entries as f64, from_memory);
            of_memory + merge.nanos(read as f64, written - from_memory)
        };
        (own + entries, sync.each * files + sync.part * written)
    }

    /// Returns how hard writers are held back.
    pub(super) fn back_pressure(&self, drive: &Drive<KeyedContent>) -> (BackPressure, usize) {
        let (waiting_memtables, waiting_bytes) = waiting(drive);
        let load = Load { waiting_memtables, owed_bytes: self.owed_bytes };
        let view = drive.view();
        let of_policy = |load: &Load| drive.policy().pressure(view, load);
        let pressure = BackPressure::of(&load, waiting_bytes, view.memtable_bytes, of_policy);
        (pressure, waiting_memtables)
    }
}

/// Returns the number and the bytes of the sealed memtables that have not left memory. Under a
/// policy that counts in blocks the oldest of them, into which the others are folded, does not
/// wait.
fn waiting(drive: &Drive<KeyedContent>) -> (usize, u64) {
    let memory = drive.tree().memory().runs();
    let stays = usize::from(drive.policy().needs().blocks);
    let waiting = &memory[..memory.len().saturating_sub(stays)];
    (waiting.len(), waiting.iter().map(|run| run.bytes()).sum())
}
