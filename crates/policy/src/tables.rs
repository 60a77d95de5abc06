//! Binomial coefficients, and the stack depth that the static policies are made of.

/// `n` over `k`, or `u64::MAX` where that is too large: the tables are used in comparisons with
/// counts of flushes only.
pub(crate) fn choose(n: u64, k: u64) -> u64 {
    if k > n {
        return 0;
    }
    let k = k.min(n - k);
    let mut product: u128 = 1;
    for step in 1..=k {
        product = product * u128::from(n - k + step) / u128::from(step);
        if product > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    product as u64
}

/// B(m, k, t) of Mao et al., section 2: the number of ancestors smaller than node `t` in the search
/// tree on `choose(m + k, k) - 1` nodes whose stack depth is less than `k` and merge depth less
/// than `m`. Written as a loop; B(m, k, 0) = 0.
pub(crate) fn stack_depth(mut m: u64, mut k: u64, mut t: u64) -> u64 {
    let mut depth = 0;
    // choose(m + k - 1, k), kept up to date as m or k falls by one.
    let mut left = if m + k == 0 { 0 } else { choose(m + k - 1, k) };
    while t > 0 && (m > 0 || k > 0) {
        if t < left {
            left = step_down(left, m - 1, m + k - 1, || choose(m + k - 2, k));
            m -= 1;
        } else {
            t -= left;
            depth += 1;
            if k == 0 {
                break;
            }
            left = step_down(left, k, m + k - 1, || choose(m + k - 2, k - 1));
            k -= 1;
        }
    }
    depth
}

/// `value * numerator / denominator`, which is exact for a neighbour in Pascal's triangle; computed
/// anew where `value` stands for something too large.
fn step_down(value: u64, numerator: u64, denominator: u64, anew: impl Fn() -> u64) -> u64 {
    if value == u64::MAX || denominator == 0 {
        return anew();
    }
    (u128::from(value) * u128::from(numerator) / u128::from(denominator)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recurrence as it is published.
    fn recurrence(m: u64, k: u64, t: u64) -> u64 {
        match t {
            0 => 0,
            _ if t < choose(m + k - 1, k) => recurrence(m - 1, k, t),
            _ => 1 + recurrence(m, k - 1, t - choose(m + k - 1, k)),
        }
    }

    #[test]
    fn the_loop_is_the_recurrence() {
        for k in 1..9 {
            for m in 1..8 {
                for t in 0..choose(m + k, k) {
                    assert_eq!(stack_depth(m, k, t), recurrence(m, k, t), "B({m}, {k}, {t})");
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
    }
}
