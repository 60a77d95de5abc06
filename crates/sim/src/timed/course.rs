//! The course of a run: how far it had come at some moments.

/// The most moments of a course. With more, each second one goes.
const MOMENTS_MAX: usize = 200;

/// The operations between two moments at first.
const OPS_FIRST: u64 = 256;

/// How far a run had come at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Operations so far.
    pub ops: u64,
    /// Seconds so far.
    pub seconds: f64,
    /// Seconds for which writers were held back so far.
    pub held_back_seconds: f64,
}

/// Notes how far a run has come, at moments with equally many operations between them. Two runs of
/// the same operations have moments at the same operations.
#[derive(Clone, Debug)]
pub struct Course {
    every: u64,
    moments: Vec<Moment>,
}

impl Default for Course {
    fn default() -> Course {
        Course { every: OPS_FIRST, moments: Vec::new() }
    }
}

impl Course {
    /// Returns true if a moment is to be noted after so many operations.
    #[must_use]
    pub fn is_due(&self, ops: u64) -> bool {
        ops.is_multiple_of(self.every)
    }

    /// Notes a moment that is due.
    pub fn note(&mut self, moment: Moment) {
        self.moments.push(moment);
        if self.moments.len() > MOMENTS_MAX {
            self.every *= 2;
            let every = self.every;
            self.moments.retain(|moment| moment.ops.is_multiple_of(every));
        }
    }

    /// Returns the moments, the first one first.
    #[must_use]
    pub fn moments(self) -> Vec<Moment> {
        self.moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_evenly_spread_however_long_the_run_is() {
        for ops in [1000u64, 100_000, 3_000_000] {
            let mut course = Course::default();
            for done in (0..ops).filter(|done| done.is_multiple_of(OPS_FIRST)) {
                if course.is_due(done) {
                    course.note(Moment { ops: done, ..Moment::default() });
                }
            }
            let moments = course.moments();
            assert!(moments.len() <= MOMENTS_MAX, "{ops}");
            assert!(moments.len() as u64 >= (ops / OPS_FIRST).min(90), "{ops}");
            let step = moments[1].ops - moments[0].ops;
            assert!(moments.windows(2).all(|pair| pair[1].ops - pair[0].ops == step), "{ops}");
        }
    }
}
