//! The rank of every key in byte order.

/// The rank of every item's key among all keys of the workload, in byte order.
///
/// Items with equal keys share a rank. Takes no memory if items are numbered in key order, and 4
/// bytes per item otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// Item numbers are ranks.
    Identity,
    /// The rank of item i at index i.
    Table(Vec<u32>),
}

impl Ranks {
    /// Returns the rank of `item`, which must be below [`Workload::items`](crate::Workload::items).
    #[must_use]
    #[inline]
    pub fn rank(&self, item: u64) -> u64 {
        match self {
            Self::Identity => item,
            Self::Table(ranks) => u64::from(ranks[item as usize]),
        }
    }
}

/// A key as two numbers that are ordered as the keys are: the digits as the start of a fraction of
/// ten to the power [`DIGITS_MAX`], then the number of digits.
pub(crate) type KeyOrder = (u64, u32);

/// Most decimal digits of a number below 2^63.
pub(crate) const DIGITS_MAX: u32 = 19;

/// Places are sorted in parts. The fronts of the places in a part differ only in this number of low
/// bits. There are about 4400 parts: few enough to fill all of them in one pass, and enough that
/// each fits into a cache. Hashes fill the parts evenly, but leave the last tenth almost empty.
const PART_BITS: u32 = 51;

/// Returns the ranks of items 0..`items` (at most 2^32) by the order of their keys.
///
/// Takes twice the memory of the result while it runs. `place` is called anew at each step: its
/// results are cheap, and four times as large as the ranks.
pub(crate) fn rank_by_place(items: u64, place: impl Fn(u64) -> KeyOrder) -> Vec<u32> {
    let part_of = |item| (place(item).0 >> PART_BITS) as usize;
    let mut starts = [0; (10u64.pow(DIGITS_MAX) >> PART_BITS) as usize + 2];
    (0..items).for_each(|item| starts[part_of(item) + 1] += 1);
    let mut before = 0;
    for start in &mut starts {
        before += *start;
        *start = before;
    }
    // The items, part by part. Each start becomes the end of its part.
    let mut parted = vec![0; items as usize];
    for item in 0..items {
        let at = &mut starts[part_of(item)];
        parted[*at] = item as u32;
        *at += 1;
    }
    let mut ranks = vec![0; items as usize];
    let mut rank = 0;
    let mut from = 0;
    let mut part: Vec<u128> = Vec::new();
    for end in starts {
        part.extend(parted[from..end].iter().map(|&item| {
            let (front, digits) = place(u64::from(item));
            u128::from(front) << 64 | u128::from(digits) << 32 | u128::from(item)
        }));
        part.sort_unstable();
        for same_key in part.chunk_by(|left, right| left >> 32 == right >> 32) {
            same_key.iter().for_each(|&sorted| ranks[sorted as u32 as usize] = rank);
            rank += 1;
        }
        part.clear();
        from = end;
    }
    ranks
}

/// Returns the ranks of distinct keys.
pub(crate) fn rank_by_bytes<'a>(items: usize, key: impl Fn(usize) -> &'a [u8]) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..items).map(|item| item as u32).collect();
    sorted.sort_unstable_by(|&left, &right| key(left as usize).cmp(key(right as usize)));
    let mut ranks = vec![0; items];
    for (rank, &item) in sorted.iter().enumerate() {
        ranks[item as usize] = rank as u32;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_places_share_a_rank() {
        let places = [(30, 2), (10, 1), (30, 2), (30, 1), (10, 1), (99, 1)];
        assert_eq!(rank_by_place(6, |item| places[item as usize]), [2, 0, 2, 1, 0, 3]);
        assert!(rank_by_place(0, |_| (0, 0)).is_empty());
    }

    #[test]
    fn parts_join_without_a_seam() {
        let items = 100_003;
        let step = 10u64.pow(DIGITS_MAX) / items;
        let ranks = rank_by_place(items, |item| ((items - 1 - item) * step, 1));
        assert!((0..items).all(|item| u64::from(ranks[item as usize]) == items - 1 - item));
    }
}
