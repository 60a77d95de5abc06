//! The place of every key in byte order.

/// The place of every item's key among all keys of the workload in byte order.
///
/// Items with equal keys share a rank. Takes no memory where items are numbered in key order
/// already, else 4 bytes per item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// Item numbers are ranks.
    Identity,
    /// The rank of item i at index i.
    Table(Vec<u32>),
}

impl Ranks {
    /// The rank of `item`, which must be below [`Workload::items`](crate::Workload::items).
    #[must_use]
    #[inline]
    pub fn rank(&self, item: u64) -> u64 {
        match self {
            Self::Identity => item,
            Self::Table(ranks) => u64::from(ranks[item as usize]),
        }
    }
}

/// A key as two numbers whose order is the byte order of the keys: the digits as the front of a
/// fraction of ten to the power [`DIGITS_MAX`], then their number.
pub(crate) type Place = (u64, u32);

/// Most decimal digits of a number below 2^63.
pub(crate) const DIGITS_MAX: u32 = 19;

/// Items sorted at a time. Sixteen bytes each, so a pass takes 32 MiB beside the result.
const PASS_ITEMS: u64 = 2 << 20;

/// Ranks of items 0..`items` (at most 2^32) by their places.
///
/// Places are computed anew in each pass over a part of the key space rather than kept, as they
/// are cheap and four times as large as the result.
pub(crate) fn rank_by_place(items: u64, place: impl Fn(u64) -> Place) -> Vec<u32> {
    let passes = items.div_ceil(PASS_ITEMS).max(1);
    let pass_width = 10u64.pow(DIGITS_MAX) / passes + 1;
    let mut ranks = vec![0; items as usize];
    let mut rank = 0;
    // Hashes leave the last tenth of the width almost empty and fill the rest evenly.
    let mut part: Vec<(u64, u32, u32)> = Vec::with_capacity((items / passes * 5 / 4) as usize);
    for pass in 0..passes {
        part.clear();
        part.extend((0..items).filter_map(|item| {
            let (front, digits) = place(item);
            (front / pass_width == pass).then_some((front, digits, item as u32))
        }));
        part.sort_unstable();
        for same_key in part.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
            for &(_, _, item) in same_key {
                ranks[item as usize] = rank;
            }
            rank += 1;
        }
    }
    ranks
}

/// Ranks of keys without equal ones among them.
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
    fn passes_join_without_a_seam() {
        let items = 2 * PASS_ITEMS + 5;
        let step = 10u64.pow(DIGITS_MAX) / items;
        let ranks = rank_by_place(items, |item| ((items - 1 - item) * step, 1));
        assert!((0..items).all(|item| u64::from(ranks[item as usize]) == items - 1 - item));
    }
}
