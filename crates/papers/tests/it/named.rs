//! Policies of other systems, beside figures of these systems.

use super::frame::{hold, measure};
use lsmith_papers::{Effort, Verdict};

#[test]
fn policies_of_other_systems_come_to_their_figures() {
    let figure = measure("named", Effort::QUICK);
    for part in ["ucs, ", "fluid(", "lazy leveling", "ics: ", "clickhouse: ", "b, lucene_tiered"] {
        hold(&figure, &[part]);
    }
    // Merges of neighbours leave more runs than merges of any segments.
    let differs = figure.claims.iter().filter(|claim| claim.verdict == Verdict::Differs);
    let differs: Vec<&str> = differs.map(|claim| claim.claim.as_str()).collect();
    assert_eq!(
        differs,
        ["c, lucene_tiered: mean segments of Lucene", "c, lucene_tiered: most segments of Lucene"]
    );
}
