//! How often a tree is read, as policies see it.

/// One read or memtable of [`Reads`], which count in parts of one.
const ONE: u64 = 64;

/// The part of all sums that a new memtable takes off: one of so many.
const FADE: u64 = 8;

/// The most reads of one kind that one memtable counts.
const COUNT_MAX: u64 = 1 << 40;

/// How often a tree was read while its recent memtables were filled.
///
/// Each field is a sum over all memtables, in 64ths, that fades: each new memtable first takes an
/// eighth off. So the mean is over the last eight or so, and it is whole numbers that all
/// interpreters compute alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Memtables.
    pub memtables: u64,
    /// Lookups that found a value.
    pub found: u64,
    /// Lookups that found none.
    pub absent: u64,
    /// Range reads.
    pub scans: u64,
}

/// The reads while one memtable was filled, or their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadsPerMemtable {
    /// Lookups that found a value.
    pub found: f64,
    /// Lookups that found none.
    pub absent: f64,
    /// Range reads.
    pub scans: f64,
}

impl Reads {
    /// Returns the sums with one more memtable, while which was filled there were so many lookups
    /// that `found` a value, lookups of `absent` keys, and range reads (`scans`).
    #[must_use]
    pub fn with_memtable(self, found: u64, absent: u64, scans: u64) -> Reads {
        let sum = |before: u64, more: u64| {
            let kept = before - before / FADE;
            kept.saturating_add(more.min(COUNT_MAX) * ONE)
        };
        Reads {
            memtables: sum(self.memtables, 1),
            found: sum(self.found, found),
            absent: sum(self.absent, absent),
            scans: sum(self.scans, scans),
        }
    }

    /// Returns the mean per memtable, 0 before the first.
    pub fn per_memtable(self) -> ReadsPerMemtable {
        let mean = |sum: u64| sum as f64 / self.memtables.max(1) as f64;
        ReadsPerMemtable {
            found: mean(self.found),
            absent: mean(self.absent),
            scans: mean(self.scans),
        }
    }

    /// Returns the fields with their names, in the order of the text.
    pub(crate) fn fields(&mut self) -> [(&'static str, &mut u64); 4] {
        [
            ("memtables", &mut self.memtables),
            ("found", &mut self.found),
            ("absent", &mut self.absent),
            ("scans", &mut self.scans),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_the_first_memtable_and_follows_the_last_ones() {
        let mut reads = Reads::default().with_memtable(100, 10, 0);
        assert_eq!(
            reads.per_memtable(),
            ReadsPerMemtable { found: 100.0, absent: 10.0, scans: 0.0 }
        );
        for _ in 0..100 {
            reads = reads.with_memtable(100, 10, 0);
        }
        assert!((reads.per_memtable().found - 100.0).abs() < 1.0, "{reads:?}");
        for _ in 0..24 {
            reads = reads.with_memtable(0, 10, 7);
        }
        let ReadsPerMemtable { found, absent, scans } = reads.per_memtable();
        assert!(found < 5.0 && (absent - 10.0).abs() < 0.2 && scans > 6.0, "{reads:?}");
    }

    #[test]
    fn no_count_overflows() {
        let mut reads = Reads::default();
        for _ in 0..1000 {
            reads = reads.with_memtable(u64::MAX, 0, u64::MAX);
        }
        assert!(reads.found < 1 << 56, "{reads:?}");
    }
}
