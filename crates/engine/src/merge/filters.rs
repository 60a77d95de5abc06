//! The number of bits per key in the filters of a merge's output.
//!
//! The expected number of vain reads of a lookup of an absent key is the sum, over all runs, of the
//! false-positive rates of their filters. A bit per key costs less memory in a small run than in a
//! large one. For a given total of bits, the sum is least if each rate is in proportion to the size
//! of its run (Dayan, Athanassoulis and Idreos 2017, for levels). With `s` for the run's share of
//! all entries, and `H` for the entropy of these shares, this means
//!
//! ```text
//! bits = average + (ln (1 / s) - H) / (ln 2)^2
//! ```
//!
//! A filter stays as it is until its table is merged, while the tree around it changes. Just after
//! a large merge the tree holds little but its output, and `H` is small. Later runs need bits that
//! this output must spare. So `H` is a mean of the entropies before and after the merge, weighted
//! so that the average over time is kept for stacks of all kinds.

use lsmith_tree::{MergePlan, Place, Tree};

/// More bits per key than this do not help, because the lines of a filter fill unevenly.
const BITS_MAX: f64 = 22.0;

/// With fewer bits per key than this a filter is of no use, even for the largest run.
const BITS_MIN: f64 = 1.0;

/// The weight of the entropy before a merge; the entropy after it has the rest. With a greater
/// weight the average over time is below the requested one, with a smaller weight above it.
const BEFORE_WEIGHT: f64 = 0.4;

/// The square of ln 2: each bit per key lowers the logarithm of the false-positive rate by it.
const PER_BIT: f64 = std::f64::consts::LN_2 * std::f64::consts::LN_2;

/// Returns the bits per key for the output of `plan` in `tree`, so that all filters together have
/// `average` bits per key.
pub(super) fn bits_by_size(average: f64, plan: &MergePlan, tree: &Tree) -> f64 {
    let target = match plan.place {
        Place::Into(run) | Place::Append(run) => Some(run),
        _ => None,
    };
    let inputs = plan.inputs.iter().filter_map(|input| {
        let (_, run) = tree.run(input.run)?;
        Some(run.size_within(&input.range).entries)
    });
    let mut output: u64 = inputs.sum();
    let mut before = Vec::new();
    let mut others = Vec::new();
    for run in tree.disk_runs() {
        let input = plan.inputs.iter().find(|input| input.run == run.id());
        let taken = input.map_or(0, |input| run.size_within(&input.range).entries);
        let rest = run.size().entries.saturating_sub(taken);
        before.push(run.size().entries);
        if target == Some(run.id()) {
            output += rest;
        } else {
            others.push(rest);
        }
    }
    bits(average, output, &others, &before)
}

/// Returns the bits per key for a run of `output` entries next to runs of `others` entries. Before
/// the merge there were runs of `before` entries.
fn bits(average: f64, output: u64, others: &[u64], before: &[u64]) -> f64 {
    let after: Vec<u64> = others.iter().copied().chain([output]).collect();
    let entropy = if before.iter().any(|entries| *entries > 0) {
        BEFORE_WEIGHT * entropy(before) + (1.0 - BEFORE_WEIGHT) * entropy(&after)
    } else {
        entropy(&after)
    };
    let share = output.max(1) as f64 / after.iter().sum::<u64>().max(1) as f64;
    (average + (-share.ln() - entropy) / PER_BIT).clamp(BITS_MIN, BITS_MAX.max(average))
}

/// Returns the entropy, in nats, of the shares of `parts` in their sum.
fn entropy(parts: &[u64]) -> f64 {
    let whole = parts.iter().sum::<u64>() as f64;
    let parts = parts.iter().filter(|part| **part > 0).map(|part| *part as f64 / whole);
    -parts.map(|share| share * share.ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sum of the false-positive rates of filters with `bits` per key.
    fn false_positives(bits: &[f64]) -> f64 {
        bits.iter().map(|bits| (-bits * PER_BIT).exp()).sum()
    }

    #[test]
    fn single_run_gets_the_average() {
        assert_eq!(bits(10.0, 1000, &[], &[]), 10.0);
        assert_eq!(bits(10.0, 1000, &[], &[1000]), 10.0);
    }

    #[test]
    fn shares_are_in_proportion_to_sizes_and_bits_keep_the_average() {
        let sizes = [100, 100, 200, 400, 3200];
        let of = |index: usize| {
            let others: Vec<u64> = (0..5).filter(|i| *i != index).map(|i| sizes[i]).collect();
            bits(10.0, sizes[index], &others, &sizes)
        };
        let all: Vec<f64> = (0..5).map(of).collect();
        let sum: f64 = all.iter().zip(sizes).map(|(bits, size)| bits * size as f64).sum();
        assert!((sum / 4000.0 - 10.0).abs() < 1e-9, "{all:?}");
        let share = |index: usize| (-all[index] * PER_BIT).exp() / sizes[index] as f64;
        assert!((1..5).all(|index| (share(index) / share(0) - 1.0).abs() < 1e-9), "{all:?}");
        let ratio = false_positives(&all) / false_positives(&[10.0; 5]);
        assert!((0.3..0.5).contains(&ratio), "{ratio}");
    }

    /// Merges the four newest runs of a stack whenever they have one size.
    #[test]
    fn filters_pass_fewer_absent_keys_with_no_more_bits() {
        let mut stack: Vec<(u64, f64)> = Vec::new();
        let mut bits_sum = 0.0;
        let mut sized_sum = 0.0;
        let mut equal_sum = 0.0;
        let sizes = |stack: &[(u64, f64)]| stack.iter().map(|run| run.0).collect::<Vec<_>>();
        for flushes in 1..=2000 {
            let before = sizes(&stack);
            stack.push((1, bits(10.0, 1, &before, &before)));
            while let [rest @ .., a, b, c, d] = &stack[..]
                && [b.0, c.0, d.0] == [a.0; 3]
            {
                let others = sizes(rest);
                let size = 4 * a.0;
                let run = (size, bits(10.0, size, &others, &sizes(&stack)));
                stack.truncate(others.len());
                stack.push(run);
            }
            let weighed: f64 = stack.iter().map(|(size, bits)| *size as f64 * bits).sum();
            bits_sum += weighed / f64::from(flushes);
            sized_sum += false_positives(&stack.iter().map(|run| run.1).collect::<Vec<_>>());
            equal_sum += false_positives(&vec![10.0; stack.len()]);
        }
        let bits = bits_sum / 2000.0;
        let ratio = sized_sum / equal_sum;
        assert!((9.6..10.1).contains(&bits), "{bits} bits for each key");
        assert!((0.3..0.5).contains(&ratio), "{ratio} of what equal filters let pass");
    }
}
