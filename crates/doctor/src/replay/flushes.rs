//! The flushes of a LOG, as writes that can be simulated.

use crate::manifest::File;
use crate::{Family, Output};
use lsmith_spec::format_bytes;
use lsmith_workload::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// The most entries that are flushed in a simulation, unless flushes would have fewer than
/// [`FLUSH_ENTRIES_MIN`]. With more, an entry stands for several. The costs of merges depend on how
/// many flushes there are, and hardly on their entries.
const ENTRIES_MAX: f64 = 60_000.0;

/// The most bytes that a store may have held before its LOG begins, over the bytes flushed. With
/// more, hardly anything is known of what compactions meet.
const BASE_MAX: u64 = 20;

/// The least entries of a flush of mean size, so that tables and overlaps are not too coarse.
const FLUSH_ENTRIES_MIN: f64 = 32.0;

/// A flush.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flush {
    /// Entries, deletes among them.
    pub(crate) entries: f64,
    /// Entries that delete.
    pub(crate) deletes: f64,
    /// Bytes of the table for an entry with a value, and for one that deletes.
    pub(crate) entry_bytes: [f64; 2],
    /// Where its keys begin and end, as a share of all keys.
    pub(crate) keys: (f64, f64),
    /// True if it stands for what the store held before the LOG begins.
    pub(crate) is_base: bool,
}

impl Flush {
    /// Returns the share of all keys that it may have.
    pub(crate) fn width(&self) -> f64 {
        (self.keys.1 - self.keys.0).max(f64::EPSILON)
    }
}

/// The flushes of a column family, and what is known of their content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flushes {
    /// The flushes, oldest first; what the store held before comes in front.
    pub(crate) flushes: Vec<Flush>,
    /// Bytes of a value in tables, mean over the entries that have one.
    pub(crate) value_bytes: f64,
    /// Entries that one simulated entry stands for, at least 1.
    pub(crate) scale: f64,
    /// Bytes that the store held before the LOG begins.
    pub(crate) base_bytes: u64,
    /// Where the keys of each table begin and end, as a share of all keys, by number. Empty without
    /// a MANIFEST.
    pub(crate) ranges: BTreeMap<u64, (f64, f64)>,
}

impl Flushes {
    /// Returns the flushes of `family`.
    ///
    /// # Errors
    /// Fails if the LOG has no flush, or begins too late.
    pub(crate) fn of(family: &Family) -> Result<Flushes, String> {
        let flushed = flushed(family);
        let deep = family.files.iter().filter(|file| file.level > 0);
        let of_tree = Positions::of(deep.clone());
        let is_narrow = |file: &&File| {
            let (from, end) = of_tree.range(file);
            end - from < 0.5
        };
        let narrow = flushed.iter().filter_map(|(_, file)| file.as_ref()).filter(is_narrow);
        let positions = Positions::of(deep.chain(narrow));
        let all = total(flushed.iter().map(|(output, _)| output));
        if all.entries == 0 || all.bytes == 0 {
            return Err("No replay: expected flushes in the LOG.".to_owned());
        }
        let mean_bytes = entry_bytes(&all);
        let of_output = |(output, file): &(Output, Option<File>)| Flush {
            entries: output.entries as f64,
            deletes: output.deletes.min(output.entries) as f64,
            entry_bytes: entry_bytes(output),
            keys: file.as_ref().map_or((0.0, 1.0), |file| positions.range(file)),
            is_base: false,
        };
        let mut flushes: Vec<Flush> =
            flushed.iter().filter(|(output, _)| output.entries > 0).map(of_output).collect();
        // What the LOG has compacted, or the tree has now, and nothing in the LOG has written.
        let jobs = family.flushes().chain(family.compactions());
        let written: BTreeSet<u64> =
            jobs.flat_map(|job| &job.outputs).map(|output| output.number).collect();
        let mut used: BTreeSet<u64> = family.files.iter().map(|file| file.number).collect();
        used.extend(family.compactions().flat_map(|job| &job.input_tables));
        let mut is_before: BTreeSet<u64> = used.difference(&written).copied().collect();
        let before = family.added.iter().filter(|file| is_before.remove(&file.number));
        let base_bytes: u64 = before.map(|file| file.bytes).sum();
        if base_bytes / BASE_MAX > all.bytes {
            let (base, flushed) = (format_bytes(base_bytes), format_bytes(all.bytes));
            return Err(format!(
                "No replay: the store held {base} before the LOG begins, and flushed {flushed} \
                 since; expected LOG.old.* with more of its past."
            ));
        }
        let mean = all.entries as f64 / flushes.len() as f64;
        let base_entries = base_bytes as f64 / mean_bytes[0].max(1.0);
        let base_count = (base_entries / mean).ceil();
        let base = Flush {
            entries: base_entries / base_count.max(1.0),
            deletes: 0.0,
            entry_bytes: mean_bytes,
            keys: (0.0, 1.0),
            is_base: true,
        };
        flushes.splice(0..0, std::iter::repeat_n(base, base_count as usize));
        let entries = all.entries as f64 + base_entries;
        let part = entries / all.entries as f64;
        let entries_max = (ENTRIES_MAX * part).max(FLUSH_ENTRIES_MIN * flushes.len() as f64);
        let puts = all.entries.saturating_sub(all.deletes).max(1);
        Ok(Flushes {
            flushes,
            value_bytes: all.raw_bytes.1 as f64 / puts as f64 * packed(&all),
            scale: (entries / entries_max).max(1.0),
            base_bytes,
            ranges: family.added.iter().map(|f| (f.number, positions.range(f))).collect(),
        })
    }

    /// Returns the entries of the largest flush.
    pub(crate) fn entries_max(&self) -> f64 {
        self.flushes.iter().map(|flush| flush.entries).fold(1.0, f64::max)
    }

    /// Returns the mean bytes of a flush.
    pub(crate) fn bytes_mean(&self) -> f64 {
        let bytes = |flush: &Flush| {
            let [put, delete] = flush.entry_bytes;
            (flush.entries - flush.deletes) * put + flush.deletes * delete
        };
        self.flushes.iter().map(bytes).sum::<f64>() / self.flushes.len().max(1) as f64
    }

    /// Returns the entries of all flushes.
    pub(crate) fn entries(&self) -> f64 {
        self.flushes.iter().map(|flush| flush.entries).sum()
    }

    /// Returns the writes of each flush if there are `keys` keys and each is as likely as another.
    pub(crate) fn writes(&self, keys: f64) -> Writes {
        let keys = (keys.max(self.entries_max()) / self.scale).ceil().max(1.0) as u64;
        let mut random = Rng::new(1, 0);
        let mut taken = BTreeSet::new();
        let mut base_next = 0_u64;
        let flushes = self.flushes.iter().map(|flush| {
            taken.clear();
            let count = ((flush.entries / self.scale).round() as u64).clamp(1, keys);
            let mut deletes = (flush.deletes / self.scale).round() as u64;
            // Rounded alike, so that neighbours do not share a key.
            let [from, end] =
                [flush.keys.0, flush.keys.1].map(|at| (at * keys as f64).round() as u64);
            let width = end.saturating_sub(from).max(count);
            let from = from.min(keys - width);
            let mut made = Vec::with_capacity(count as usize);
            // Floyd's draw of `count` different numbers below `width`.
            for (left, last) in (1..=count).rev().zip(width - count..width) {
                let drawn = random.below(last + 1);
                let offset = if taken.insert(drawn) { drawn } else { last };
                taken.insert(offset);
                let rank = from + offset;
                let is_delete = random.below(left) < deletes;
                deletes -= u64::from(is_delete);
                let bytes = flush.entry_bytes[usize::from(is_delete)] * self.scale;
                made.push(Write {
                    rank: rank as u32,
                    bytes: bytes.round().max(1.0) as u32,
                    is_delete,
                });
            }
            if flush.is_base {
                // What a store holds is there once: its keys are the multiples of a step.
                for write in &mut made {
                    write.rank = (base_next.wrapping_mul(STEP) % keys) as u32;
                    base_next += 1;
                }
            }
            (flush.is_base, made)
        });
        Writes::of(flushes.collect())
    }
}

/// A prime beyond 2^32: its multiples reach every key once before they reach one again.
const STEP: u64 = 4_294_967_311;

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) rank: u32,
    pub(crate) bytes: u32,
    pub(crate) is_delete: bool,
}

/// The writes of all flushes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Writes {
    /// For each flush, whether it stands for the beginning, and its writes.
    pub(crate) flushes: Vec<(bool, Vec<Write>)>,
    pub(crate) keys: u64,
}

/// Returns each flush as one table, with where its keys begin and end if the MANIFEST has them.
fn flushed(family: &Family) -> Vec<(Output, Option<File>)> {
    // A table can be added again where it moves. All its files have the same keys.
    let files: BTreeMap<u64, &File> = family.added.iter().map(|f| (f.number, f)).collect();
    let whole = family.flushes().map(|job| {
        let of_outputs = job.outputs.iter().filter_map(|output| files.get(&output.number));
        (total(&job.outputs), hull(of_outputs))
    });
    whole.collect()
}

/// Returns the first and the last key of `files`, as one file.
fn hull<'a>(files: impl Iterator<Item = &'a &'a File>) -> Option<File> {
    files.map(|file| (*file).clone()).reduce(|hull, file| File {
        bytes: hull.bytes + file.bytes,
        smallest: hull.smallest.min(file.smallest),
        largest: hull.largest.max(file.largest),
        ..hull
    })
}

impl Writes {
    /// Numbers the keys that are written anew, in their order. If hardly a key comes twice, there
    /// are many times as many keys as writes, and memory for each would be a gigabyte.
    fn of(mut flushes: Vec<(bool, Vec<Write>)>) -> Writes {
        let all = flushes.iter().flat_map(|(_, writes)| writes);
        let mut ranks: Vec<u32> = all.map(|write| write.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        for write in flushes.iter_mut().flat_map(|(_, writes)| writes) {
            write.rank = ranks.partition_point(|rank| *rank < write.rank) as u32;
        }
        Writes { flushes, keys: ranks.len().max(1) as u64 }
    }
}

fn total<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> Output {
    let mut all = Output::default();
    for output in outputs {
        all.bytes += output.bytes;
        all.entries += output.entries;
        all.deletes += output.deletes;
        all.raw_bytes.0 += output.raw_bytes.0;
        all.raw_bytes.1 += output.raw_bytes.1;
    }
    all
}

/// Returns the bytes of a table per byte of its keys and values.
fn packed(output: &Output) -> f64 {
    output.bytes as f64 / (output.raw_bytes.0 + output.raw_bytes.1).max(1) as f64
}

/// Returns the bytes of the table for an entry with a value, and for one that deletes.
fn entry_bytes(output: &Output) -> [f64; 2] {
    if output.raw_bytes == (0, 0) {
        return [output.bytes as f64 / output.entries.max(1) as f64; 2];
    }
    let key = output.raw_bytes.0 as f64 / output.entries.max(1) as f64;
    let puts = output.entries.saturating_sub(output.deletes).max(1);
    let value = output.raw_bytes.1 as f64 / puts as f64;
    [key + value, key].map(|raw| raw * packed(output))
}

/// Where keys lie, as a share of all keys that the store has or had.
struct Positions<'a> {
    /// Keys in order, each with the bytes below it.
    edges: Vec<(&'a [u8], f64)>,
}

impl<'a> Positions<'a> {
    /// Counts between any two neighbouring ends of `files` the bytes of the file that has most
    /// there: older versions of the same keys do not count again.
    fn of(files: impl Iterator<Item = &'a File> + Clone) -> Positions<'a> {
        let ends = files.clone().flat_map(|file| [&file.smallest[..], &file.largest[..]]);
        let edges: BTreeSet<&[u8]> = ends.collect();
        let mut edges: Vec<(&[u8], f64)> = edges.into_iter().map(|key| (key, 0.0)).collect();
        for file in files {
            let from = edges.partition_point(|edge| edge.0 < &file.smallest[..]);
            let mut before = 0.0;
            for edge in edges[from..].iter_mut().skip(1) {
                let share = share(&file.smallest, &file.largest, edge.0);
                edge.1 = edge.1.max(file.bytes as f64 * (share - before));
                before = share;
                if edge.0 >= &file.largest[..] {
                    break;
                }
            }
        }
        let mut below = 0.0;
        for edge in &mut edges {
            below += edge.1;
            edge.1 = below;
        }
        Positions { edges }
    }

    /// Returns the share of all keys that lies below `key`.
    fn below(&self, key: &[u8]) -> f64 {
        let all = self.edges.last().map_or(0.0, |edge| edge.1).max(1.0);
        let at = self.edges.partition_point(|edge| edge.0 <= key);
        let [before, behind] = [at.wrapping_sub(1), at].map(|at| self.edges.get(at));
        match (before, behind) {
            (Some(before), Some(behind)) => {
                (before.1 + (behind.1 - before.1) * share(before.0, behind.0, key)) / all
            }
            (None, _) => 0.0,
            (_, None) => 1.0,
        }
    }

    /// Returns where the keys of `file` begin and end. The first and last keys of a flush that can
    /// hold any key lie as far from the ends as one entry from the next, so nearly all is all.
    fn range(&self, file: &File) -> (f64, f64) {
        let (from, end) = (self.below(&file.smallest), self.below(&file.largest));
        if self.edges.is_empty() || end - from > 0.9 { (0.0, 1.0) } else { (from, end) }
    }
}

/// Returns how far `key` lies between `first` and `last`, from 0 to 1.
fn share(first: &[u8], last: &[u8], key: &[u8]) -> f64 {
    if key <= first {
        return 0.0;
    }
    if key >= last {
        return 1.0;
    }
    let common = first.iter().zip(last).take_while(|(left, right)| left == right).count();
    let number = |key: &[u8]| {
        let behind = key.iter().skip(common).chain(std::iter::repeat(&0)).take(8);
        behind.fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte))
    };
    let (first, last, key) = (number(first), number(last), number(key));
    if last > first { ((key - first) / (last - first)).clamp(0.0, 1.0) } else { 0.5 }
}
