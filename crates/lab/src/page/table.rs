//! Tables: rows of figures, with the columns that they have.

use serde::Serialize;
use serde_json::Value;

/// Figures with their definitions.
const FIGURES: [(&str, &str); 30] = [
    ("write_cost_eager", "bytes of runs that are new after a flush, per byte flushed"),
    ("write_cost_system", "bytes of every flush and every merge output, per byte flushed"),
    ("write_cost_user", "all bytes written to storage, per byte of keys and values"),
    ("write_cost_blocks", "data blocks written below memory per MB of write requests"),
    ("read_cost_mean", "runs on storage that a lookup considers, averaged over flushes"),
    ("read_cost_mean_l0_one", "the same with all runs of level 0 counted as one; for levels"),
    ("scan_cost_mean.runs", "runs on storage that a range read looks at, averaged over flushes"),
    ("scan_cost_mean.blocks", "data blocks that it looks at, averaged over flushes"),
    ("scan_cost_measured.runs", "runs on storage that range reads looked at, on average"),
    ("scan_cost_measured.blocks", "data blocks in which they stood on an entry, on average"),
    ("read_cost_uncached", "data blocks that lookups read from files, past the cache, on average"),
    ("scan_cost_uncached", "data blocks that range reads read from files, on average"),
    ("runs_max", "the most runs on storage after any flush"),
    ("settled_runs_mean", "runs of more than half of the largest merge, averaged over flushes"),
    ("merge_bytes_max", "bytes of the largest output of a merge"),
    ("flushes_unmerged_max", "the most flushes in a row without a merge"),
    ("space_cost_peak", "bytes of all tables and unfinished outputs per live byte, at most"),
    ("space_cost_mean", "bytes of tables and sealed memtables per live byte, mean after flushes"),
    (
        "above",
        "(the policy's write_cost_system - the least) / the least; the least has as many runs",
    ),
    ("flushes", "memtables that left memory"),
    ("merges", "merges, without flushes to a run of their own"),
    ("moves", "plans that relabel slices and write nothing"),
    ("write", "bytes written per byte flushed, in the replay"),
    ("write_from", "write / (1 + band): what the replay may be off by"),
    ("write_to", "write / (1 - band): what the replay may be off by"),
    ("least", "the least that merges of whole runs write with as many runs, if no key comes twice"),
    ("above_least", "(write - least) / least"),
    ("saves", "bytes that the row writes less, over bytes that the present settings write"),
    ("space_now", "bytes held per live byte at the end"),
    ("options", "what to put into OPTIONS; for lsmith, the policy is the spec"),
];

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The name: the path of the field in the JSON of the row, such as `engine.runs_max`.
    pub name: String,
    /// The definition of the figure; empty if it is not known here.
    pub about: String,
    /// True if the column is shown at first.
    pub is_main: bool,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows. A cell is a number, a text, a truth value or null.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Returns the table of objects: one row per object, one column per field. Fields of inner
    /// objects are columns of their own; lists are left out. Columns named in `main` come first.
    #[must_use]
    pub fn of_objects(objects: &[Value], main: &[&str]) -> Table {
        let flat: Vec<Vec<(String, Value)>> = objects.iter().map(flatten).collect();
        let mut names: Vec<&str> = main.to_vec();
        for (name, _) in flat.iter().flatten() {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let is_known = |name: &&str| flat.iter().flatten().any(|(known, _)| known == name);
        names.retain(is_known);
        let cell = |row: &[(String, Value)], name: &str| {
            let found = row.iter().find(|(known, _)| known == name);
            found.map_or(Value::Null, |(_, value)| value.clone())
        };
        Table {
            rows: flat
                .iter()
                .map(|row| names.iter().map(|name| cell(row, name)).collect())
                .collect(),
            columns: names
                .into_iter()
                .map(|name| Column {
                    name: name.to_owned(),
                    about: definition(name).to_owned(),
                    is_main: main.contains(&name),
                })
                .collect(),
        }
    }
}

/// Returns the definition of the figure at the end of a path.
fn definition(path: &str) -> &'static str {
    let is_at_end = |figure: &str| {
        let before = path.strip_suffix(figure);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    FIGURES.iter().find(|(figure, _)| is_at_end(figure)).map_or("", |(_, about)| about)
}

/// Returns the fields of an object with their paths.
fn flatten(object: &Value) -> Vec<(String, Value)> {
    let mut fields = Vec::new();
    add_fields("", object, &mut fields);
    fields
}

fn add_fields(path: &str, value: &Value, fields: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                add_fields(&path, value, fields);
            }
        }
        Value::Array(_) => {}
        value => fields.push((path.to_owned(), value.clone())),
    }
}
