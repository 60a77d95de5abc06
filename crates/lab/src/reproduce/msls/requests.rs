//! What the paper asks a store to do.

use lsmith_workload::{Rng, Zipf};

/// Requests for keys that are all there: any at any time, independent of all before.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    keys: u32,
    /// Absent where all keys are asked for equally often.
    popularity: Option<Popularity>,
    draws: Rng,
}

#[derive(Clone, Debug)]
struct Popularity {
    ranks: Zipf,
    /// The place in key order of each rank of popularity.
    places: Vec<u32>,
}

/// Of everything that is drawn.
const SEED: u64 = 1;

impl Requests {
    /// Of `keys` keys by a Zipf distribution, with popular keys anywhere in key order.
    pub(super) fn new(keys: u32, skew: f64) -> Requests {
        let popularity = (skew > 0.0).then(|| Popularity {
            ranks: Zipf::new(u64::from(keys), skew),
            places: shuffled(keys),
        });
        Requests { keys, popularity, draws: Rng::new(SEED, 1) }
    }

    /// The place in key order of the next key that is asked for.
    pub(super) fn next_place(&mut self) -> u32 {
        match &self.popularity {
            None => self.draws.below(u64::from(self.keys)) as u32,
            Some(popularity) => popularity.places[popularity.ranks.draw(&mut self.draws) as usize],
        }
    }
}

/// All numbers below `count` in random order, by the shuffle of Fisher and Yates.
fn shuffled(count: u32) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count).collect();
    let mut draws = Rng::new(SEED, 2);
    for index in (1..places.len()).rev() {
        places.swap(index, draws.below(index as u64 + 1) as usize);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_model::Popularity;

    /// So many different keys as the model expects: what all figures rest on.
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
