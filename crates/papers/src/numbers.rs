//! Ends, means, ratios and ranks of numbers, and lists of words.

/// Returns the least of `values`; `None` if empty.
pub(crate) fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

/// Returns the greatest of `values`; `None` if empty.
pub(crate) fn most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

/// Returns the greatest absolute value; `None` if empty.
pub(crate) fn farthest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    most(values.into_iter().map(f64::abs))
}

/// Returns the mean of `values`; `None` if empty.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sum = 0.0;
    let mut count = 0u64;
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// Returns `one` over `other`, if there are both.
pub(crate) fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other?)
}

/// Returns `one` less `other`, if there are both.
pub(crate) fn less(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? - other?)
}

/// Returns by how many percent `found` is above `expected`; negative for below.
pub(crate) fn percent_off(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0) * 100.0
}

/// Returns the number of pairs of `items` that have the same order by both differences that
/// `compared` returns, and the number of all pairs. Leaves out pairs without differences.
pub(crate) fn ranked<T>(
    items: &[T],
    compared: impl Fn(&T, &T) -> Option<(f64, f64)>,
) -> (usize, usize) {
    let pairs = items.iter().enumerate().flat_map(|(index, one)| {
        items[index + 1..].iter().filter_map(|other| compared(one, other)).collect::<Vec<_>>()
    });
    pairs.fold((0, 0), |(alike, all), (left, right)| {
        (alike + usize::from((left > 0.0) == (right > 0.0)), all + 1)
    })
}

/// Costs that differ by at most this share count as equal when policies are ranked.
const TIE: f64 = 0.03;

/// Returns the number of pairs of `names` whose order by `cost` differs from their order by
/// `before`. Ignores pairs that differ by less than the share [`TIE`] in either.
pub(crate) fn pairs_turned(
    names: &[&str],
    cost: impl Fn(&str) -> f64,
    before: impl Fn(&str) -> f64,
) -> f64 {
    let is_above = |one: f64, other: f64| one > other * (1.0 + TIE);
    let turned = |one: &str, other: &str| {
        is_above(cost(one), cost(other)) && is_above(before(other), before(one))
    };
    let pairs = names.iter().flat_map(|one| names.iter().map(move |other| (one, other)));
    pairs.filter(|(one, other)| turned(one, other)).count() as f64
}

/// Returns `words`, separated by `separator`.
pub(crate) fn joined(separator: &str, words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_ends() {
        let values = [3.0, 1.0, 2.0];
        assert_eq!((mean(values), least(values), most(values)), (Some(2.0), Some(1.0), Some(3.0)));
        assert_eq!((mean([]), least([]), most([])), (None, None, None));
        assert_eq!(farthest([1.0, -4.0]), Some(4.0));
    }
}
