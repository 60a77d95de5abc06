//! The log of Pebble's `MakeLoggingEventListener`: lines for people, in whatever file the
//! application logs to.

use crate::log::{Job, Log, Output};
use crate::manifest::TABLE_MAX;

/// The column family that the only tree is counted as.
const FAMILY: &str = "default";

/// Adds what a log says to `log`, older files before newer ones, and returns true if a line is of
/// Pebble. Other lines are passed over; lines that are cut are counted. A number of the line's
/// beginning, such as a time, may stand in front of `[JOB`.
pub(crate) fn read(log: &mut Log, bytes: &[u8]) -> bool {
    let mut is_known = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let words = line.split_once("[JOB ").and_then(|(_, rest)| rest.split_once("] "));
        let Some((number, words)) = words else { continue };
        if number.parse::<u64>().is_err() {
            continue;
        }
        if let Some(rest) = words.strip_prefix("flushed ") {
            is_known = true;
            match flushed(rest) {
                Some(job) => log.jobs.extend(job),
                None => log.damaged += 1,
            }
        } else if let Some(rest) = words.strip_prefix("compacted(") {
            is_known = true;
            match compacted(rest) {
                Some(Read::Compaction(job)) => log.jobs.push(job),
                Some(Read::Move) => log.moves += 1,
                None => log.damaged += 1,
            }
        } else if words.starts_with("MANIFEST created ") {
            is_known = true;
        } else if words.starts_with("all initial table stats loaded") {
            // Once in each opening.
            is_known = true;
            log.openings += 1;
        }
    }
    is_known
}

/// What a line about a compaction says.
enum Read {
    Compaction(Job),
    Move,
}

/// Reads `1 memtable (1.0MB) to L0 [000009 000010] (848KB), in ...`. Tables that were ingested are
/// no flush.
fn flushed(text: &str) -> Option<Option<Job>> {
    if text.contains(" ingested ") {
        return Some(None);
    }
    let (_, tables) = text.split_once(" to L0 ")?;
    let outputs = outputs(tables)?;
    let job = Job { family: FAMILY.to_owned(), outputs, ..Job::default() };
    Some(Some(job).filter(|job| !job.outputs.is_empty()))
}

/// Reads `default) L0 [000007] (1.5MB) Score=1.00 + L6 [] (0B) Score=0.00 -> L6 [000011] (1.4MB),
/// in ...`.
fn compacted(text: &str) -> Option<Read> {
    let (reason, rest) = text.split_once(") ")?;
    if reason == "move" {
        return Some(Read::Move);
    }
    let (read, written) = rest.split_once(" -> L")?;
    let (level, tables) = written.split_once(' ')?;
    let mut job = Job {
        family: FAMILY.to_owned(),
        reason: reason.to_owned(),
        output_level: level.parse().ok().filter(|level| *level < 64)?,
        outputs: outputs(tables)?,
        is_compaction: true,
        is_finished: true,
        ..Job::default()
    };
    // Annotations may stand in front of the first level, without a space: `multilevelL4 [000007]`.
    let (_, levels) = read.split_once('L')?;
    for part in levels.split(" + L") {
        let (level, tables) = part.split_once(' ')?;
        let level: u32 = level.parse().ok().filter(|level| *level < 64)?;
        let (numbers, bytes) = listed(tables)?;
        if !numbers.is_empty() {
            *job.inputs.entry(level).or_default() += numbers.len() as u64;
        }
        job.input_tables.extend(numbers);
        job.input_bytes += bytes;
    }
    Some(Read::Compaction(job))
}

/// Reads `[000011 000012] (1.4MB)`. The bytes are shared out: only their sum is said.
fn outputs(text: &str) -> Option<Vec<Output>> {
    let (numbers, bytes) = listed(text)?;
    let each = bytes / (numbers.len() as u64).max(1);
    let output = |number| Output { number, bytes: each, ..Output::default() };
    Some(numbers.into_iter().map(output).collect())
}

/// Reads the numbers of tables and their bytes.
fn listed(text: &str) -> Option<(Vec<u64>, u64)> {
    let (numbers, rest) = text.strip_prefix('[')?.split_once("] (")?;
    let (size, _) = rest.split_once(')')?;
    let numbers = numbers.split_whitespace().map(|number| number.parse().ok());
    Some((numbers.collect::<Option<_>>()?, bytes(size)?))
}

/// Reads `848KB` or `1.5MB`, with 1024 bytes to a kilobyte.
fn bytes(text: &str) -> Option<u64> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let power = ["B", "KB", "MB", "GB", "TB"].iter().position(|name| *name == unit)?;
    let bytes = number.trim().parse::<f64>().ok()? * 1024_f64.powi(power as i32);
    (bytes >= 0.0 && bytes < TABLE_MAX as f64).then_some(bytes as u64)
}
