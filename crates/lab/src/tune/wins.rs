//! Says of each choice of a frontier under which limits it would be the best.

use super::choice::Choice;

/// Fills in `wins_with` of the choices of a frontier, which are sorted by write cost.
///
/// A choice wins if all choices that write less are excluded. One limit suffices if all of them
/// read more, or all of them hold more. Otherwise both limits together do, because no choice of a
/// frontier beats another in everything.
pub(super) fn explain(frontier: &mut [Choice]) {
    for index in 0..frontier.len() {
        let (cheaper, rest) = frontier.split_at(index);
        let costs = rest[0].costs;
        let all_read_more =
            cheaper.iter().all(|other| other.costs.read_cost_mean > costs.read_cost_mean);
        let all_hold_more = cheaper
            .iter()
            .all(|other| other.costs.space_cost_physical_mean > costs.space_cost_physical_mean);
        let reads = format!("--read-cost-max {:.2}", up(costs.read_cost_mean));
        let space =
            format!("--space-cost-max {:.3}", up(costs.space_cost_physical_mean * 10.0) / 10.0);
        let wins_with = if cheaper.is_empty() {
            "no limits, --weights fewest-bytes".to_owned()
        } else if all_read_more {
            reads
        } else if all_hold_more {
            space
        } else {
            format!("{reads} {space}")
        };
        frontier[index].wins_with = Some(wins_with);
    }
}

/// Rounds up to two digits.
fn up(cost: f64) -> f64 {
    (cost * 100.0).ceil() / 100.0
}
