//! Plays flushes under a policy.

use super::Watch;
use super::candidates::Candidate;
use super::flushes::Writes;
use lsmith_sim::{KeyedSim, Parts, SimError};
use lsmith_tree::EntryKind;

/// What a policy costs on the flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Played {
    /// Bytes written per byte flushed.
    pub(crate) write: f64,
    /// Runs after a flush, mean over flushes.
    pub(crate) runs_mean: f64,
    /// The most runs after a flush.
    pub(crate) runs_max: u64,
    /// The most bytes held per live byte, merges included.
    pub(crate) space_peak: f64,
    /// Bytes held per live byte at the end.
    pub(crate) space_now: f64,
    /// Entries that merges dropped, over entries flushed.
    pub(crate) dropped: f64,
}

/// Plays `writes` under the policy of `candidate`. Flushes that stand for the beginning cost
/// nothing.
pub(crate) fn play(
    candidate: &Candidate,
    writes: &Writes,
    watch: &mut dyn Watch,
) -> Result<Played, SimError> {
    let bytes = |writes: &[super::flushes::Write]| -> u64 {
        writes.iter().map(|write| u64::from(write.bytes)).sum()
    };
    let flushed = writes.flushes.iter().filter(|(is_base, _)| !is_base);
    let memtable_bytes = flushed.map(|(_, writes)| bytes(writes)).max().unwrap_or(1);
    let mut sim = KeyedSim::new(&candidate.policy, memtable_bytes);
    if !candidate.is_ours() {
        // In other stores merges of whole runs write all that they take.
        sim = sim.with_rewrites();
    }
    watch.begin(candidate.store, &candidate.name, writes.flushes.len() as u64, writes.keys);
    let mut live = vec![0_u32; writes.keys as usize];
    let mut live_bytes = 0;
    let mut before = Parts::default();
    let (mut entries, mut flushes, mut entries_before) = (0, 0, 0);
    let mut played = Played::default();
    for (done, (is_base, flush)) in (1..).zip(&writes.flushes) {
        for write in flush {
            let kind = if write.is_delete { EntryKind::Delete } else { EntryKind::Put };
            sim.write(kind, write.rank, write.bytes);
            let newest = if write.is_delete { 0 } else { write.bytes };
            let old = std::mem::replace(&mut live[write.rank as usize], newest);
            live_bytes = live_bytes + u64::from(newest) - u64::from(old);
        }
        sim.flush(live_bytes, &mut |event| watch.observe(event))?;
        watch.advance(done);
        let runs = sim.tree().disk_run_count() as u64;
        if *is_base {
            before = sim.figures().parts;
            entries_before = held_entries(&sim);
        } else {
            entries += flush.len() as u64;
            flushes += 1;
            played.runs_mean += runs as f64;
            played.runs_max = played.runs_max.max(runs);
        }
    }
    let figures = sim.figures();
    let written = |parts: &Parts| {
        parts.flush_written_bytes + parts.merge_memory_bytes + parts.merge_written_bytes
    };
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let flushed = figures.parts.flush_bytes - before.flush_bytes;
    let left = held_entries(&sim);
    Ok(Played {
        write: share(written(&figures.parts) - written(&before), flushed),
        runs_mean: played.runs_mean / f64::from(flushes.max(1)),
        space_peak: figures.space_cost_peak,
        space_now: share(sim.tree().disk_bytes(), live_bytes),
        dropped: share((entries_before + entries).saturating_sub(left), entries),
        ..played
    })
}

fn held_entries(sim: &KeyedSim) -> u64 {
    sim.tree().disk_runs().map(|run| run.size().entries).sum()
}

#[cfg(test)]
mod tests {
    use super::super::flushes::Write;
    use super::*;
    use lsmith_policy::Registry;

    #[test]
    fn what_a_store_held_before_costs_nothing_but_is_merged_with() {
        let flush = |number: u32| {
            let write = |at: u32| Write { rank: at * 3 + number, bytes: 100, is_delete: false };
            (number < 2, (0..10).map(write).collect())
        };
        let writes = Writes { flushes: (0..3).map(flush).collect(), keys: 30 };
        let policy = Registry::builtin().build("constant(k=1)").expect("a policy");
        let candidate = Candidate::ours("constant(k=1)", policy);
        let played = play(&candidate, &writes, &mut ()).expect("a simulation");
        // A flush of 10 entries, and a merge of all 30.
        assert_eq!((played.write, played.dropped, played.runs_max), (4.0, 0.0, 1));
    }

    /// Merges of lsmith keep tables where no other input has keys. Merges of other stores do not.
    #[test]
    fn keys_in_order_are_written_again_by_other_stores_alone() {
        let flush = |number: u32| {
            let write = |at: u32| Write { rank: number * 10 + at, bytes: 100, is_delete: false };
            (false, (0..10).map(write).collect())
        };
        let writes = Writes { flushes: (0..4).map(flush).collect(), keys: 40 };
        let policy = Registry::builtin().build("constant(k=2)").expect("a policy");
        let ours = Candidate::ours("constant(k=2)", policy);
        let theirs = Candidate { store: "RocksDB", ..ours.clone() };
        let write = |candidate| play(candidate, &writes, &mut ()).expect("a simulation").write;
        let (ours, theirs) = (write(&ours), write(&theirs));
        assert_eq!((ours, theirs), (1.25, 1.75));
    }
}
