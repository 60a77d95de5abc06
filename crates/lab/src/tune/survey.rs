//! Reads a whole workload once and counts what a sample of it must keep.

use anyhow::{Result, bail};
use lsmith_policy::written_bytes_max;
use lsmith_sim::written_kind;
use lsmith_tree::logical_bytes;
use lsmith_workload::{LiveBytes, Op, Workload};
use std::collections::HashMap;

/// The most items that are counted in an array. More are counted in a map, because a workload may
/// use few items of a large key space.
const ARRAY_ITEMS_MAX: u64 = 1 << 26;

/// The writes of one item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ItemWrites {
    pub(super) count: u32,
    /// The number of writes of all items before the first write of this one.
    pub(super) first: u32,
}

/// The writes of each item.
#[derive(Clone, Debug)]
enum ByItem {
    Array(Vec<ItemWrites>),
    Map(HashMap<u64, ItemWrites>),
}

impl ByItem {
    fn new(items: u64) -> ByItem {
        if items <= ARRAY_ITEMS_MAX {
            ByItem::Array(vec![ItemWrites::default(); items as usize])
        } else {
            ByItem::Map(HashMap::new())
        }
    }

    fn of_mut(&mut self, item: u64) -> &mut ItemWrites {
        match self {
            ByItem::Array(items) => &mut items[item as usize],
            ByItem::Map(items) => items.entry(item).or_default(),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = (u64, ItemWrites)> + '_> {
        match self {
            ByItem::Array(items) => Box::new((0..).zip(items.iter().copied())),
            ByItem::Map(items) => Box::new(items.iter().map(|(item, writes)| (*item, *writes))),
        }
    }
}

/// What one reading of all operations of a workload tells.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    by_item: ByItem,
    /// The number of operations that were read.
    pub(super) ops: u64,
    /// The number of writes among them, deletes included.
    pub(super) writes: u64,
    /// The logical bytes of these writes.
    pub(super) bytes: u64,
    /// The bytes of the keys of these writes.
    key_bytes: u64,
    /// The greatest number of live entries.
    pub(super) live_entries_max: u64,
    /// The greatest number of live bytes.
    pub(super) live_bytes_max: u64,
}

impl Survey {
    /// Reads `workload` to its end, or until memtables of `memtable_bytes` have reached its limit
    /// on flushes under every policy.
    ///
    /// # Errors
    /// Fails if the workload writes nothing, or has a damaged line.
    pub(super) fn of(workload: &Workload, memtable_bytes: u64) -> Result<Survey> {
        let flushes_max = workload.limit_flushes();
        let most = written_bytes_max(memtable_bytes);
        let bytes_max = flushes_max.map_or(u64::MAX, |flushes| flushes.saturating_mul(most));
        let mut survey = Survey {
            by_item: ByItem::new(workload.items()),
            ops: 0,
            writes: 0,
            bytes: 0,
            key_bytes: 0,
            live_entries_max: 0,
            live_bytes_max: 0,
        };
        if workload.lives().expire() {
            bail!("advice on entries that expire is not known: leave out `expire`");
        }
        if workload.deletes_ranges() {
            let spec = workload.spec();
            bail!("{spec} deletes ranges: expected a workload that does not, for advice");
        }
        let mut live = LiveBytes::new();
        for op in workload.ops() {
            let op = op?;
            survey.ops += 1;
            if written_kind(op.kind).is_none() {
                continue;
            }
            let key_bytes = workload.key_bytes(op.item);
            live.observe(&op, key_bytes);
            survey.note(&op, key_bytes, &live)?;
            if survey.bytes >= bytes_max {
                break;
            }
        }
        if survey.writes == 0 {
            bail!("the workload writes nothing");
        }
        Ok(survey)
    }

    fn note(&mut self, op: &Op, key_bytes: usize, live: &LiveBytes) -> Result<()> {
        let Ok(before) = u32::try_from(self.writes) else {
            bail!("the workload has 2^32 writes or more; limit it by `ops=`");
        };
        let item = self.by_item.of_mut(op.item);
        if item.count == 0 {
            item.first = before;
        }
        item.count += 1;
        self.writes += 1;
        self.bytes += logical_bytes(key_bytes, op.value_bytes as usize);
        self.key_bytes += key_bytes as u64;
        self.live_entries_max = self.live_entries_max.max(live.entries());
        self.live_bytes_max = self.live_bytes_max.max(live.bytes());
        Ok(())
    }

    /// Returns the mean bytes of a key.
    pub(super) fn key_bytes(&self) -> f64 {
        self.key_bytes as f64 / self.writes as f64
    }

    /// Returns the items that are written more than `count` times.
    pub(super) fn written_over(&self, count: u32) -> Vec<(u64, ItemWrites)> {
        self.by_item.iter().filter(|(_, writes)| writes.count > count).collect()
    }
}
