//! Binomial coefficients, and the stack depth that the static policies use.

/// The size of the stored part of Pascal's triangle, in either direction. Trees of bounded depth
/// need no more.
const KEPT: usize = 65;

/// `DIAGONALS[k][m]` is `pascal(m, k)`.
static DIAGONALS: [[u64; KEPT]; KEPT] = diagonals();

/// `CENTRAL_SUMS[m]` is the sum of `pascal(j - 1, j)` over j = 1..m, or `u64::MAX` on overflow.
pub(crate) static CENTRAL_SUMS: [u64; KEPT] = central_sums();

const fn central_sums() -> [u64; KEPT] {
    let diagonals = diagonals();
    let mut sums = [0u64; KEPT];
    let mut m = 1;
    while m < KEPT {
        sums[m] = sums[m - 1].saturating_add(diagonals[m][m - 1]);
        m += 1;
    }
    sums
}

/// The number of nodes whose depth is stored, for each `k`. Most sums end among them.
const DEPTHS: usize = 256;

/// `SMALL_DEPTHS[k][t]` is `stack_depth(k, t)`.
static SMALL_DEPTHS: [[u8; DEPTHS]; KEPT] = small_depths();

const fn small_depths() -> [[u8; DEPTHS]; KEPT] {
    let diagonals = diagonals();
    let mut depths = [[0; DEPTHS]; KEPT];
    let mut k = 1;
    while k < KEPT {
        let mut m = 0;
        let mut t = 1;
        while t < DEPTHS {
            while m + 1 < KEPT && diagonals[k][m + 1] <= t as u64 {
                m += 1;
            }
            // For k = 1 the stored triangle is too short, but there the sum has a single term.
            let rest = if k == 1 { 0 } else { t - diagonals[k][m] as usize };
            depths[k][t] = 1 + depths[k - 1][rest];
            t += 1;
        }
        k += 1;
    }
    depths
}

const fn diagonals() -> [[u64; KEPT]; KEPT] {
    let mut diagonals = [[1u64; KEPT]; KEPT];
    let mut k = 1;
    while k < KEPT {
        let mut m = 1;
        while m < KEPT {
            diagonals[k][m] = diagonals[k][m - 1].saturating_add(diagonals[k - 1][m]);
            m += 1;
        }
        k += 1;
    }
    diagonals
}

/// Returns the binomial coefficient `m + k` over `k`: the number in Pascal's triangle that is `m`
/// steps from one side and `k` from the other. Returns `u64::MAX` on overflow, since it is only
/// compared with numbers of flushes.
#[inline]
pub(crate) fn pascal(m: u64, k: u64) -> u64 {
    match DIAGONALS.get(k as usize).and_then(|diagonal| diagonal.get(m as usize)) {
        Some(value) => *value,
        None => pascal_anew(m, k),
    }
}

fn pascal_anew(m: u64, k: u64) -> u64 {
    let mut product: u64 = 1;
    for step in 1..=m.min(k) {
        let factor = m.max(k) + step;
        product = match product.checked_mul(factor) {
            Some(product) => product / step,
            // A division of 128 bits is several times as slow.
            None => {
                match u64::try_from(u128::from(product) * u128::from(factor) / u128::from(step)) {
                    Ok(product) => product,
                    Err(_) => return u64::MAX,
                }
            }
        };
    }
    product
}

/// Returns the least m with `pascal(m, k) > limit`. It falls as k grows.
pub(crate) fn least_above(k: u64, limit: u64) -> u64 {
    let kept = match DIAGONALS.get(k as usize) {
        // For usual values of k the result is near the start, so that a walk is faster than a
        // binary search.
        Some(diagonal) => diagonal.iter().take_while(|n| **n <= limit).count() as u64,
        None => 0,
    };
    if k < KEPT as u64 && kept < KEPT as u64 {
        return kept;
    }
    least(kept, |m| pascal(m, k) > limit)
}

/// Returns the least number at or above `from` for which `is_enough` returns true. It must also
/// return true for all larger numbers.
pub(crate) fn least(from: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    let mut low = from;
    let mut high = from;
    let mut step = 1;
    while !is_enough(high) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    while low < high {
        let middle = u64::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns B(m, k, t) of Mao et al., section 2: the number of ancestors smaller than node `t` in
/// the search tree on `pascal(m, k) - 1` nodes whose stack depth is less than `k` and whose merge
/// depth is less than `m`.
///
/// That is the number of terms if t is written as pascal(m1, k) + pascal(m2, k - 1) + ... with each
/// term as large as possible. `m` only bounds the first term, and every caller keeps that bound, so
/// it is not a parameter. `t` must be at most 2^62.
pub(crate) fn stack_depth(mut k: u64, mut t: u64) -> u64 {
    if k == 0 {
        return 0;
    }
    // At least 1 as long as t is.
    let mut m = least_above(k, t);
    let mut depth = 0;
    while t > 0 && (m >= KEPT as u64 || k >= KEPT as u64) {
        m = m + 1 - least(1, |fall| pascal(m.saturating_sub(fall), k) <= t);
        t -= pascal(m - 1, k);
        k -= 1;
        depth += 1;
    }
    // The rest lies in the stored part of the triangle, where m mostly falls by 1 or 2.
    let kept = KEPT.min(k as usize + 1);
    for (diagonal, small) in DIAGONALS[..kept].iter().zip(&SMALL_DEPTHS[..kept]).rev() {
        if let Some(rest) = small.get(t as usize) {
            return depth + u64::from(*rest);
        }
        while diagonal[m as usize - 1] > t {
            m -= 1;
        }
        t -= diagonal[m as usize - 1];
        depth += 1;
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(n: u64, k: u64) -> u64 {
        if k > n { 0 } else { pascal(n - k, k) }
    }

    /// Returns B(m, k, t) by the published recurrence.
    fn recurrence(m: u64, k: u64, t: u64) -> u64 {
        match t {
            0 => 0,
            _ if t < choose(m + k - 1, k) => recurrence(m - 1, k, t),
            _ => 1 + recurrence(m, k - 1, t - choose(m + k - 1, k)),
        }
    }

    #[test]
    fn a_loop_is_the_recurrence() {
        for k in 1..9 {
            for m in 1..8 {
                for t in 0..choose(m + k, k) {
                    assert_eq!(stack_depth(k, t), recurrence(m, k, t), "B({m}, {k}, {t})");
                }
            }
        }
    }

    #[test]
    fn coefficients_are_exact_or_too_large() {
        assert_eq!(choose(10, 3), 120);
        assert_eq!(choose(3, 10), 0);
        assert_eq!(choose(66, 33), 7_219_428_434_016_265_740);
        assert_eq!(choose(200, 100), u64::MAX);
        assert_eq!(pascal(1_000_000, 2), 500_001_500_001);
        assert_eq!(pascal(2, 1_000_000), 500_001_500_001);
    }

    #[test]
    fn the_least_number_is_found_wherever_it_is() {
        for from in [0, 1, 7] {
            for least_enough in from..from + 40 {
                assert_eq!(least(from, |value| value >= least_enough), least_enough);
            }
        }
    }

    #[test]
    fn any_number_of_flushes_has_a_depth() {
        for k in (1..=64).chain([65, 100, 1000]) {
            for t in [1, 1 << 20, 1 << 62] {
                assert!((1..=k).contains(&stack_depth(k, t)), "k = {k}, t = {t}");
            }
        }
    }
}
