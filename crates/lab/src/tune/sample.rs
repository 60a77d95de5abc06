//! The writes of a workload in memory, all of them or a sample that behaves alike.
//!
//! A sample of one key in `n`, with memtables that are smaller by the same factor, costs what the
//! whole workload costs: each key keeps its place in key order and all of its writes, and as many
//! memtables are flushed. Because the whole stream is read, the sample has all of its phases.
//!
//! A few keys can have a large part of all writes. Taking or leaving such a *hot* key would change
//! the whole. So hot keys are put into groups of `n` keys of similar frequency and age, and one key
//! stands for each group. It gets every `n`-th write of the group.
//!
//! Sampling keys by their hash keeps the reuse of each key (Waldspurger et al., "Efficient MRC
//! construction with SHARDS", FAST 2015, section 2). The groups of hot keys are ours.

use super::survey::Survey;
use anyhow::Result;
use lsmith_sim::{SCAN_ITEMS, written_kind};
use lsmith_spec::random::{GOLDEN_GAMMA, mix};
use lsmith_tree::{EntryKind, logical_bytes};
use lsmith_workload::{LiveBytes, Op, OpKind, Workload};
use std::collections::HashMap;

/// A key is hot if it would have more than this share of the writes of a sample.
const HOT_SHARE: f64 = 1e-3;

/// One write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Write {
    pub(super) kind: EntryKind,
    /// The rank of the key among the keys of the sample, in byte order.
    pub(super) rank: u32,
    /// Logical bytes of the entry.
    pub(super) bytes: u32,
    /// Live bytes after the write.
    pub(super) live_bytes: u64,
    /// Live entries after the write.
    pub(super) live_entries: u32,
}

/// The writes of a workload, or a sample of them.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) writes: Vec<Write>,
    /// The bytes of the sample over the bytes of all writes; 1 for all writes. Memtables of the
    /// sample are smaller by this factor.
    pub(super) share: f64,
    pub(super) flushes_max: Option<u64>,
    /// The mean number of entries of a range read.
    pub(super) scan_items: f64,
}

impl Sample {
    /// Returns a sample of about `wanted` writes of `workload`, or all writes if there are no more.
    ///
    /// # Errors
    /// Fails if the workload has a damaged line.
    pub(super) fn of(workload: &Workload, survey: &Survey, wanted: u64) -> Result<Sample> {
        let one_in = (survey.writes as f64 / wanted as f64).round().max(1.0) as u64;
        let mut sampler = Sampler::new(survey, one_in);
        let mut live = LiveBytes::new();
        let mut taken: Vec<(u64, Write)> = Vec::new();
        let mut bytes = 0;
        let ops = workload.ops().take(usize::try_from(survey.ops).unwrap_or(usize::MAX));
        for op in ops {
            let op = op?;
            if written_kind(op.kind).is_none() {
                continue;
            }
            let Some(op) = sampler.taken(op) else { continue };
            let Some(kind) = written_kind(op.kind) else { continue };
            let key_bytes = workload.key_bytes(op.item);
            live.observe(&op, key_bytes);
            let entry_bytes = logical_bytes(key_bytes, op.value_bytes as usize);
            bytes += entry_bytes;
            let write = Write {
                kind,
                rank: 0,
                bytes: u32::try_from(entry_bytes).expect("values end far below 4 GiB"),
                live_bytes: live.bytes(),
                live_entries: u32::try_from(live.entries()).unwrap_or(u32::MAX),
            };
            taken.push((op.item, write));
        }
        let ranks = ranks(workload, &taken);
        let rank = |(item, write): (u64, Write)| Write { rank: ranks[&item], ..write };
        Ok(Sample {
            writes: taken.into_iter().map(rank).collect(),
            share: bytes as f64 / survey.bytes as f64,
            flushes_max: workload.limit_flushes(),
            scan_items: workload.scan_items().unwrap_or(SCAN_ITEMS),
        })
    }

    /// Returns the logical bytes of all writes of the sample.
    pub(super) fn bytes(&self) -> u64 {
        self.writes.iter().map(|write| u64::from(write.bytes)).sum()
    }
}

/// Returns the rank of each item among all items in `taken`, by the bytes of their keys.
fn ranks(workload: &Workload, taken: &[(u64, Write)]) -> HashMap<u64, u32> {
    let mut items: Vec<u64> = taken.iter().map(|(item, _)| *item).collect();
    items.sort_unstable();
    items.dedup();
    let mut keys: Vec<(Vec<u8>, u64)> = Vec::with_capacity(items.len());
    for item in items {
        let mut key = Vec::with_capacity(workload.key_bytes(item));
        workload.key(item, &mut key);
        keys.push((key, item));
    }
    keys.sort_unstable();
    (0..).zip(keys).map(|(rank, (_, item))| (item, rank)).collect()
}

/// Decides which writes are in a sample.
struct Sampler {
    one_in: u64,
    /// The group of each hot item.
    group_of: HashMap<u64, usize>,
    groups: Vec<Group>,
}

/// Hot items that one item represents.
struct Group {
    item: u64,
    /// The writes of the group so far.
    count: u64,
}

impl Sampler {
    fn new(survey: &Survey, one_in: u64) -> Sampler {
        let mut sampler = Sampler { one_in, group_of: HashMap::new(), groups: Vec::new() };
        if one_in == 1 {
            return sampler;
        }
        let hot = HOT_SHARE * survey.writes as f64 / one_in as f64;
        let mut items = survey.written_over(hot.max(1.0) as u32);
        // Frequencies within a factor of two count as similar.
        let order = |(item, writes): &(u64, super::survey::ItemWrites)| {
            (std::cmp::Reverse(writes.count.ilog2()), writes.first, *item)
        };
        items.sort_unstable_by_key(order);
        for (group, members) in items.chunks(one_in as usize).enumerate() {
            let (item, _) = members[members.len() / 2];
            // Groups take their first write at different times.
            sampler.groups.push(Group { item, count: hash(item) % one_in });
            sampler.group_of.extend(members.iter().map(|(item, _)| (*item, group)));
        }
        sampler
    }

    /// Returns the operation as it is in the sample, or `None` if it is not in it.
    fn taken(&mut self, op: Op) -> Option<Op> {
        let Some(&group) = self.group_of.get(&op.item) else {
            return hash(op.item).is_multiple_of(self.one_in).then_some(op);
        };
        let group = &mut self.groups[group];
        group.count += 1;
        if !group.count.is_multiple_of(self.one_in) {
            return None;
        }
        // Writes of several keys became writes of one, which may be present or not.
        let kind = match op.kind {
            OpKind::Insert => OpKind::Put,
            OpKind::Remove => OpKind::Delete,
            kind => kind,
        };
        Some(Op { kind, item: group.item, ..op })
    }
}

/// Spreads neighbouring items over all remainders.
fn hash(item: u64) -> u64 {
    mix(item.wrapping_add(GOLDEN_GAMMA))
}

#[cfg(test)]
mod tests;
