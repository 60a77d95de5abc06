//! Several keyspaces in place of one.

use super::Workload;
use crate::group::{Group, KEYSPACES_MAX};
use crate::parts::KEYS_MAX;
use crate::{Lives, WorkloadError};
use lsmith_spec::SpecError;

impl Workload {
    /// Returns the workload for a group of keyspaces, as indexes of one set of records: keyspace
    /// `i` has the share `shares[i]` of all items, chosen by hash. A write of an item is made in
    /// each keyspace that has the item, one after the other, with values of equal length. Reads
    /// look into the first keyspace. In front of each key stands a byte, the id of its keyspace, as
    /// in the tree of a group in a store.
    ///
    /// [`spec`](Workload::spec) still describes the workload of one keyspace.
    ///
    /// # Errors
    /// Fails if there are no shares or more than 256, if a share is not above 0 and at most 1, if
    /// the keyspaces together have more than 2^32 - 1 items, if the workload has scans, range
    /// deletes or lives of each entry, or if a line of a trace is damaged.
    pub fn in_group(mut self, shares: &[f64]) -> Result<Workload, WorkloadError> {
        let bad = |message: String| Err(WorkloadError::Spec(SpecError::conflict(message)));
        if !(1..=KEYSPACES_MAX).contains(&shares.len()) {
            let count = shares.len();
            return bad(format!("a group of {count} keyspaces: expected 1 to {KEYSPACES_MAX}"));
        }
        if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
            return bad(format!("a share of {share}: expected more than 0 and at most 1"));
        }
        if self.scan_items().is_some() {
            let spec = self.spec();
            return bad(format!("{spec} has scans: expected a workload without, for a group"));
        }
        if self.deletes_ranges() {
            let spec = self.spec();
            return bad(format!("{spec} deletes ranges: expected a workload that does not"));
        }
        if matches!(self.lives(), Lives::Each(_)) {
            return bad(
                "expire=recorded counts the writes of one keyspace: expected no group".into()
            );
        }
        let items = self.items().max(1);
        if items.saturating_mul(shares.len() as u64) > KEYS_MAX {
            let count = shares.len();
            return bad(format!(
                "{count} keyspaces of {items} keys: expected at most {KEYS_MAX} keys together"
            ));
        }
        self.group = Some(Group::new(shares, items, self.load_ops(), self.ops())?);
        Ok(self)
    }

    /// Returns the shares of the keyspaces, as [`in_group`](Workload::in_group) takes them. Empty
    /// if the workload has no group.
    #[must_use]
    pub fn group_shares(&self) -> &[f64] {
        self.group.as_ref().map_or(&[], |group| &group.shares)
    }

    /// Returns the upper bound of the items of each keyspace, if the workload has a group: item `i`
    /// belongs to keyspace number `i` over this bound.
    #[must_use]
    pub fn keyspace_items(&self) -> Option<u64> {
        self.group.as_ref().map(|group| group.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoInputs, Op, OpKind};
    use std::collections::BTreeSet;

    fn workload(spec: &str) -> Workload {
        Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap()
    }

    /// Each keyspace sees the writes of its items, in the order in which they are made.
    #[test]
    fn each_keyspace_has_its_share_of_the_same_stream() {
        let alone = workload("ycsb(a, records=2k, ops=8k)");
        let group = alone.clone().in_group(&[1.0, 0.25]).unwrap();
        let items = group.keyspace_items().unwrap();
        let mut parts = [Vec::new(), Vec::new()];
        for op in group.ops() {
            let op = op.unwrap();
            parts[(op.item / items) as usize].push(Op { item: op.item % items, ..op });
        }
        let all: Vec<Op> = alone.ops().map(Result::unwrap).collect();
        assert_eq!(parts[0], all);
        let chosen: BTreeSet<u64> = parts[1].iter().map(|op| op.item).collect();
        let writes = all.iter().filter(|op| op.kind != OpKind::Read);
        let expected: Vec<Op> = writes.filter(|op| chosen.contains(&op.item)).copied().collect();
        assert_eq!(parts[1], expected);
        assert!((400..600).contains(&chosen.len()), "{}", chosen.len());
        assert_eq!(group.ops_max() as usize, parts[0].len() + parts[1].len());
        assert_eq!(group.load_ops() as usize, 2000 + chosen.len());
    }

    #[test]
    fn ranks_are_those_of_the_keys_with_numbers_in_front() {
        for spec in ["load(keys=300)", "load(keys=300, order=sequential)"] {
            let group = workload(spec).in_group(&[0.5, 1.0, 0.5]).unwrap();
            let ranks = group.ranks();
            let key = |item| {
                let mut key = Vec::new();
                group.key(item, &mut key);
                assert_eq!(key.len(), group.key_bytes(item));
                key
            };
            let mut by_rank: Vec<u64> = (0..group.items()).collect();
            by_rank.sort_by_key(|item| ranks.rank(*item));
            assert!(by_rank.is_sorted_by(|left, right| key(*left) < key(*right)), "{spec}");
            assert_eq!(key(300)[0], 1);
        }
    }

    #[test]
    fn what_cannot_be_a_group_is_refused() {
        let refused = |spec: &str, shares: &[f64], expected: &str| {
            let error = workload(spec).in_group(shares).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused("load(keys=5)", &[], "a group of 0 keyspaces: expected 1 to 256");
        refused("load(keys=5)", &[1.0; 257], "257 keyspaces");
        refused("load(keys=5)", &[1.0, 0.0], "a share of 0: expected more than 0");
        refused("load(keys=5)", &[f64::NAN], "a share of NaN");
        refused("load(keys=2G)", &[1.0; 3], "3 keyspaces of 2000000000 keys");
        refused("ycsb(e)", &[1.0], "has scans");
    }
}
