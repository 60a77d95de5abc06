//! Several keyspaces that are written together, as indexes of one set of records are.

use crate::keys::Keys;
use crate::{Op, Ranks, WorkloadError, value_seed};

/// The most keyspaces: their ids are bytes in front of keys.
pub(crate) const KEYSPACES_MAX: usize = 1 << 8;

/// The keyspaces of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The share of each keyspace of all items.
    pub(crate) shares: Vec<f64>,
    /// For each keyspace, the bound below which the hash of an item must be.
    bounds: Vec<u64>,
    /// Upper bound of the items of one keyspace.
    pub(crate) items: u64,
    /// The number of operations of the load phase, and of all.
    pub(crate) load_ops: u64,
    pub(crate) ops_max: u64,
}

impl Group {
    /// Returns the group of keyspaces with these shares, of `items` items each at most, over a
    /// stream of operations whose first `load_ops` are its load phase.
    ///
    /// # Errors
    /// Fails if an operation is an error.
    pub(crate) fn new(
        shares: &[f64],
        items: u64,
        load_ops: u64,
        ops: impl Iterator<Item = Result<Op, WorkloadError>>,
    ) -> Result<Group, WorkloadError> {
        let bound = |share: &f64| (share * u64::MAX as f64) as u64;
        let bounds = shares.iter().map(bound).collect();
        let shares = shares.to_vec();
        let mut group = Group { shares, bounds, items, load_ops: 0, ops_max: 0 };
        for (at, op) in (0..).zip(ops) {
            let count = group.spread(op?).count() as u64;
            group.ops_max += count;
            group.load_ops += if at < load_ops { count } else { 0 };
        }
        Ok(group)
    }

    /// Returns true if keyspace `keyspace` has entries for `item`.
    fn has(&self, keyspace: usize, item: u64) -> bool {
        value_seed(keyspace as u64, item, 0) <= self.bounds[keyspace]
    }

    /// Returns the operations that `op` leads to: a write in each keyspace that has its item, and a
    /// read in the first.
    pub(crate) fn spread(&self, op: Op) -> impl Iterator<Item = Op> {
        let writes = op.writes_value() || op.deletes();
        let keyspaces = if writes { self.bounds.len() } else { 1 };
        let has = move |keyspace: &usize| !writes || self.has(*keyspace, op.item);
        let of = move |keyspace| Op { item: keyspace as u64 * self.items + op.item, ..op };
        (0..keyspaces).filter(has).map(of)
    }

    /// Returns the number of keyspaces.
    pub(crate) fn count(&self) -> u64 {
        self.bounds.len() as u64
    }

    /// Returns the length of the key of `item`. `keys` belong to one keyspace.
    pub(crate) fn key_bytes(&self, item: u64, keys: &Keys) -> usize {
        1 + keys.key_bytes(self.split(item).1)
    }

    /// Returns the keyspace of `item` and the item that it is there.
    pub(crate) fn split(&self, item: u64) -> (u8, u64) {
        ((item / self.items) as u8, item % self.items)
    }

    /// Returns the ranks of all items. `ranks` belong to one keyspace.
    pub(crate) fn ranks(&self, ranks: Ranks) -> Ranks {
        let Ranks::Table(table) = ranks else { return Ranks::Identity };
        let rank = |keyspace: u64, rank: u32| (keyspace * self.items) as u32 + rank;
        let of = |keyspace: usize| table.iter().map(move |own| rank(keyspace as u64, *own));
        Ranks::Table((0..self.bounds.len()).flat_map(of).collect())
    }
}
