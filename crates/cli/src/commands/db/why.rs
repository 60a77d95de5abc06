//! Why the store wrote what it wrote.

use crate::commands::explain::counts;
use crate::output::{Output, print_json};
use crate::table::{cost, short};
use lsmith::Keyspace;
use lsmith_lab::explain::{Kept, KeptLevel};

/// The answer in words, and the counters of each level.
#[derive(serde::Serialize)]
struct Why {
    policy: String,
    /// Bytes that the files of all tables occupy now, and logical bytes in them.
    table_bytes: u64,
    logical_bytes: u64,
    #[serde(flatten)]
    kept: Kept,
}

pub(super) fn why(keyspace: &Keyspace, json: bool) -> anyhow::Result<()> {
    let stats = keyspace.stats();
    let why = Why {
        policy: stats.policy,
        table_bytes: stats.table_bytes,
        logical_bytes: stats.logical_bytes,
        kept: Kept::of(&keyspace.tree()),
    };
    if json {
        return print_json(&why);
    }
    let mut output = Output::new();
    let kept = &why.kept;
    output.line(headline(kept))?;
    output.line(files(&why))?;
    output.line(format_args!("The policy is {} now.\n", why.policy))?;
    output.line(levels(kept))?;
    output.line(NOTES)?;
    if !kept.is_split {
        output.line(NOT_SPLIT)?;
    }
    Ok(output.finish()?)
}

const NOTES: &str = "
from memory + from above + rewritten - dropped - reused = written. Bytes are logical, and count from
  the first write on. runs, bytes and tombstones are those of now.
from above, rewritten: derived from what the levels hold, as if merges never skipped a level.
The store keeps no single merges, no reasons and no reads: `lsmith explain` has them.";

const NOT_SPLIT: &str = "\
The levels do not add up, for example after a bulk load: `from above` has all bytes from storage.";

fn headline(kept: &Kept) -> String {
    let written = kept.bytes_written as f64;
    let flushed = kept.flush_bytes as f64;
    if kept.flush_bytes == 0 {
        return format!("{} bytes were written, and no memtable has left memory.", short(written));
    }
    format!(
        "{} bytes were written for {} flushed: {} times as many.",
        short(written),
        short(flushed),
        cost(written / flushed)
    )
}

/// Says what the logical bytes of now occupy: blocks, filters and nodes, after compression.
fn files(why: &Why) -> String {
    if why.logical_bytes == 0 {
        return "The tables are empty.".to_owned();
    }
    let (files, logical) = (why.table_bytes as f64, why.logical_bytes as f64);
    format!(
        "Tables hold {} now, in files of {}: {} bytes of files for each.",
        short(logical),
        short(files),
        cost(files / logical)
    )
}

fn levels(kept: &Kept) -> String {
    let header = [
        "level",
        "runs",
        "bytes",
        "tombstones",
        "flushes",
        "merges",
        "moves",
        "from\nmemory",
        "from\nabove",
        "rewritten",
        "dropped",
        "reused",
        "moved",
        "written",
        "%",
    ];
    let row = |level: &KeptLevel| {
        let share = level.written_bytes as f64 / kept.bytes_written.max(1) as f64;
        let bytes = |bytes| if bytes == 0 { "0".to_owned() } else { short(bytes as f64) };
        vec![
            format!("level {}", level.level),
            level.runs.to_string(),
            bytes(level.bytes),
            level.tombstones.to_string(),
            level.flushes.to_string(),
            (level.merges + level.compactions).to_string(),
            level.moves.to_string(),
            bytes(level.from_memory_bytes),
            bytes(level.from_above_bytes.unwrap_or(level.from_storage_bytes)),
            level.rewritten_bytes.map_or_else(|| "-".to_owned(), bytes),
            bytes(level.dropped_bytes),
            bytes(level.reused_bytes),
            bytes(level.moved_bytes),
            bytes(level.written_bytes),
            format!("{:.0}", share * 100.0),
        ]
    };
    counts(&header, 1, kept.levels.iter().map(row).collect())
}
