//! The paper's requests.

use crate::shuffle::shuffled;
use lsmith_workload::{Rng, Zipf};

/// Independent random requests for present keys.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    keys: u32,
    /// The distribution of ranks; `None` if all keys are equally likely.
    popularity: Option<PlacedRanks>,
    draws: Rng,
}

#[derive(Clone, Debug)]
struct PlacedRanks {
    ranks: Zipf,
    /// The position in key order of each rank of popularity.
    places: Vec<u32>,
}

/// The seed of all random numbers.
const SEED: u64 = 1;

impl Requests {
    /// Returns requests for `keys` keys by a Zipf distribution. Popular keys are anywhere in key
    /// order.
    pub(super) fn new(keys: u32, skew: f64) -> Requests {
        let popularity = (skew > 0.0).then(|| PlacedRanks {
            ranks: Zipf::new(u64::from(keys), skew),
            places: shuffled(keys.into(), &mut Rng::new(SEED, 2)),
        });
        Requests { keys, popularity, draws: Rng::new(SEED, 1) }
    }

    /// Returns the position in key order of the next requested key.
    pub(super) fn next_place(&mut self) -> u32 {
        match &self.popularity {
            None => self.draws.below(u64::from(self.keys)) as u32,
            Some(popularity) => popularity.places[popularity.ranks.draw(&mut self.draws) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_model::Popularity;

    /// All figures depend on the number of different keys, so it must match the model.
    #[test]
    fn as_many_different_keys_as_expected() {
        for skew in [0.0, 0.99] {
            let mut requests = Requests::new(20_000, skew);
            let mut asked: Vec<u32> = (0..10_000).map(|_| requests.next_place()).collect();
            asked.sort_unstable();
            let below_the_middle = asked.partition_point(|place| *place < 10_000);
            asked.dedup();
            let expected = Popularity::zipf(20_000, skew).unwrap().unique(10_000.0);
            let error = asked.len() as f64 / expected - 1.0;
            assert!(error.abs() < 0.02, "skew {skew}: {error}");
            assert!((3500..6500).contains(&below_the_middle), "{below_the_middle}");
        }
    }
}
