//! The LOG of LevelDB: lines for people.

use crate::log::{Job, Log, Output};
use crate::manifest::TABLE_MAX;
use std::collections::BTreeMap;

/// The reason of compactions that nobody asked for. LevelDB does not say which of both it was.
pub(crate) const REASON: &str = "size or seeks";

/// The column family that the only tree of LevelDB is counted as.
const FAMILY: &str = "default";

/// What is under way in a file.
#[derive(Default)]
struct Reader {
    /// The place of the compaction under way.
    open: Option<usize>,
    /// The place of the compaction that ended last, and the tables deleted since.
    ended: Option<(usize, Vec<u64>)>,
    /// True if the next compaction is by hand.
    is_manual: bool,
}

/// Adds what the next file says to `log`, older files before newer ones. LevelDB begins a file
/// whenever a store is opened. Lines that mean nothing are passed over; lines that are cut are
/// counted.
pub(crate) fn read(log: &mut Log, bytes: &[u8]) {
    let mut reader = Reader::default();
    let mut is_known = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if let Some(words) = behind_time(&line) {
            match reader.words(log, words) {
                Some(true) => is_known = true,
                Some(false) => {}
                None => log.damaged += 1,
            }
        }
    }
    reader.settle(log);
    log.openings += u64::from(is_known);
}

/// Returns what is behind time and thread: `2026/11/27-20:22:52.199478 7f3a Words`.
fn behind_time(line: &str) -> Option<&str> {
    let (time, rest) = line.trim_end().split_once(' ')?;
    let is_time = time.len() >= 19 && time.as_bytes().get(4) == Some(&b'/');
    is_time.then_some(rest.split_once(' ')?.1)
}

impl Reader {
    /// Returns true if the words are of LevelDB, and `None` if they are cut.
    fn words(&mut self, log: &mut Log, words: &str) -> Option<bool> {
        if let Some(rest) = words.strip_prefix("Level-0 table #") {
            let (table, what) = rest.split_once(": ")?;
            // `started`, `1234 bytes OK`, or an error in place of `OK`.
            if let Some(bytes) = what.strip_suffix(" bytes OK") {
                let output = Output {
                    number: table.parse().ok()?,
                    bytes: count(bytes)?,
                    ..Output::default()
                };
                // An empty table is not kept.
                if output.bytes > 0 {
                    let (family, outputs) = (FAMILY.to_owned(), vec![output]);
                    log.jobs.push(Job { family, outputs, ..Job::default() });
                }
            }
        } else if let Some(rest) = words.strip_prefix("Compacting ") {
            self.settle(log);
            let inputs = inputs(rest.strip_suffix(" files")?)?;
            self.open = Some(log.jobs.len());
            log.jobs.push(Job {
                family: FAMILY.to_owned(),
                reason: if std::mem::take(&mut self.is_manual) { "manual" } else { REASON }
                    .to_owned(),
                output_level: inputs.keys().next()? + 1,
                inputs,
                is_compaction: true,
                ..Job::default()
            });
        } else if let Some(rest) = words.strip_prefix("Generated table #") {
            // Older versions have no `@LEVEL`.
            let (table, what) = rest.split_once(": ")?;
            let (entries, bytes) = what.strip_suffix(" bytes")?.split_once(" keys, ")?;
            let output = Output {
                number: table.split('@').next()?.parse().ok()?,
                bytes: count(bytes)?,
                entries: count(entries)?,
                ..Output::default()
            };
            if let Some(job) = self.open.and_then(|at| log.jobs.get_mut(at)) {
                job.outputs.push(output);
            }
        } else if words.starts_with("Compacted ") {
            let at = self.open.take();
            if let Some((at, job)) = at.and_then(|at| Some((at, log.jobs.get_mut(at)?))) {
                job.is_finished = true;
                self.ended = Some((at, Vec::new()));
            }
        } else if let Some(table) = words.strip_prefix("Delete type=2 #") {
            let table = table.parse().ok()?;
            self.ended.iter_mut().for_each(|(_, tables)| tables.push(table));
        } else if words.starts_with("Moved #") {
            self.settle(log);
            self.is_manual = false;
            log.moves += 1;
        } else if words.starts_with("Manual compaction at level-") {
            // At the end nothing is left to compact.
            self.is_manual = !words.ends_with("(end)");
        } else if let Some(cause) = words.strip_suffix("; waiting...") {
            *log.stalls.entry((FAMILY.to_owned(), cause.to_owned())).or_default() += 1;
        } else {
            let starts = ["Recovering log #", "Creating DB ", "Delete type=", "compacted to: "];
            return Some(starts.iter().any(|start| words.starts_with(start)));
        }
        Some(true)
    }

    /// Gives the compaction that ended last its inputs: the tables that were deleted behind it, if
    /// they are as many. An iterator keeps tables longer.
    fn settle(&mut self, log: &mut Log) {
        if let Some((at, tables)) = self.ended.take()
            && let Some(job) = log.jobs.get_mut(at)
            && job.inputs.values().sum::<u64>() == tables.len() as u64
        {
            job.input_tables = tables;
        }
    }
}

/// Reads bytes or entries of a table. Their sums do not overflow.
fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| *count < TABLE_MAX)
}

/// Reads `4@0 + 3@1`: the number of files of each level.
fn inputs(text: &str) -> Option<BTreeMap<u32, u64>> {
    let mut inputs = BTreeMap::new();
    for part in text.split(" + ") {
        let (files, level) = part.split_once('@')?;
        let level: u32 = level.parse().ok().filter(|level| *level < 64)?;
        match files.parse::<u32>().ok()? {
            0 => {}
            files => drop(inputs.insert(level, u64::from(files))),
        }
    }
    Some(inputs)
}
