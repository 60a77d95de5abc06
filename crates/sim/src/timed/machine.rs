//! What work costs on a machine.

/// Nanoseconds of CPU: so many for each piece of work, and so many for each of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Nanoseconds for each operation or entry.
    pub each: f64,
    /// Nanoseconds for each of the parts that the field of [`Machine`] names.
    pub part: f64,
}

impl Rate {
    /// Returns the nanoseconds of `count` pieces of work with `parts` parts in all.
    #[must_use]
    pub fn nanos(self, count: f64, parts: f64) -> f64 {
        self.each * count + self.part * parts
    }
}

/// How long writes take that nothing disturbs: the median, the 99th and the 99.9th percentile in
/// nanoseconds. 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PutTimes {
    /// Writes of [`PutTimes::SMALL_BYTES`].
    pub small: [f64; 3],
    /// Writes of [`PutTimes::LARGE_BYTES`].
    pub large: [f64; 3],
}

impl PutTimes {
    /// Logical bytes of an entry with a key of 8 bytes and a value of 100.
    pub const SMALL_BYTES: u64 = 8 + 100 + 8;
    /// Logical bytes of an entry with a key of 8 bytes and a value of 1000.
    pub const LARGE_BYTES: u64 = 8 + 1000 + 8;
    /// The shares of writes that take longer than the percentiles.
    const LONGER: [f64; 3] = [0.5, 0.01, 0.001];

    /// Returns the nanoseconds of a write of `bytes`, if the part `longer` of all such writes takes
    /// longer. Between the measured percentiles and sizes, and beyond, times grow as powers.
    pub(super) fn nanos(&self, bytes: u64, longer: f64) -> f64 {
        let [low, high] = [Self::SMALL_BYTES, Self::LARGE_BYTES].map(|bytes| bytes as f64);
        let size = (bytes.max(1) as f64 / low).ln() / (high / low).ln();
        let of_size = |at: usize| power(self.small[at], self.large[at], size);
        let from = usize::from(longer < Self::LONGER[1]);
        let [often, seldom] = [Self::LONGER[from], Self::LONGER[from + 1]];
        power(of_size(from), of_size(from + 1), (often / longer).ln() / (often / seldom).ln())
    }
}

/// Returns the number `way` from `low` to `high` on a curve that grows as a power.
fn power(low: f64, high: f64, way: f64) -> f64 {
    let low = low.max(1.0);
    low * (high / low).max(1.0).powf(way)
}

/// What work costs on a machine: the cores, and nanoseconds of CPU and of waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    /// Cores that writers and merging threads share.
    pub cores: f64,
    /// A write, and each logical byte of it.
    pub write: Rate,
    /// How long a write takes that nothing disturbs, without the client's own part.
    pub put: PutTimes,
    /// A lookup, and each run on storage that it considers.
    pub get: Rate,
    /// A range read, and each run on storage that it looks at.
    pub scan: Rate,
    /// An entry that a range read returns.
    pub scan_entry: f64,
    /// An entry that is taken from memory, and each logical byte that a flush writes.
    pub flush: Rate,
    /// An entry that is read from storage, and each logical byte that a merge writes.
    pub merge: Rate,
    /// An entry that a plan takes to append tables, and each logical byte that it writes to them.
    pub append: Rate,
    /// An entry of a memtable under a policy that counts in blocks: folding it into memory, and its
    /// part of plans that are smaller than others.
    pub fold: f64,
    /// A plan with one table as its output, besides its entries. Each further table takes half.
    pub plan: f64,
    /// Nanoseconds of waiting for the device: for a plan with one table, and for each logical byte
    /// written. Each further table takes half.
    pub sync: Rate,
    /// How many times as long work takes while all cores are in use: they share caches, and may be
    /// halves of one core. At least 1.
    pub slowdown: f64,
    /// Nanoseconds for which a thread keeps a core that others want too.
    pub slice: f64,
}

impl Machine {
    /// Returns the part of a core that each of `running` threads has, and the work that each does
    /// per nanosecond.
    pub(super) fn speed(&self, running: usize) -> Speed {
        let cores = self.cores.max(1.0);
        let running = running.max(1) as f64;
        let share = (cores / running).min(1.0);
        let others = (running.min(cores) - 1.0) / (cores - 1.0).max(1.0);
        Speed { share, work: share / (1.0 + (self.slowdown.max(1.0) - 1.0) * others) }
    }
}

/// What each running thread has of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// The part of a core.
    pub(super) share: f64,
    /// Nanoseconds of work, as a thread does it alone, per nanosecond.
    pub(super) work: f64,
}
