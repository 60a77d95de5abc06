//! Plays the operations of a workload on a store.

use crate::meter::Meter;
use anyhow::Context;
use lsmith::Keyspace;
use lsmith_sim::{FullMemtables, written_entry};
use lsmith_workload::{LiveBytes, Lives, Op, OpKind, Workload};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Applies operations one by one.
pub(crate) struct Player<'a> {
    /// One keyspace, or all keyspaces of a group.
    keyspaces: &'a [Keyspace],
    workload: &'a Workload,
    meter: &'a Meter,
    live: LiveBytes,
    /// The clock of the store.
    writes: &'a AtomicU64,
    key: Vec<u8>,
    /// The key behind a range.
    end: Vec<u8>,
    value: Vec<u8>,
    /// How long the value lives, if it says so itself: a second is a write.
    life: Option<Duration>,
    /// Operations done.
    ops: u64,
    /// The flushes under a policy that counts in blocks.
    filled: Option<FullMemtables>,
}

impl<'a> Player<'a> {
    /// Returns a player of `workload`. `writes` counts all writes, also by earlier players.
    pub(crate) fn new(
        keyspaces: &'a [Keyspace],
        workload: &'a Workload,
        meter: &'a Meter,
        writes: &'a AtomicU64,
    ) -> Player<'a> {
        Player {
            keyspaces,
            workload,
            meter,
            live: LiveBytes::of(workload),
            writes,
            key: Vec::new(),
            end: Vec::new(),
            value: Vec::new(),
            life: None,
            ops: 0,
            filled: None,
        }
    }

    /// Returns the same player, which also counts full memtables of `bytes` logical bytes.
    pub(crate) fn counting_memtables_of(self, bytes: u64) -> Player<'a> {
        Player { filled: Some(FullMemtables::new(bytes)), ..self }
    }

    /// Returns the number of full memtables, if they are counted.
    pub(crate) fn filled(&self) -> Option<u64> {
        self.filled.as_ref().map(FullMemtables::count)
    }

    /// Operations done.
    pub(crate) fn ops(&self) -> u64 {
        self.ops
    }

    /// Applies `op` as YCSB defines it. An update writes the whole value. A scan reads the given
    /// number of entries from its key on. A read-modify-write reads before it writes.
    pub(crate) fn play(&mut self, op: &Op) -> anyhow::Result<()> {
        self.workload.key(op.item, &mut self.key);
        if let Some((kind, bytes)) = written_entry(op, self.key.len()) {
            // Before the write, which may seal the memtable that it fills.
            self.writes.fetch_add(1, Ordering::SeqCst);
            if let Lives::Each(_) = self.workload.lives() {
                self.life = (op.life > 0).then(|| Duration::from_secs(op.life));
            }
            self.live.observe(op, self.key.len());
            self.meter.set_live(self.live.bytes(), self.live.entries());
            self.meter.request(u64::from(bytes));
            if let Some(filled) = &mut self.filled {
                let key = u32::try_from(op.item).expect("workloads have 2^32 keys at most");
                filled.write(kind, key, bytes);
            }
        }
        if op.writes_value() {
            self.make_value(op);
        }
        if op.kind == OpKind::DeleteRange {
            self.workload.key(op.end(), &mut self.end);
        }
        let Player { keyspaces, key, end, value, life, .. } = self;
        // In a group the store puts the number of the keyspace in front of a key itself.
        let (keyspace, key) = match self.workload.keyspace_items() {
            None => (&keyspaces[0], &key[..]),
            Some(items) => (&keyspaces[(op.item / items) as usize], &key[1..]),
        };
        match op.kind {
            OpKind::Read => keyspace.get(key).map(drop),
            OpKind::Put => put(keyspace, key, value, *life),
            OpKind::Insert => keyspace.put_new_unchecked(key, value),
            OpKind::Delete => keyspace.delete(key),
            OpKind::Remove => keyspace.delete_single_unchecked(key),
            OpKind::Combine => keyspace.combine(key, value),
            OpKind::DeleteRange => keyspace.delete_range(key..&end[..]),
            OpKind::Scan => {
                let mut entries = keyspace.range(key..).take(op.items as usize);
                entries.try_for_each(|entry| entry.map(drop))
            }
            OpKind::ReadModifyWrite => {
                keyspace.get(key).and_then(|_| put(keyspace, key, value, *life))
            }
        }
        .with_context(|| {
            format!("operation {} of {} failed", self.ops + 1, self.workload.spec())
        })?;
        self.ops += 1;
        Ok(())
    }

    fn make_value(&mut self, op: &Op) {
        self.value.resize(op.value_bytes as usize, 0);
        self.workload.value(op.item, self.ops, &mut self.value);
    }
}

/// Puts a value, which lives for `life`, if that is its own.
fn put(
    keyspace: &Keyspace,
    key: &[u8],
    value: &[u8],
    life: Option<Duration>,
) -> lsmith::Result<()> {
    match life {
        Some(life) => keyspace.put_with_ttl(key, value, life),
        None => keyspace.put(key, value),
    }
}
