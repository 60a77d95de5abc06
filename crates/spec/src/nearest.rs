//! The known name that a misspelled name probably means.

/// Returns the name of `known` nearest to `name` by edit distance, or `None` if none is near enough
/// to be meant: more than a third of its letters (at least one, at most three) would have to
/// change.
///
/// An edit inserts, removes or replaces a letter, or swaps two neighbours; upper and lower case
/// count as equal. Among equally near names the first wins.
///
/// ```
/// use lsmith_spec::nearest;
///
/// assert_eq!(nearest("tierd", &["leveled", "tiered"]), Some("tiered"));
/// assert_eq!(nearest("quantum", &["leveled", "tiered"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters = fold(name);
    known
        .iter()
        .map(|&candidate| (candidate, fold(candidate)))
        .filter_map(|(candidate, folded)| {
            let limit = (letters.len().max(folded.len()) / 3).clamp(1, 3);
            // The lengths bound the distance from below; long garbage costs nothing.
            if letters.len().abs_diff(folded.len()) > limit {
                return None;
            }
            let distance = edit_distance(&letters, &folded);
            (distance <= limit && distance < letters.len().max(1)).then_some((distance, candidate))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Damerau-Levenshtein distance in its common form, where no substring is edited twice.
fn edit_distance(left: &[char], right: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in right.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == right[j - 1] && left[i - 1] == b {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(left: &str, right: &str) -> usize {
        edit_distance(&fold(left), &fold(right))
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("teired", "tiered"), 1);
        assert_eq!(distance("TIERED", "tiered"), 0);
    }

    #[test]
    fn only_near_names_are_offered() {
        let known = ["none", "bigtable", "constant", "tiered", "leveled", "k"];
        assert_eq!(nearest("tierd", &known), Some("tiered"));
        assert_eq!(nearest("levelled", &known), Some("leveled"));
        assert_eq!(nearest("Bigtabel", &known), Some("bigtable"));
        assert_eq!(nearest("x", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest(&"x".repeat(100_000), &known), None);
    }
}
