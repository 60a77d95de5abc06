//! What other settings and policies would have cost, as text.

use super::words::bytes;
use crate::table::Importance::{Least, Rank};
use crate::table::{Column, column, cost, percent, table_of};
use lsmith_doctor::{Move, Replay, Row};

const COLUMNS: [Column<Row>; 8] = [
    column("\npolicy", Rank(0), |row| row.policy.clone()),
    column("\nof", Rank(1), of),
    column("\nwrite", Rank(2), |row| cost(row.write)),
    column("\nleast", Rank(5), |row| {
        format!("{}{}", if row.is_exact { "" } else { ">" }, cost(row.least))
    }),
    column("runs\nmean", Rank(3), |row| cost(row.runs_mean)),
    column("\nmost", Least, |row| row.runs_max.to_string()),
    column("space\npeak", Rank(4), |row| cost(row.space_peak)),
    column("\nnow", Least, |row| cost(row.space_now)),
];

/// The store of Cassandra's strategies.
const CASSANDRA: &str = "Cassandra";

/// What the words of settings mean: of RocksDB, and of Cassandra.
const SETTINGS: [&str; 2] = [
    "\
level: files in level 0 that are merged, bytes of level 1, multiplier. universal: runs that are
  merged, size ratio, greatest space.",
    "\
size-tiered: the least SSTables of a merge, and the bytes below which all count as one size.
  leveled: the bytes of an SSTable. unified: scaling parameters.",
];

const LEGEND: &str = "\
write: bytes written per byte flushed. least: what the best schedule of merges of whole runs writes
  with as many runs, if no key comes twice; a policy that drops many entries may write less.
runs: sorted runs after a flush, mean and most. A lookup may have to ask each.
space: bytes held per live byte, at the worst moment and at the end.";

fn of(row: &Row) -> String {
    let mark = match (row.is_present, row.is_nearest) {
        (true, _) => ", now",
        (_, true) => ", nearest",
        _ => "",
    };
    format!("{}{mark}", row.store)
}

/// Returns the lines of a replay.
pub(super) fn shown(replay: &Replay) -> Vec<String> {
    let (write, off) = (cost(replay.replayed), percent(Some(replay.error)));
    let band = percent_plain(replay.band);
    let trust = if replay.error.abs() > Replay::BAND_MIN {
        format!("That is more than a tenth: take the table as a hint. Less than {band} % is equal.")
    } else {
        format!("Rows that differ by less than {band} % count as equal.")
    };
    let mut parts = vec![
        "The same flushes again, in a simulation.".to_owned(),
        format!(
            "The settings of now write {write} bytes per byte flushed, {off} % beside the LOG."
        ),
        trust,
        "The simulation does not know:".to_owned(),
    ];
    parts.extend(replay.doubts.iter().map(|doubt| format!("- {doubt}")));
    let is_cassandra = replay.rows.iter().any(|row| row.is_present && row.store == CASSANDRA);
    parts.extend([String::new(), table_of(&COLUMNS, 2, &replay.rows)]);
    parts.extend([SETTINGS[usize::from(is_cassandra)], LEGEND, ""].map(str::to_owned));
    if replay.moves.is_empty() {
        parts.push(format!("No row writes less than now by {band} %: keep the settings."));
    }
    parts.extend(replay.moves.iter().flat_map(|way| moved(way, is_cassandra)));
    parts
}

/// Returns a part of a whole in percent, without a sign.
fn percent_plain(part: f64) -> String {
    format!("{:.0}", 100.0 * part)
}

/// Returns the option of a table of Cassandra that takes `options`, each `name=value`.
fn cql<'a>(options: impl Iterator<Item = &'a str>) -> String {
    let quoted = options.map(|option| format!("'{}'", option.replacen('=', "': '", 1)));
    format!("  In CQL: ... WITH compaction = {{{}}};", quoted.collect::<Vec<_>>().join(", "))
}

/// Returns what a move saves, and what it takes. `is_cassandra`: the settings of now are a strategy
/// of Cassandra.
fn moved(way: &Move, is_cassandra: bool) -> Vec<String> {
    let saves = percent_plain(way.saves);
    let price = if way.is_free { "" } else { " for more runs or space" };
    let mut parts = vec![format!("{}, {}: {saves} % fewer bytes{price}.", way.policy, way.store)];
    if way.store == CASSANDRA {
        parts.push(cql(way.options.iter().map(String::as_str)));
    } else if is_cassandra {
        let policy = format!("policy={}", way.policy);
        let class = "class=lsmith.cassandra.LsmithCompactionStrategy";
        parts.push(cql([class, &policy].into_iter()));
    } else if way.options.is_empty() {
        parts.push(format!("  In a store of lsmith: lsmith db STORE policy '{}'", way.policy));
    } else {
        parts.push("  In OPTIONS:".to_owned());
        parts.extend(way.options.iter().map(|option| format!("    {option}")));
    }
    parts.push(match (way.merge_bytes, way.extra_bytes) {
        (Some(0), _) => {
            "  Nothing is merged for it: compactions start from the tree of now.".into()
        }
        (Some(merged), Some(extra)) => format!(
            "  The move merges the tree once: it writes up to {}, and needs up to {} more space.",
            bytes(merged),
            bytes(extra)
        ),
        _ => "  The move merges the tree once; how large it is, only a MANIFEST says.".into(),
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_of_lsmith_are_options_of_a_table_of_cassandra() {
        let way = Move {
            store: "lsmith",
            policy: "tiered(ratio=4)".to_owned(),
            saves: 0.5,
            is_free: true,
            options: Vec::new(),
            merge_bytes: None,
            extra_bytes: None,
        };
        let expected = "  In CQL: ... WITH compaction = {'class': \
                        'lsmith.cassandra.LsmithCompactionStrategy', 'policy': 'tiered(ratio=4)'};";
        assert_eq!(moved(&way, true)[1], expected);
        assert_eq!(
            moved(&way, false)[1],
            "  In a store of lsmith: lsmith db STORE policy 'tiered(ratio=4)'"
        );
    }
}
