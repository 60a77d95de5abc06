//! Pairs of numbers, of which it is soon counted how many lie in a corner.

/// Points in the order of the moment `at` which something happened, each with another moment, its
/// value. How many points of a stretch have at least some value takes one step per bit of the
/// values, however many points there are: the values are kept bit by bit, sorted by the bits
/// before (a wavelet matrix).
#[derive(Clone, Debug)]
pub(super) struct Points {
    /// Rising. `None` where there is a point at each moment from 0 on.
    at: Option<Vec<u32>>,
    len: usize,
    /// The highest bit first.
    rows: Vec<Row>,
}

/// One bit of every value.
#[derive(Clone, Debug)]
struct Row {
    words: Vec<u64>,
    /// Ones before each word.
    before: Vec<u32>,
    zeros: usize,
}

impl Row {
    /// Takes the bit of every value, and puts the values without it before those with it.
    fn split(values: &mut Vec<u32>, bit: u32) -> Row {
        let mut words = vec![0_u64; values.len() / 64 + 1];
        let mut low = Vec::with_capacity(values.len());
        let mut high = Vec::new();
        for (index, &value) in values.iter().enumerate() {
            if value >> bit & 1 == 1 {
                words[index / 64] |= 1 << (index % 64);
                high.push(value);
            } else {
                low.push(value);
            }
        }
        let zeros = low.len();
        low.append(&mut high);
        *values = low;
        let ones = |sum: &mut u32, word: &u64| {
            let before = *sum;
            *sum += word.count_ones();
            Some(before)
        };
        let before = words.iter().scan(0, ones).collect();
        Row { words, before, zeros }
    }

    /// Ones among the first so many values.
    fn ones(&self, until: usize) -> usize {
        let word = self.words[until / 64] & ((1 << (until % 64)) - 1);
        self.before[until / 64] as usize + word.count_ones() as usize
    }
}

impl Points {
    /// Points at `at`, which rises, with their values.
    pub(super) fn new(at: Vec<u32>, mut values: Vec<u32>) -> Points {
        let len = at.len();
        let bits = values.iter().max().map_or(0, |max| u32::BITS - max.leading_zeros());
        let rows = (0..bits).rev().map(|bit| Row::split(&mut values, bit)).collect();
        let is_each = at.last().is_none_or(|last| *last as usize + 1 == len);
        Points { at: Some(at).filter(|_| !is_each), len, rows }
    }

    /// Points from one moment up to another with a value of at least `least`.
    pub(super) fn count(&self, from: u32, until: u32, least: u32) -> u64 {
        let place = |moment: u32| match &self.at {
            Some(at) => at.partition_point(|at| *at < moment),
            None => (moment as usize).min(self.len),
        };
        let mut from = place(from);
        let mut until = place(until);
        if u64::from(least) >= 1 << self.rows.len() {
            return 0;
        }
        let mut count = 0;
        for (row, bit) in self.rows.iter().zip((0..self.rows.len()).rev()) {
            if from >= until {
                return count as u64;
            }
            let ones = (row.ones(from), row.ones(until));
            if least >> bit & 1 == 1 {
                from = row.zeros + ones.0;
                until = row.zeros + ones.1;
            } else {
                count += ones.1 - ones.0;
                from -= ones.0;
                until -= ones.1;
            }
        }
        (count + until.saturating_sub(from)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_workload::Rng;

    #[test]
    fn counts_are_those_of_looking_at_each() {
        let mut rng = Rng::new(1, 0);
        for (len, most) in [(0, 1), (1, 1), (64, 70), (200, 5), (200, 1 << 30)] {
            let at: Vec<u32> = (0..len).map(|index| index * 3 + (index % 2)).collect();
            let values: Vec<u32> = at.iter().map(|_| rng.below(most) as u32).collect();
            let points = Points::new(at.clone(), values.clone());
            for _ in 0..300 {
                let [from, until] = [(); 2].map(|()| rng.below(620) as u32);
                let least = rng.below(most + 2) as u32;
                let is_in =
                    |(at, value): &(&u32, &u32)| (from..until).contains(*at) && **value >= least;
                let expected = at.iter().zip(&values).filter(is_in).count() as u64;
                assert_eq!(points.count(from, until, least), expected, "{from} {until} {least}");
            }
        }
    }

    #[test]
    fn moments_need_no_table_where_each_has_a_point() {
        let points = Points::new(vec![0, 1, 2], vec![5, 0, 7]);
        assert!(points.at.is_none());
        assert_eq!(points.count(0, 9, 5), 2);
        assert_eq!(points.count(1, 3, 6), 1);
        assert_eq!(points.count(2, 1, 0), 0);
    }
}
