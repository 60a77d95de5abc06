//! Simulated time: a free run, in which writers and merging threads go at their own speed.
//!
//! One client does the operations of a workload, one after the other. It shares the cores of a
//! [`Machine`] with the merging threads: if more want to run than there are cores, each gets an
//! equal part. Which plan a thread takes, how hard writers are held back, and how long they sleep
//! is decided by the code that the store runs ([`Turn`](lsmith_policy::Turn),
//! [`BackPressure`]). What a merge writes is keyed content, as in lockstep. Only the time that work
//! takes is a model: the rates of the machine.
//!
//! What is not simulated: merges that are split among threads, merges that commit part by part, and
//! spills of the log.

mod course;
mod machine;
mod puts;
mod threads;

pub use course::{Course, Moment};
pub use machine::{Machine, PutTimes, Rate};
pub use puts::PutPercentiles;

use crate::keyed::KeyedSim;
use crate::simulate::Feed;
use crate::{KeyedWorkload, Observer, SimError, Simulation};
use lsmith_policy::MergePolicy;
use lsmith_policy::back_pressure::{
    BackPressure, LOOK_AGAIN_NANOS, MEASURE_BYTES, WAITING_MEMTABLES_MAX, delay_nanos_per_byte,
    sleep_nanos,
};
use lsmith_tree::Size;
use lsmith_workload::{Op, OpKind};
use puts::Puts;
use std::sync::Arc;
use threads::Threads;

/// How a free run is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeOptions {
    /// The machine.
    pub machine: Machine,
    /// Merging threads.
    pub threads: usize,
    /// Logical bytes of a full memtable.
    pub memtable_bytes: u64,
    /// Seconds after which the client stops; infinite for none.
    pub seconds_max: f64,
}

/// What a free run came to in simulated time.
#[derive(Clone, Debug)]
pub struct FreeSimulation {
    /// The figures, and the last tree. Trees are sampled when the next memtable is sealed, as the
    /// figures of a free run on the store are.
    pub simulation: Simulation,
    /// Operations.
    pub ops: u64,
    /// Seconds, up to the end of the last merge.
    pub seconds: f64,
    /// Seconds of CPU of client and merging threads.
    pub cpu_seconds: f64,
    /// Seconds of CPU of flushes and merges.
    pub merge_cpu_seconds: f64,
    /// Seconds for which the client was held back.
    pub held_back_seconds: f64,
    /// The longest time for which one write waited, in seconds: it was held back, and then no core
    /// was free.
    pub pause_longest: f64,
    /// Percentiles of writes; `None` if the machine does not say how long a write takes.
    pub puts: Option<PutPercentiles>,
    /// How far the run had come at moments that are evenly spread over its operations.
    pub course: Vec<Moment>,
}

/// Simulates `input` in a store under `policy`, whose client waits for nothing but the store.
///
/// # Errors
/// As [`simulate_keyed`](crate::simulate_keyed).
pub fn simulate_free(
    policy: &Arc<dyn MergePolicy>,
    input: &KeyedWorkload,
    options: &FreeOptions,
    observe: &mut Observer<'_>,
) -> Result<FreeSimulation, SimError> {
    let mut feed = Feed::new(input);
    let mut run = FreeRun {
        machine: options.machine,
        sim: feed.sim(policy, options.memtable_bytes),
        threads: Threads::new(options.machine, options.threads),
        observe,
        memtable_bytes: options.memtable_bytes,
        pressure: BackPressure::default(),
        waiting: 0,
        now: 0.0,
        client_cpu: 0.0,
        unmeasured: 0,
        owed_nanos: 0.0,
        held_back: 0.0,
        pause_longest: 0.0,
        puts: Puts::new(options.machine),
        course: Course::default(),
    };
    let flushes_max = input.workload().limit_flushes().unwrap_or(u64::MAX);
    let nanos_max = options.seconds_max * 1e9;
    let mut ops = 0;
    for op in input.workload().ops() {
        let op = op?;
        if run.course.is_due(ops) {
            run.note(ops);
        }
        run.op(&mut feed, &op)?;
        ops += 1;
        if run.sim.flushes() >= flushes_max || run.now >= nanos_max {
            break;
        }
    }
    run.finish(ops)
}

/// A free run under way. Times are in nanoseconds.
struct FreeRun<'a, 'b> {
    machine: Machine,
    sim: KeyedSim,
    threads: Threads,
    observe: &'a mut Observer<'b>,
    memtable_bytes: u64,
    /// The pressure since the tree changed last.
    pressure: BackPressure,
    /// The sealed memtables in memory since then.
    waiting: usize,
    now: f64,
    client_cpu: f64,
    /// Bytes written since the active memtable was last measured.
    unmeasured: u64,
    /// Sleep that writers owe.
    owed_nanos: f64,
    held_back: f64,
    pause_longest: f64,
    puts: Puts,
    course: Course,
}

impl FreeRun<'_, '_> {
    fn op(&mut self, feed: &mut Feed<'_>, op: &Op) -> Result<(), SimError> {
        let runs = self.sim.tree().disk_run_count() as f64;
        let Machine { get, scan, scan_entry, write, .. } = self.machine;
        let mut cpu = match op.kind {
            OpKind::Read | OpKind::ReadModifyWrite => get.nanos(1.0, runs),
            OpKind::Scan => scan.nanos(1.0, runs) + scan_entry * f64::from(op.items),
            _ => 0.0,
        };
        let bytes = feed.written_bytes(op);
        if let Some(bytes) = bytes {
            let waited = self.hold_back(bytes)?;
            let speed = self.machine.speed(self.threads.running() + 1);
            self.puts.put(bytes, waited, speed);
            cpu += write.nanos(1.0, bytes as f64);
        }
        self.work(cpu)?;
        feed.op(&mut self.sim, op);
        if self.sim.is_full() {
            self.seal(feed)?;
        }
        Ok(())
    }

    /// Seals the memtable. Samples the tree, as the meter of a store does in a free run.
    fn seal(&mut self, feed: &Feed<'_>) -> Result<(), SimError> {
        let is_first = self.sim.flushes() == 0;
        self.sim.set_live_entries(feed.live_entries());
        self.sim.seal(feed.live_bytes(), self.observe)?;
        if !is_first {
            self.sim.sample(self.observe);
        }
        let drive = self.sim.drive();
        let sealed = drive.tree().memory().runs().first().map_or(Size::default(), |run| run.size());
        let bytes = sealed.bytes.min(self.memtable_bytes);
        self.threads.sealed(Size { bytes, ..sealed }, drive.policy().needs().blocks);
        self.look()
    }

    /// Starts plans, and asks for the pressure and for the size of the next memtable.
    fn look(&mut self) -> Result<(), SimError> {
        self.sim.fold_memory_if_free()?;
        self.threads.start(self.sim.drive_mut())?;
        self.sim.ask_seal_bytes();
        (self.pressure, self.waiting) = self.threads.back_pressure(self.sim.drive());
        if self.pressure.full <= 0.0 {
            self.owed_nanos = 0.0;
        }
        Ok(())
    }

    /// Lets `nanos` pass, or less if a thread ends a piece of its work before. `client` is true if
    /// the client uses a core; `nanos` is then work of the client, else time. Returns the work or
    /// the time that is left, and whether a plan was committed.
    fn pass(&mut self, nanos: f64, client: bool) -> Result<(f64, bool), SimError> {
        let running = self.threads.running() + usize::from(client);
        let speed = self.machine.speed(running);
        let done_per_nano = if client { speed.work } else { 1.0 };
        let wall = nanos / done_per_nano;
        let next = self.threads.next_end(speed).filter(|end| *end <= wall);
        let passed = next.unwrap_or(wall).max(0.0);
        self.threads.pass(passed, speed);
        self.now += passed;
        if client {
            self.client_cpu += passed * speed.share;
        }
        let mut committed = false;
        if next.is_some() {
            let FreeRun { sim, threads, observe, .. } = self;
            committed = sim.observed(observe, |drive, observe| threads.commit(drive, observe))?;
            if committed {
                self.look()?;
            }
        }
        Ok((nanos - passed * done_per_nano, committed))
    }

    /// Lets the client work for `nanos`, as long as it takes alone.
    fn work(&mut self, nanos: f64) -> Result<(), SimError> {
        let mut left = nanos;
        while left > 1e-6 {
            (left, _) = self.pass(left, true)?;
        }
        Ok(())
    }

    /// Lets the client wait for `nanos`, or until a plan is committed.
    fn wait(&mut self, nanos: f64) -> Result<(), SimError> {
        let (mut left, mut committed) = (nanos, false);
        while left > 0.0 && !committed {
            (left, committed) = self.pass(left, false)?;
        }
        Ok(())
    }

    /// Delays a writer of `bytes`, as the store does. Returns the nanoseconds.
    fn hold_back(&mut self, bytes: u64) -> Result<f64, SimError> {
        let start = self.now;
        while self.must_stop() {
            self.wait(LOOK_AGAIN_NANOS as f64)?;
        }
        let has_waited = self.now > start;
        if let Some(nanos) = self.sleep(bytes).filter(|_| !has_waited) {
            self.wait(nanos)?;
        }
        let held_back = self.now - start;
        self.held_back += held_back;
        let no_core_is_free = self.threads.running() as f64 >= self.machine.cores;
        let pause = held_back + if no_core_is_free { self.machine.slice } else { 0.0 };
        self.pause_longest = self.pause_longest.max(pause);
        Ok(held_back)
    }

    fn must_stop(&self) -> bool {
        let crowded = self.waiting >= WAITING_MEMTABLES_MAX;
        let pressed = self.pressure.empty >= 1.0;
        (crowded || pressed) && (self.waiting > 0 || !self.threads.is_at_rest())
    }

    /// Returns how long the writer of `bytes` sleeps, if it does.
    fn sleep(&mut self, bytes: u64) -> Option<f64> {
        if self.pressure.is_none() {
            return None;
        }
        self.unmeasured += bytes;
        if self.unmeasured < MEASURE_BYTES {
            return None;
        }
        let bytes = std::mem::take(&mut self.unmeasured);
        let active_bytes = self.sim.active_bytes();
        let memory = self.pressure.of_memory(active_bytes, self.memtable_bytes);
        let merges = self.pressure.of_merges(active_bytes, self.memtable_bytes);
        self.owed_nanos += bytes as f64 * delay_nanos_per_byte(memory.max(merges));
        let sleep = sleep_nanos(self.owed_nanos as u64)?;
        self.owed_nanos = 0.0;
        Some(sleep as f64)
    }

    /// Notes how far the run has come.
    fn note(&mut self, ops: u64) {
        let (seconds, held_back_seconds) = (self.now * 1e-9, self.held_back * 1e-9);
        self.course.note(Moment { ops, seconds, held_back_seconds });
    }

    /// Lets merges come to rest.
    fn finish(mut self, ops: u64) -> Result<FreeSimulation, SimError> {
        self.note(ops);
        self.look()?;
        while !self.threads.is_at_rest() {
            self.pass(f64::MAX, false)?;
        }
        if self.sim.flushes() > 0 {
            self.sim.sample(self.observe);
        }
        let merge_cpu = self.threads.cpu_nanos;
        Ok(FreeSimulation {
            simulation: self.sim.finish(),
            ops,
            seconds: self.now * 1e-9,
            cpu_seconds: (self.client_cpu + merge_cpu) * 1e-9,
            merge_cpu_seconds: merge_cpu * 1e-9,
            held_back_seconds: self.held_back * 1e-9,
            pause_longest: self.pause_longest * 1e-9,
            puts: self.puts.percentiles(),
            course: self.course.moments(),
        })
    }
}
