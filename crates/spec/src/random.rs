//! The step of SplitMix64, from which all repeatable random numbers come.
//!
//! Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.

/// What the state grows by with each number: 2^64 over the golden ratio, odd.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the number of a state: a bijection that changes about half of the bits whichever bit
/// changes.
#[inline]
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let once = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Advances `state`, which begins as any seed, and returns the next 64 random bits.
#[inline]
pub const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN_GAMMA);
    mix(*state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as the reference implementation in C prints them.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut state = 1_234_567;
        let numbers = [(); 3].map(|()| next(&mut state));
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, expected);
    }
}
