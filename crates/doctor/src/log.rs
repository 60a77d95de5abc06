//! The LOG of RocksDB: lines for people, and events as JSON.

use crate::options::Settings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How long writers were held back since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stalled {
    /// Seconds.
    pub seconds: f64,
    /// The part of the time since then, in percent.
    pub percent: f64,
}

impl Stalled {
    /// Reads `HOURS:MINUTES:SECONDS H:M:S, PERCENT percent`.
    fn read(text: &str) -> Option<Stalled> {
        let (time, rest) = text.trim().split_once(" H:M:S, ")?;
        let seconds = time
            .split(':')
            .try_fold(0.0, |sum, part| part.parse::<f64>().ok().map(|part| sum * 60.0 + part))?;
        let percent = rest.split_whitespace().next()?.parse().ok()?;
        Some(Stalled { seconds, percent })
    }
}

/// The mark in front of an event.
const EVENT: &str = "EVENT_LOG_v1 ";

/// A table that a flush or a compaction wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The number in the name of the file.
    pub number: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Entries, deletes among them.
    pub entries: u64,
    /// Entries that delete.
    pub deletes: u64,
    /// Bytes of keys and of values, before compression.
    pub raw_bytes: (u64, u64),
}

/// What a job did to one column family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// The column family; empty if no event named it.
    pub family: String,
    /// Why, by the words of RocksDB; empty for flushes, and where the beginning is missing.
    pub reason: String,
    /// Levels that compactions read, with the number of files of each.
    pub inputs: BTreeMap<u32, u64>,
    /// The numbers of the files that it read.
    pub input_tables: Vec<u64>,
    /// Bytes of the files that it read.
    pub input_bytes: u64,
    /// The level that it wrote to.
    pub output_level: u32,
    /// The tables that it wrote.
    pub outputs: Vec<Output>,
    /// Entries read, and entries written.
    pub records: (u64, u64),
    /// True once a compaction has begun or ended; a flush has tables alone.
    pub is_compaction: bool,
    /// True if the end of the job is in the LOG.
    pub is_finished: bool,
}

impl Job {
    /// Returns the bytes of the tables that it wrote.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.bytes).sum()
    }
}

/// What one or several LOG files say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The version of RocksDB that wrote last.
    pub version: Option<String>,
    /// The settings of each column family at the last opening.
    pub families: BTreeMap<String, Settings>,
    /// Flushes and compactions, in the order in which they began.
    pub jobs: Vec<Job>,
    /// Moves of tables to a lower level, which write nothing.
    pub moves: u64,
    /// Lines that say that writes are slowed down or stopped: column family, cause, and how often.
    pub stalls: BTreeMap<(String, String), u64>,
    /// The last `Cumulative stall` of the statistics.
    pub stalled: Option<Stalled>,
    /// How many times the store was opened.
    pub openings: u64,
    /// Events that could not be read, because their line is cut or damaged.
    pub damaged: u64,
    /// Where the jobs since the last opening are in `jobs`, by their number.
    open: BTreeMap<u64, Vec<usize>>,
    /// The column family whose settings follow.
    listed: Option<String>,
}

impl Log {
    /// Reads the next file, older files before newer ones. Bytes that are no UTF-8 and lines that
    /// mean nothing are passed over; events that are cut are counted.
    pub fn read(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            if let Some((_, event)) = line.split_once(EVENT) {
                match serde_json::from_str(event.trim_end()) {
                    Ok(event) => self.event(&event),
                    Err(_) => self.damaged += 1,
                }
            } else {
                self.words(&line);
            }
        }
    }

    /// Returns true if nothing in the files was from RocksDB.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.openings == 0 && self.jobs.is_empty()
    }

    fn words(&mut self, line: &str) {
        if let Some((_, version)) = line.split_once("RocksDB version: ") {
            self.version = Some(version.trim().to_owned());
            self.openings += 1;
            // Numbers of jobs begin anew.
            self.open.clear();
            self.listed = None;
        } else if let Some((_, rest)) = line.split_once("Options for column family [") {
            let name = rest.split_once(']').map(|(name, _)| name.to_owned());
            self.families.extend(name.clone().map(|name| (name, Settings::new())));
            self.listed = name;
        } else if let Some((_, setting)) = line.split_once(" Options.") {
            let settings = self.listed.as_ref().and_then(|name| self.families.get_mut(name));
            if let (Some(settings), Some((name, value))) = (settings, setting.split_once(':')) {
                settings.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        } else if let Some((before, rest)) = line.split_once("] [JOB ")
            && let Some((job, "Compacting")) = rest.split_once("] ").map(first_word)
        {
            // `[default] [JOB 9] Compacting 4@0 files to L1`
            let family = before.rsplit_once('[').map_or("", |(_, family)| family);
            if let Ok(job) = job.parse() {
                self.job(job, family).is_compaction = true;
            }
        } else if let Some((_, stalled)) = line.split_once("Cumulative stall: ") {
            self.stalled = Stalled::read(stalled).or(self.stalled);
        } else if let Some(at) = line.find("Stalling writes").or(line.find("Stopping writes")) {
            let family = line[..at].rsplit_once('[').and_then(|(_, name)| name.split_once(']'));
            let family = family.map_or("", |(name, _)| name).to_owned();
            let cause = line[at..].split(['(', ':']).next().unwrap_or_default();
            // Without numbers, equal causes are equal.
            let words = cause.split_whitespace().take_while(|word| *word != "rate");
            let words: Vec<&str> =
                words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).collect();
            *self.stalls.entry((family, words.join(" "))).or_default() += 1;
        }
    }

    /// Returns the job of this number and column family. Old versions name the column family of a
    /// compaction with its first table only; an empty name fits any job.
    fn job(&mut self, job: u64, family: &str) -> &mut Job {
        let parts = self.open.entry(job).or_default();
        let jobs = &mut self.jobs;
        let fits = |at: &usize| {
            let known = jobs[*at].family.as_str();
            known == family || known.is_empty() || family.is_empty()
        };
        let at = parts.iter().copied().find(fits).unwrap_or_else(|| {
            parts.push(jobs.len());
            jobs.push(Job::default());
            jobs.len() - 1
        });
        let found = &mut self.jobs[at];
        if found.family.is_empty() {
            family.clone_into(&mut found.family);
        }
        found
    }

    fn event(&mut self, event: &Value) {
        let number = |name: &str| event[name].as_u64().unwrap_or(0);
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let job = number("job");
        match text("event") {
            "compaction_started" => {
                let found = self.job(job, text("cf_name"));
                found.is_compaction = true;
                text("compaction_reason").clone_into(&mut found.reason);
                found.input_bytes = number("input_data_size");
                for (name, files) in event.as_object().into_iter().flatten() {
                    let level = name.strip_prefix("files_L").and_then(|level| level.parse().ok());
                    if let (Some(level), Some(files)) = (level, files.as_array()) {
                        found.inputs.insert(level, files.len() as u64);
                        found.input_tables.extend(files.iter().filter_map(Value::as_u64));
                    }
                }
            }
            "table_file_creation" => {
                let table = &event["table_properties"];
                let of_table = |name: &str| table[name].as_u64().unwrap_or(0);
                let output = Output {
                    number: number("file_number"),
                    bytes: number("file_size"),
                    entries: of_table("num_entries"),
                    deletes: of_table("num_deletions"),
                    raw_bytes: (of_table("raw_key_size"), of_table("raw_value_size")),
                };
                // An empty table is not kept.
                if output.bytes > 0 {
                    self.job(job, text("cf_name")).outputs.push(output);
                }
            }
            // It names no column family: a job of compaction has one only.
            "compaction_finished" => {
                let found = self.job(job, "");
                found.is_compaction = true;
                found.is_finished = true;
                found.output_level = u32::try_from(number("output_level")).unwrap_or(0);
                found.records = (number("num_input_records"), number("num_output_records"));
            }
            "trivial_move" => self.moves += 1,
            _ => {}
        }
    }
}

fn first_word<'a>((job, rest): (&'a str, &'a str)) -> (&'a str, &'a str) {
    (job, rest.split(' ').next().unwrap_or_default())
}
