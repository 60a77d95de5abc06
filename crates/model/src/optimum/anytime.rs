//! Schedules that are fixed in advance and may end at any time.

use super::priced::Priced;

/// Returns the schedule for flushes of size one that is nearest to the least at all of `ends`: the
/// mean of what it costs over the least is smallest. Costs are merge outputs and flushes,
/// plus `price` for each run after each flush. `ends` are numbers of flushes, ascending, at least
/// one, and all above 0.
///
/// For each flush, the result has the first flush of the run that it makes, both counted from 0.
///
/// The optimum knows when writing ends. This is the best that anybody can do who knows only that it
/// ends at one of `ends`, each as likely as any other. A merge at flush `t` counts once for each
/// later end, over the least cost there, so that the recursion of the module has these weights. The
/// time grows with the third power of the last end: 2048 flushes take 3 s.
#[must_use]
pub fn anytime(price: f64, ends: &[u64]) -> Vec<u64> {
    let Some(last) = ends.last().map(|end| *end as usize) else { return Vec::new() };
    let mut weights = vec![0.0; last];
    for end in ends {
        let sizes = vec![1; *end as usize];
        let least = Priced::new(&sizes, None).at_price(price);
        let cost = least.merged + price * least.runs as f64 + *end as f64;
        weights[..*end as usize].iter_mut().for_each(|weight| *weight += 1.0 / cost);
    }
    let below: Vec<f64> = std::iter::once(0.0)
        .chain(weights.iter().scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }))
        .collect();
    let width = last + 1;
    // The costs of flushes `from..end`: by rows of one first flush, and by rows of one end.
    let mut by_first = vec![0.0; width * width];
    let mut by_end = vec![0.0; width * width];
    let mut roots = vec![0_u32; width * width];
    for from in (0..last).rev() {
        for end in from + 1..width {
            let left = &by_first[from * width + from..][..end - from];
            let right = &by_end[end * width + from + 1..][..end - from];
            let mut least = (f64::INFINITY, from);
            for (before, (left, right)) in left.iter().zip(right).enumerate() {
                let root = from + before;
                let merged = if before > 0 { (before + 1) as f64 * weights[root] } else { 0.0 };
                let cost = left + right + merged + price * (below[end] - below[root]);
                if cost < least.0 {
                    least = (cost, root);
                }
            }
            by_first[from * width + end] = least.0;
            by_end[end * width + from] = least.0;
            roots[from * width + end] = least.1 as u32;
        }
    }
    let mut firsts = vec![0; last];
    let mut parts = vec![(0, last)];
    while let Some((from, end)) = parts.pop() {
        if from < end {
            let root = roots[from * width + end] as usize;
            firsts[root] = from as u64;
            parts.extend([(from, root), (root + 1, end)]);
        }
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns merge outputs and the sum of runs after each flush, from 0 flushes on.
    fn carried_out(firsts: &[u64]) -> Vec<(u64, u64)> {
        let mut runs: Vec<u64> = Vec::new();
        let mut totals = vec![(0, 0)];
        for (flush, first) in firsts.iter().enumerate() {
            runs.retain(|run| run < first);
            runs.push(*first);
            let output = flush as u64 - first + 1;
            let (merged, sum) = totals[flush];
            let merged = merged + if output > 1 { output } else { 0 };
            totals.push((merged, sum + runs.len() as u64));
        }
        totals
    }

    #[test]
    fn with_one_end_it_is_the_optimum() {
        for (price, flushes) in [(0.1, 40), (1.0, 60), (7.0, 33)] {
            let (merged, runs) = carried_out(&anytime(price, &[flushes]))[flushes as usize];
            let sizes = vec![1; flushes as usize];
            let least = Priced::new(&sizes, None).at_price(price);
            let cost = merged as f64 + price * runs as f64;
            let least = least.merged + price * least.runs as f64;
            assert!((cost - least).abs() < 1e-6, "{price}, {flushes}: {cost}, {least}");
        }
    }

    /// Whoever does not know the end pays at each end, and no more than who plans for the last one.
    #[test]
    fn with_several_ends_it_is_near_the_optimum_at_each() {
        let ends = [10, 23, 50, 75, 128];
        let price = 0.3;
        let mean_over = |firsts: &[u64]| {
            let totals = carried_out(firsts);
            let over = ends.iter().map(|end| {
                let sizes = vec![1; *end as usize];
                let least = Priced::new(&sizes, None).at_price(price);
                let (merged, runs) = totals[*end as usize];
                let cost = merged as f64 + price * runs as f64 + *end as f64;
                cost / (least.merged + price * least.runs as f64 + *end as f64)
            });
            over.sum::<f64>() / ends.len() as f64
        };
        let over = mean_over(&anytime(price, &ends));
        assert!(over > 1.001 && over < 1.05, "{over}");
        for end in ends {
            let mut firsts = anytime(price, &[end]);
            // Behind its end, each flush is a run of its own.
            firsts.extend(firsts.len() as u64..128);
            assert!(mean_over(&firsts) >= over, "{end}");
        }
    }
}
