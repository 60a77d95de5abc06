//! What the MANIFEST of LevelDB says of flushes and compactions, and what follows for entries.

use super::lines::REASON;
use crate::log::{Job, Output};
use crate::manifest::{Edit, File, TABLE_MAX};
use std::collections::BTreeMap;

/// Completes `jobs`, which the LOG says, by the edits of the MANIFEST, which has added the tables
/// `added`. Without a LOG, the MANIFEST says the jobs. Returns how many tables have entries that
/// follow from their bytes.
///
/// The LOG has no entries of flushes, and not which tables a compaction read. The edits have both:
/// each edit has the last sequence number, and an entry takes one.
pub(crate) fn complete(jobs: &mut Vec<Job>, added: &[File], edits: &[Edit], has_log: bool) -> u64 {
    let by_edit = jobs_of(edits);
    if has_log {
        let outputs = |job: &Job| job.outputs.iter().map(|o| o.number).collect::<Vec<_>>();
        let places: BTreeMap<u64, &Job> = by_edit
            .iter()
            .flat_map(|job| outputs(job).into_iter().map(move |n| (n, job)))
            .collect();
        for job in jobs.iter_mut() {
            let same = job.outputs.first().and_then(|output| places.get(&output.number));
            let Some(same) = same.filter(|same| same.is_compaction == job.is_compaction) else {
                continue;
            };
            job.input_tables.clone_from(&same.input_tables);
            for output in job.outputs.iter_mut().filter(|output| output.entries == 0) {
                let found = same.outputs.iter().find(|other| other.number == output.number);
                output.entries = found.map_or(0, |found| found.entries);
            }
        }
    } else {
        *jobs = by_edit;
    }
    let estimated = estimate(jobs);
    count_inputs(jobs, added);
    estimated
}

/// Returns the flushes and compactions of `edits`. Entries of flushes follow from the sequence
/// numbers of the tables that they wrote, or of all tables so far.
pub(crate) fn jobs_of(edits: &[Edit]) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut sequence = None;
    for edit in edits {
        // An edit with a comparator lists what a store has when it is opened.
        let is_list = edit.comparator.is_some();
        let output =
            |file: &File| Output { number: file.number, bytes: file.bytes, ..Output::default() };
        let mut job = Job {
            family: "default".to_owned(),
            outputs: edit.added.iter().map(output).collect(),
            output_level: edit.added.first().map_or(0, |file| file.level),
            is_finished: true,
            ..Job::default()
        };
        let is_moved = |file: &File| edit.deleted.iter().any(|(_, n)| *n == file.number);
        if !is_list && edit.deleted.is_empty() && !edit.added.is_empty() {
            let entries = match (edit.sequences, sequence, edit.last_sequence) {
                (Some((first, last)), ..) => last.saturating_sub(first).saturating_add(1),
                (None, Some(before), Some(last)) => last.saturating_sub(before),
                _ => 0,
            };
            share_out(&mut job.outputs, entries.min(TABLE_MAX));
            sequence = edit.last_sequence;
            jobs.push(job);
        } else if !is_list && !edit.deleted.is_empty() && !edit.added.iter().any(is_moved) {
            for (level, number) in &edit.deleted {
                *job.inputs.entry(*level).or_default() += 1;
                job.input_tables.push(*number);
            }
            if edit.added.is_empty() {
                job.output_level = edit.deleted[0].0 + 1;
            }
            job.reason = REASON.to_owned();
            job.is_compaction = true;
            jobs.push(job);
        } else if sequence.is_none() {
            // The store as it was opened. Later edits of other kinds come while memtables fill.
            sequence = edit.last_sequence;
        }
    }
    jobs
}

/// Gives the tables of a flush their share of its `entries`, by their bytes.
fn share_out(outputs: &mut [Output], entries: u64) {
    let bytes: u64 = outputs.iter().map(|output| output.bytes).sum();
    for output in outputs {
        let part = output.bytes as f64 / bytes.max(1) as f64;
        output.entries = (entries as f64 * part).round() as u64;
    }
}

/// Gives tables of unknown entries as many as their bytes say, and returns how many these are.
fn estimate(jobs: &mut [Job]) -> u64 {
    let all = || jobs.iter().flat_map(|job| &job.outputs);
    let known = all().filter(|output| output.entries > 0);
    let (bytes, entries) =
        known.fold((0, 0), |sum, output| (sum.0 + output.bytes, sum.1 + output.entries));
    if entries == 0 {
        return 0;
    }
    let entry_bytes = bytes as f64 / entries as f64;
    let mut estimated = 0;
    let outputs = jobs.iter_mut().flat_map(|job| &mut job.outputs);
    for output in outputs.filter(|output| output.entries == 0) {
        output.entries = (output.bytes as f64 / entry_bytes).round().max(1.0) as u64;
        estimated += 1;
    }
    estimated
}

/// Counts what compactions read. A table that no job wrote counts if the MANIFEST has it.
fn count_inputs(jobs: &mut [Job], added: &[File]) {
    let mut tables: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let outputs = || jobs.iter().flat_map(|job| &job.outputs);
    let bytes: u64 = outputs().map(|output| output.bytes).sum();
    let entries: u64 = outputs().map(|output| output.entries).sum();
    let entry_bytes = (bytes as f64 / entries.max(1) as f64).max(1.0);
    for file in added {
        tables.insert(file.number, (file.bytes, (file.bytes as f64 / entry_bytes) as u64));
    }
    tables.extend(outputs().map(|output| (output.number, (output.bytes, output.entries))));
    for job in jobs.iter_mut().filter(|job| job.is_compaction) {
        let read: Vec<(u64, u64)> =
            job.input_tables.iter().filter_map(|number| tables.get(number).copied()).collect();
        job.input_bytes = read.iter().map(|(bytes, _)| bytes).sum();
        if read.len() == job.input_tables.len() && !read.is_empty() {
            let written = job.outputs.iter().map(|output| output.entries).sum();
            job.records = (read.iter().map(|(_, entries)| entries).sum(), written);
        }
    }
}
