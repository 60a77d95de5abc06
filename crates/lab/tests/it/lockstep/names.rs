//! Keys in the place of ranks.

use lsmith_sim::KeyedWorkload;
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{KeyRange, MergePlan, key_after};
use lsmith_workload::OpKind;
use std::collections::HashMap;

/// The keys of a workload by the text form of their ranks.
pub(super) struct Names(HashMap<Vec<u8>, Vec<u8>>);

impl Names {
    pub(super) fn of(workload: &KeyedWorkload) -> Names {
        let mut names = HashMap::new();
        let mut key = Vec::new();
        for op in workload.workload().ops() {
            let op = op.unwrap();
            let ends = [op.item, op.end()];
            for item in &ends[..if op.kind == OpKind::DeleteRange { 2 } else { 1 }] {
                workload.workload().key(*item, &mut key);
                let rank = lsmith_sim::rank_key(workload.ranks().rank(*item));
                names.insert(key_after(&rank).to_vec(), key_after(&key).to_vec());
                names.insert(rank.to_vec(), key.clone());
            }
        }
        Names(names)
    }

    fn key(&self, rank: &[u8]) -> Vec<u8> {
        if rank.is_empty() { Vec::new() } else { self.0[rank].clone() }
    }

    pub(super) fn plan(&self, plan: &MergePlan) -> MergePlan {
        let mut plan = plan.clone();
        for input in &mut plan.inputs {
            let KeyRange { start, end } = &input.range;
            let end = end.as_ref().map(|end| self.key(end).into());
            input.range = KeyRange { start: self.key(start).into(), end };
        }
        plan.cuts.keys.iter_mut().for_each(|cut| *cut = self.key(cut).into());
        for value in plan.memo.iter_mut().filter_map(|(_, value)| value.as_mut()) {
            // Some notes are keys; others are numbers or words, which are equal on both sides.
            if let Ok(key) = parse_key(value)
                && self.0.contains_key(&key[..])
            {
                *value = display_key(&self.key(&key)).to_string();
            }
        }
        plan
    }
}
