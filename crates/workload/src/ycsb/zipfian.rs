//! YCSB's generator of Zipf distributed ranks.

use crate::Rng;

/// YCSB's zipfian constant.
pub(super) const THETA: f64 = 0.99;

/// Draws ranks by the approximation of Gray et al., "Quickly generating billion-record synthetic
/// databases" (1994): exact for the first two ranks, a power law for the rest.
///
/// Kept beside the exact [`Zipf`](crate::Zipf), so that YCSB runs have YCSB's hot spots.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zipfian {
    ranks: u64,
    /// The skew, between 0 and 1.
    theta: f64,
    /// Sum of the weights of all ranks.
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Returns a distribution over `ranks` ranks, at least 1, with the skew `theta`.
    pub(super) fn new(ranks: u64, theta: f64) -> Self {
        let ranks = ranks.max(1);
        let mut zipfian = Self { ranks, theta, zeta: zeta(ranks, theta), eta: 0.0 };
        zipfian.update_eta();
        zipfian
    }

    /// Adds one rank.
    pub(super) fn grow(&mut self) {
        self.ranks += 1;
        self.zeta += (self.ranks as f64).powf(-self.theta);
        self.update_eta();
    }

    fn update_eta(&mut self) {
        let two = 1.0 + 0.5f64.powf(self.theta);
        let tail = (2.0 / self.ranks as f64).powf(1.0 - self.theta);
        self.eta = (1.0 - tail) / (1.0 - two / self.zeta);
    }

    /// Draws a rank, 0 being the most likely.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = rng.unit();
        let area = unit * self.zeta;
        if area < 1.0 || self.ranks == 1 {
            return 0;
        }
        if area < 1.0 + 0.5f64.powf(self.theta) || self.ranks == 2 {
            return 1;
        }
        let spread = (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - self.theta));
        ((self.ranks as f64 * spread) as u64).min(self.ranks - 1)
    }
}

/// Sum of 1 / r^`theta` over ranks 1..=`ranks`: the first thousand added up, the rest by the
/// Euler-Maclaurin formula, whose next term is below 1e-12 there.
fn zeta(ranks: u64, theta: f64) -> f64 {
    const EXACT: u64 = 1000;
    let head: f64 = (1..=ranks.min(EXACT)).map(|rank| (rank as f64).powf(-theta)).sum();
    if ranks <= EXACT {
        return head;
    }
    let from = EXACT as f64;
    let to = ranks as f64;
    let area = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = theta / 12.0 * (from.powf(-theta - 1.0) - to.powf(-theta - 1.0));
    head + area + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_is_the_sum() {
        for ranks in [1, 2, 999, 1000, 1001, 100_000] {
            let sum: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-THETA)).sum();
            assert!((zeta(ranks, THETA) - sum).abs() < 1e-9, "{ranks}");
        }
        // The constant that YCSB carries for its ten billion ranks.
        assert!((zeta(10_000_000_000, THETA) - 26.469_028_201_783_02).abs() < 1e-9);
    }

    #[test]
    fn growing_is_as_starting_large() {
        let mut grown = Zipfian::new(1, THETA);
        (1..5000).for_each(|_| grown.grow());
        let large = Zipfian::new(5000, THETA);
        assert!((grown.zeta - large.zeta).abs() < 1e-9);
        assert!((grown.eta - large.eta).abs() < 1e-9);
    }

    #[test]
    fn ranks_are_drawn_by_their_weights() {
        const DRAWS: u32 = 200_000;
        let zipfian = Zipfian::new(1000, THETA);
        let mut rng = Rng::new(1, 0);
        let mut counts = [0u32; 1000];
        for _ in 0..DRAWS {
            counts[zipfian.draw(&mut rng) as usize] += 1;
        }
        let share = |ranks: std::ops::Range<usize>| {
            f64::from(counts[ranks].iter().sum::<u32>()) / f64::from(DRAWS)
        };
        let expected = |ranks: u64| zeta(ranks, THETA) / zeta(1000, THETA);
        assert!((share(0..1) - expected(1)).abs() < 0.004);
        assert!((share(0..2) - expected(2)).abs() < 0.004);
        // The approximation is off by up to two percent of all draws in between.
        assert!((share(0..10) - expected(10)).abs() < 0.02);
        assert!((share(0..100) - expected(100)).abs() < 0.02);
        assert!(share(900..1000) > 0.0);
    }

    #[test]
    fn few_ranks_stay_in_range() {
        let mut rng = Rng::new(1, 0);
        for ranks in 1..5 {
            let zipfian = Zipfian::new(ranks, THETA);
            assert!((0..1000).all(|_| zipfian.draw(&mut rng) < ranks));
        }
    }
}
