//! The claims of the figure.

use super::aging::{JUNGLE, JUNGLE_ENTRIES, LEVELING, THRESHOLDS, TIERING};
use crate::form::*;

/// A claim that is explained. Other claims must not contain it.
const WRITES_OF_FIVE: &str = "jungle(c=5) over tiering, writes";

/// Adds the paper's claims.
pub(super) fn judge(figure: &mut Figure) {
    writes(figure);
    spaces(figure);
    found_elsewhere(figure);
    reads(figure);
    explain(figure);
}

fn writes(figure: &mut Figure) {
    let over = |[above, below]: [(&str, f64); 2]| {
        let write = |(curve, c): (&str, f64)| figure.y("write", curve, c);
        over(write(above), write(below))
    };
    let [leveling, tiering, two, five, ten] =
        [(LEVELING, 2.0), (TIERING, 2.0), (JUNGLE, 2.0), (JUNGLE, 5.0), (JUNGLE, 10.0)];
    let found = [[tiering, leveling], [ten, tiering], [leveling, two], [five, tiering]].map(over);
    figure.near("tiering writes over leveling", 0.25, found[0], 0.08);
    figure.near("jungle(c=10) over tiering", 1.0, found[1], 0.2);
    figure.at_least("leveling over jungle(c=2)", found[2], 3.0);
    figure.at_most(WRITES_OF_FIVE, found[3], 1.0);
}

fn spaces(figure: &mut Figure) {
    for (curve, paper, tolerance) in [(LEVELING, 1.2, 0.1), (TIERING, 3.24, 0.4)] {
        let found = figure.y("space", curve, 2.0);
        figure.near(format!("space of {curve}, mean"), paper, found, tolerance);
    }
    let spread = |curve: &str| {
        let edge = |edge: &str| figure.y("space range", &format!("{curve}, {edge}"), 3.0);
        less(edge("most"), edge("least"))
    };
    let claim = "space of jungle(c=3), most less least, over that of tiering (tighter)";
    figure.at_most(claim, over(spread(JUNGLE), spread(TIERING)), 1.0);
}

/// Holds the figure against another simulation of the paper's store, at its scale.
fn found_elsewhere(figure: &mut Figure) {
    for (name, what, panel, curve, elsewhere, tolerance) in [
        ("leveling", "writes", "write", LEVELING, 18.2, 0.9),
        ("jungle(c=3)", "writes", "write", JUNGLE, 3.53, 0.18),
        ("jungle(c=3)", "writes without nodes", "write", JUNGLE_ENTRIES, 3.24, 0.16),
        ("leveling", "space", "space", LEVELING, 1.14, 0.05),
        ("jungle(c=3)", "space", "space", JUNGLE, 2.12, 0.1),
    ] {
        let found = figure.y(panel, curve, 3.0);
        let claim = format!("{name}: {what} (another simulation)");
        figure.near(claim, elsewhere, found, tolerance);
    }
}

fn reads(figure: &mut Figure) {
    for c in THRESHOLDS {
        let claim = format!("lookups per second of jungle(c={c}) over leveling (no slower)");
        figure.at_least(claim, figure.ratio("lookups", JUNGLE, LEVELING, c), 0.98);
    }
    let claim = "lookups per second of tiering over leveling (30 % fewer)";
    figure.near(claim, 0.7, figure.ratio("lookups", TIERING, LEVELING, 3.0), 0.1);
    let [jungle, tiering] = [JUNGLE, TIERING].map(|curve| format!("{curve}, p99"));
    for c in THRESHOLDS {
        let claim = format!("p99 of lookups of jungle(c={c}) over tiering (a third)");
        figure.at_most(claim, figure.ratio("latency", &jungle, &tiering, c), 0.4);
    }
}

/// Gives the reasons for differences.
fn explain(figure: &mut Figure) {
    figure.explain(
        WRITES_OF_FIVE,
        "at a small scale append tables have few entries, and more of them are split.",
    );
    figure.explain(
        "space of tiering",
        "it depends on the size of memory, which the paper does not give: 3.5 to 4.2 with a \
         quarter to four times of it. Keys are uniform, so that runs share few keys until they are \
         merged.",
    );
    figure.explain(
        "leveling: writes (another",
        "one difference is known: there, each flush rewrites level 0; here, memtables are a level \
         of their own above it.",
    );
    figure.explain(
        "jungle(c=3): writes",
        "at a small scale append tables have few entries, and more of them are split. The \
         difference grows as the scale shrinks: 9 % at that of a quick run, 16 % at a thirtieth of \
         that.",
    );
    figure.explain(
        "over leveling (no slower)",
        "leveling here has sorted tables, whose first keys of blocks are in memory. The paper's \
         tables are append tables under every policy. Nodes of append tables are looked up in the \
         cache, take a part of it, and cost two steps more.",
    );
    figure.explain(
        "of tiering over leveling (30 % fewer)",
        "fewer filters err than the paper's 1.7 %: they have 10 bits per key on average here, and \
         more in small runs. Keys are looked up at one moment, and how many runs tiering has then \
         is chance. `jungle-reads` measures what both make: 7 % warm, and 15 % cold.",
    );
    figure.explain(
        "over tiering (a third)",
        "probably for the same reason: the p99 of tiering is two reads of the device, not three.",
    );
}
