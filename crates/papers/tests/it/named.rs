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
        "autumn, c 1",
        "autumn, ratio 4",
        "most runs, one a level",
        "mean runs over leveling",
        "most runs, of a round and two levels",
        "write cost over leveling in pieces",
        "vertiorizon, levels=3",
        "space beyond live data",
        "mean runs over the horizontal scheme",
        "spooky, Pebble: mean runs",
        "spooky, Pebble: space",
        "spooky, ratio",
        "universal, incremental, newer runs",
        "lethe, deletes within 1/6",
        "lethe, deletes within 1/4 of the run: space",
        "lethe, deletes within 1/2 of the run: space",
        "hbase_stripe, ",
        "leveled(sizes=dynamic)",
        "leveled, fixed sizes",
        "arce, reads of",
        "arce, reads that shift",
        "moose, price 1: cost over fluid",
        "moose, price 3",
    ] {
        hold(&figure, &[part]);
    }
    // Autumn with a small ratio writes more than leveling with as few runs. Vertiorizon with many
    // runs writes more than tiering, and saves less space than in the paper. Merges of neighbours
    // leave more runs than merges of any segments. Pebble's lazy leveling and tiering write more
    // than they do here. Pieces with the most tombstones overlap more, and the longer deletes may
    // stay, the more pieces are picked so. Levels of a tree that grows
    // change with it.
    let differs = figure.claims.iter().filter(|claim| claim.verdict == Verdict::Differs);
    let differs: Vec<&str> = differs.map(|claim| claim.claim.as_str()).collect();
    assert_eq!(
        differs,
        [
            "autumn, ratio 2, c 0.8: write cost over leveling with no more runs",
            "autumn, ratio 2, c 0.5: write cost over leveling with no more runs",
            "vertiorizon, levels=2: write cost over tiering with no more runs",
            "c, lucene_tiered: mean segments of Lucene",
            "c, lucene_tiered: most segments of Lucene",
            "spooky, Pebble: write cost over lazy leveling",
            "spooky, Pebble: write cost over tiering",
            "vertiorizon, ratio 3: mean space saved, horizontal over it",
            "vertiorizon, ratio 3: peak space saved, horizontal over it",
            "vertiorizon, ratio 4: mean space saved, horizontal over it",
            "vertiorizon, ratio 4: peak space saved, horizontal over it",
            "lethe, deletes within 1/4 of the run: write cost over leveling",
            "lethe, deletes within 1/2 of the run: write cost over leveling",
            "moose, price 0.1: cost over tiering of the best ratio",
            "moose, price 0.1: cost over fluid of the best ratio",
            "moose, price 0.3: cost over fluid of the best ratio",
        ]
    );
}
