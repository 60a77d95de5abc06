//! Binomial coefficients.

/// Returns the binomial coefficient `upper` over `lower`, or `u128::MAX` if it is too large.
pub(super) fn binomial(upper: u64, lower: u64) -> u128 {
    let lower = lower.min(upper - lower);
    let mut product: u128 = 1;
    for step in 1..=lower {
        // Each intermediate product is divisible, so the division is exact.
        let Some(next) = product.checked_mul(u128::from(upper - lower + step)) else {
            return u128::MAX;
        };
        product = next / u128::from(step);
    }
    product
}
