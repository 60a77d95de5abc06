//! The choice of the next operation.

use crate::Rng;

/// An operation of the run phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Read,
    /// A lookup of a key that is never written.
    ReadAbsent,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
    Delete,
}

/// Shares of the operations.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    /// Each choice with the sum of the shares up to and with its own, ascending to 1.
    end: Vec<(f64, Choice)>,
    insert_share: f64,
}

impl Mix {
    /// Returns a mix by weights, which need not add up to 1; `None` if all are 0.
    pub(super) fn new(weights: &[(f64, Choice)]) -> Option<Self> {
        let weights = weights.iter().filter(|(weight, _)| *weight > 0.0);
        let total: f64 = weights.clone().map(|(weight, _)| weight).sum();
        let mut sum = 0.0;
        let mut mix = Self { end: Vec::new(), insert_share: 0.0 };
        for &(weight, choice) in weights {
            sum += weight;
            mix.end.push((sum / total, choice));
            if choice == Choice::Insert {
                mix.insert_share = weight / total;
            }
        }
        (!mix.end.is_empty()).then_some(mix)
    }

    /// Share of the inserts among all operations.
    pub(super) fn insert_share(&self) -> f64 {
        self.insert_share
    }

    /// Returns the share of scans among all operations that read; 0 without reads.
    pub(super) fn scan_share(&self) -> f64 {
        let starts = std::iter::once(0.0).chain(self.end.iter().map(|(end, _)| *end));
        let (mut scans, mut reads) = (0.0, 0.0);
        for (start, (end, choice)) in starts.zip(&self.end) {
            match choice {
                Choice::Scan => scans += end - start,
                Choice::Read | Choice::ReadAbsent | Choice::ReadModifyWrite => reads += end - start,
                Choice::Update | Choice::Insert | Choice::Delete => {}
            }
        }
        if scans > 0.0 { scans / (scans + reads) } else { 0.0 }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> Choice {
        let unit = rng.unit();
        let last = self.end.len() - 1;
        let place = self.end[..last].iter().position(|&(end, _)| unit < end);
        self.end[place.unwrap_or(last)].1
    }
}
