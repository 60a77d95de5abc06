//! Policies of other systems, beside figures of these systems.

use super::frame::{hold, measure};
use lsmith_papers::{Effort, Verdict};

#[test]
fn policies_of_other_systems_come_to_their_figures() {
    let figure = measure("named", Effort::QUICK);
    for part in [
        "ucs, ",
        "fluid(",
        "lazy leveling, ratio",
        "ics: ",
        "clickhouse: ",
        "b, lucene_tiered",
        "spooky, Pebble: mean runs",
        "spooky, Pebble: space",
        "spooky, ratio",
    ] {
        hold(&figure, &[part]);
    }
    // Merges of neighbours leave more runs than merges of any segments. Pebble's lazy leveling and
    // tiering write more than they do here.
    let differs = figure.claims.iter().filter(|claim| claim.verdict == Verdict::Differs);
    let differs: Vec<&str> = differs.map(|claim| claim.claim.as_str()).collect();
    assert_eq!(
        differs,
        [
            "c, lucene_tiered: mean segments of Lucene",
            "c, lucene_tiered: most segments of Lucene",
            "spooky, Pebble: write cost over lazy leveling",
            "spooky, Pebble: write cost over tiering",
        ]
    );
}
