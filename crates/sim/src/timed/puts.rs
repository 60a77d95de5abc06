//! How long single writes take in simulated time.

use super::machine::{Machine, Speed};

/// Counts of times from a nanosecond on. Two times of one bucket differ by 1/32 at most.
const BUCKETS: usize = 64 * PER_DOUBLING;
const PER_DOUBLING: usize = 32;

/// Percentiles of the time of a write, in nanoseconds, within 1/32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutPercentiles {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
}

/// Counts how long writes take. The time of a write is the time that it takes undisturbed, which
/// varies as on the machine, longer while other threads share caches with it, and what it waits:
/// because it is held back, or because another thread has its core.
#[derive(Debug)]
pub(super) struct Puts {
    machine: Machine,
    count: u64,
    buckets: Vec<u64>,
    /// Nanoseconds for which threads had to give up their core to the client's writes.
    owed_nanos: f64,
}

impl Puts {
    pub(super) fn new(machine: Machine) -> Puts {
        Puts { machine, count: 0, buckets: vec![0; BUCKETS], owed_nanos: 0.0 }
    }

    /// Counts a write of `bytes` that was held back for `waited` nanoseconds and then runs at
    /// `speed`.
    pub(super) fn put(&mut self, bytes: u64, waited: f64, speed: Speed) {
        self.count += 1;
        let alone = self.machine.put.nanos(bytes, part(self.count));
        let work = alone * speed.share / speed.work;
        self.owed_nanos += work * (1.0 / speed.share - 1.0);
        // A thread that has the core keeps it for a slice: few writes wait, and those for long.
        let slice = self.machine.slice.max(1.0);
        let slices = (self.owed_nanos / slice).floor();
        self.owed_nanos -= slices * slice;
        self.buckets[bucket(work + slices * slice + waited)] += 1;
    }

    /// Returns the percentiles. `None` if the machine does not say how long a write takes, or if
    /// there was none.
    pub(super) fn percentiles(&self) -> Option<PutPercentiles> {
        let is_known = self.count > 0 && self.machine.put.small[0] > 0.0;
        is_known.then(|| PutPercentiles {
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
        })
    }

    fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        (2f64.powf((found.unwrap_or(0) + 1) as f64 / PER_DOUBLING as f64)) as u64
    }
}

/// Returns a number between 0 and 1 for the write with this number. Any thousand numbers in a row
/// are spread evenly: steps of the golden ratio (Weyl).
fn part(number: u64) -> f64 {
    let scaled = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
    (scaled as f64 + 0.5) / (1u64 << 53) as f64
}

fn bucket(nanos: f64) -> usize {
    let at = nanos.max(1.0).log2() * PER_DOUBLING as f64;
    (at as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::super::PutTimes;
    use super::*;

    const ALONE: Speed = Speed { share: 1.0, work: 1.0 };

    /// A machine whose median write takes 100 nanoseconds, and one in a thousand 9 microseconds.
    fn machine() -> Machine {
        let small = [100.0, 900.0, 9000.0];
        let put = PutTimes { small, large: [1000.0, 9000.0, 9e6] };
        Machine { put, cores: 2.0, slice: 3e6, ..Machine::default() }
    }

    fn near(found: u64, expected: f64) -> bool {
        (found as f64 / expected - 1.0).abs() < 0.04
    }

    #[test]
    fn undisturbed_writes_have_the_percentiles_of_the_machine() {
        let mut puts = Puts::new(machine());
        (0..100_000).for_each(|_| puts.put(PutTimes::SMALL_BYTES, 0.0, ALONE));
        let found = puts.percentiles().unwrap();
        assert!(near(found.p50, 100.0) && near(found.p99, 900.0), "{found:?}");
        assert!(near(found.p999, 9000.0), "{found:?}");
    }

    #[test]
    fn larger_writes_take_longer() {
        let of_bytes = |bytes: u64| {
            let mut puts = Puts::new(machine());
            (0..100_000).for_each(|_| puts.put(bytes, 0.0, ALONE));
            puts.percentiles().unwrap()
        };
        let found = of_bytes(PutTimes::LARGE_BYTES);
        assert!(near(found.p50, 1000.0) && near(found.p99, 9000.0), "{found:?}");
        assert!(near(found.p999, 9e6), "{found:?}");
        // Between the two sizes.
        let found = of_bytes(343);
        assert!(near(found.p50, 316.0) && near(found.p999, 2.85e5), "{found:?}");
    }

    #[test]
    fn held_back_writes_show_in_the_percentile_of_their_share() {
        let mut puts = Puts::new(machine());
        let held = |number: u64| if number.is_multiple_of(200) { 5e6 } else { 0.0 };
        (0..100_000).for_each(|number| puts.put(PutTimes::SMALL_BYTES, held(number), ALONE));
        let found = puts.percentiles().unwrap();
        // One in two hundred waits.
        assert!(near(found.p50, 100.0) && near(found.p999, 5e6), "{found:?}");
        assert!(found.p99 < 3000, "{found:?}");
    }

    #[test]
    fn shared_cores_stretch_writes_a_slice_at_a_time() {
        let mut puts = Puts::new(machine());
        // Three threads on two cores. Each works at half its speed.
        let speed = Speed { share: 2.0 / 3.0, work: 1.0 / 3.0 };
        (0..1_000_000).for_each(|_| puts.put(PutTimes::SMALL_BYTES, 0.0, speed));
        let found = puts.percentiles().unwrap();
        assert!(near(found.p50, 200.0) && near(found.p99, 1800.0), "{found:?}");
        let waited: u64 = puts.buckets[bucket(3e6)..].iter().sum();
        // A million writes of about 0.4 microseconds lose half as much to other threads.
        assert!((50..110).contains(&waited), "{waited}");
    }

    #[test]
    fn percentiles_are_unknown_if_the_machine_has_none() {
        let mut puts = Puts::new(Machine::default());
        assert_eq!(Puts::new(machine()).percentiles(), None);
        puts.put(PutTimes::SMALL_BYTES, 0.0, ALONE);
        assert_eq!(puts.percentiles(), None);
    }
}
