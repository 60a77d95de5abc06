//! The phases: their names, what each does, and how often.

use super::letter::Letter;
use crate::data::Order;
use anyhow::{Result, bail};

/// The phases that have targets.
pub(crate) const DEFAULT: &str =
    "fill_random,get_present,get_absent,seek_next10,scan,overwrite,ycsb_a,fill_batch100";

/// Bytes of values that a phase with a value size of its own writes at most.
const VALUE_PHASE_BYTES: u64 = 2 << 30;

/// Keys of a phase with little memory at least: a quarter of them with their values must leave room
/// for write buffers and cache.
const COLD_KEYS_MIN: u64 = 14_000_000;

/// Reads at most of a phase with little memory: most of them wait for the device.
const COLD_READS: u64 = 200_000;

/// Writes, and operations of YCSB, at most of such a phase: some stores read before they write.
const COLD_WRITES: u64 = 2_000_000;

/// Operations of a sync phase.
const SYNC_OPS: u64 = 20_000;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Every key once, in random order or ascending, one call each.
    FillRandom,
    FillSequential,
    /// Every key once in random order, 100 a call.
    FillBatch,
    /// Gets of random keys, which are all there, or all not.
    GetPresent,
    GetAbsent,
    /// Gets of 100 random present keys a call; each counts as an operation.
    MultiGet,
    /// Gets of a few present keys that lie together, perhaps beside overwrites of all keys.
    GetHot {
        beside_writes: bool,
    },
    /// An iterator set to a random key and read for so many entries.
    Seek(u64),
    /// All entries in order; each counts as an operation.
    Scan,
    ScanReverse,
    /// Puts of random keys that are there.
    Overwrite,
    /// Gets of so many percent, and puts, of random keys that are there.
    Reads(u64),
    Ycsb(Letter),
    /// Puts of new keys, each synced to the device.
    Sync,
    /// Every key deleted in random order.
    Delete,
}

/// One line of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    /// The name.
    pub(crate) name: String,
    /// What is done.
    pub(crate) work: Work,
    /// Threads that do it.
    pub(crate) threads: usize,
    /// Bytes of a value, if the phase has a size of its own.
    pub(crate) value_bytes: Option<usize>,
    /// Whether memory is limited to a part of the data.
    pub(crate) cold: bool,
}

/// Phases that follow each other on the same data in the same process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// In the order in which they run.
    pub(crate) phases: Vec<Phase>,
}

/// Reads a list of phases, separated by commas.
pub(crate) fn parse_all(text: &str, threads: usize) -> Result<Vec<Phase>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut phases: Vec<Phase> = Vec::new();
    for name in names {
        let Some(phase) = parse(name, threads) else {
            bail!("there is no phase called `{name}`; there are: {}", names_all().join(", "))
        };
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    match phases.is_empty() {
        true => bail!("--phases names none of: {}", names_all().join(", ")),
        false => Ok(phases),
    }
}

/// All names.
pub(crate) fn names_all() -> Vec<String> {
    let mut names: Vec<String> = PLAIN.iter().map(|(name, _)| (*name).to_string()).collect();
    for letter in Letter::ALL {
        names.push(format!("ycsb_{}", letter.name()));
        names.push(format!("ycsb_{}_1thread", letter.name()));
    }
    names.extend(LADDER.map(|percent| format!("reads_{percent}")));
    names.extend(["sync_1thread", "sync_4threads", "sync_16threads"].map(str::to_string));
    for suffix in VALUES.map(|(suffix, _)| suffix) {
        names.extend(SIZED.iter().map(|name| format!("{name}{suffix}")));
    }
    names.extend(COLD.iter().map(|name| format!("cold_{name}")));
    names
}

const PLAIN: [(&str, Work); 14] = [
    ("fill_random", Work::FillRandom),
    ("fill_batch100", Work::FillBatch),
    ("fill_sequential", Work::FillSequential),
    ("overwrite", Work::Overwrite),
    ("get_present", Work::GetPresent),
    ("get_absent", Work::GetAbsent),
    ("multi_get", Work::MultiGet),
    ("get_hot", Work::GetHot { beside_writes: false }),
    ("get_hot_beside_writes", Work::GetHot { beside_writes: true }),
    ("seek_next10", Work::Seek(10)),
    ("seek_next100", Work::Seek(100)),
    ("scan", Work::Scan),
    ("scan_reverse", Work::ScanReverse),
    ("delete", Work::Delete),
];

/// Percents of reads among reads and overwrites.
const LADDER: [u64; 5] = [10, 30, 50, 70, 90];

/// Value sizes and how names end for them.
const VALUES: [(&str, usize); 3] = [("_1k", 1000), ("_8k", 8000), ("_64k", 64_000)];

/// The phases that come with other value sizes too.
const SIZED: [&str; 5] =
    ["fill_random", "fill_batch100", "fill_sequential", "overwrite", "get_present"];

/// The phases that come with little memory too.
const COLD: [&str; 11] = [
    "fill_random",
    "get_present",
    "get_absent",
    "multi_get",
    "get_hot",
    "get_hot_beside_writes",
    "seek_next10",
    "scan",
    "overwrite",
    "ycsb_a",
    "ycsb_b",
];

fn parse(name: &str, ycsb_threads: usize) -> Option<Phase> {
    let whole = |work, threads| Phase {
        name: name.to_string(),
        work,
        threads,
        value_bytes: None,
        cold: false,
    };
    let plain = |name: &str| PLAIN.iter().find(|(plain, _)| *plain == name).map(|(_, work)| *work);
    if let Some(work) = plain(name) {
        return Some(whole(work, 1));
    }
    if let Some(rest) = name.strip_prefix("cold_").filter(|rest| COLD.contains(rest)) {
        return Some(Phase { name: name.to_string(), cold: true, ..parse(rest, ycsb_threads)? });
    }
    if let Some(rest) = name.strip_prefix("ycsb_") {
        let (letter, threads) = match rest.strip_suffix("_1thread") {
            Some(letter) => (letter, 1),
            None => (rest, ycsb_threads),
        };
        return Some(whole(Work::Ycsb(Letter::parse(letter)?), threads));
    }
    let rungs = || LADDER.into_iter().map(|percent| (percent, format!("reads_{percent}")));
    if let Some((percent, _)) = rungs().find(|(_, rung)| rung == name) {
        return Some(whole(Work::Reads(percent), 1));
    }
    match name {
        "sync_1thread" => return Some(whole(Work::Sync, 1)),
        "sync_4threads" => return Some(whole(Work::Sync, 4)),
        "sync_16threads" => return Some(whole(Work::Sync, 16)),
        _ => {}
    }
    let (suffix, bytes) = VALUES.into_iter().find(|(suffix, _)| name.ends_with(suffix))?;
    let rest = name.strip_suffix(suffix).filter(|rest| SIZED.contains(rest))?;
    Some(Phase { value_bytes: Some(bytes), ..whole(plain(rest)?, 1) })
}

impl Phase {
    /// Keys of the data for `--ops` of `ops`.
    pub(crate) fn keys(&self, ops: u64) -> u64 {
        match self.value_bytes {
            Some(bytes) => ops.min(VALUE_PHASE_BYTES / bytes as u64),
            None if self.cold => ops.max(COLD_KEYS_MIN),
            None => ops,
        }
    }

    /// Operations over a data set of `keys` keys.
    pub(crate) fn ops(&self, keys: u64) -> u64 {
        let keys = match self.work {
            Work::GetPresent | Work::GetAbsent | Work::MultiGet | Work::Seek(_) if self.cold => {
                keys.min(COLD_READS)
            }
            Work::Overwrite | Work::Ycsb(_) | Work::GetHot { .. } if self.cold => {
                keys.min(COLD_WRITES)
            }
            _ => keys,
        };
        match self.work {
            // The puts of each rung are a quarter of the number of keys.
            Work::Reads(percent) => keys * 25 / (100 - percent),
            Work::Seek(10) => keys.div_ceil(4),
            Work::Seek(_) => keys.div_ceil(20),
            Work::Ycsb(Letter::E) => keys.div_ceil(20),
            Work::Sync => SYNC_OPS.min(keys),
            _ => keys,
        }
    }

    /// How the keys of its data lie.
    pub(crate) fn order(&self) -> Order {
        match self.work {
            Work::FillSequential => Order::Ascending,
            _ => Order::Random,
        }
    }

    /// Returns true if the phase begins with an empty store, and no other phase uses the store.
    fn alone(&self) -> bool {
        matches!(self.work, Work::FillSequential | Work::FillBatch | Work::Sync)
    }

    /// Whether the phase writes.
    pub(crate) fn writes(&self) -> bool {
        match self.work {
            Work::FillRandom | Work::FillSequential | Work::FillBatch => true,
            Work::Overwrite | Work::Delete | Work::Sync | Work::Ycsb(_) => true,
            Work::Reads(_) => true,
            Work::GetHot { beside_writes } => beside_writes,
            Work::GetPresent | Work::GetAbsent | Work::MultiGet => false,
            Work::Seek(_) | Work::Scan | Work::ScanReverse => false,
        }
    }

    /// Returns true if the phase begins with an empty store.
    pub(crate) fn fills(&self) -> bool {
        self.alone() || self.work == Work::FillRandom
    }
}

/// Divides phases into chains.
pub(crate) fn chains(phases: &[Phase]) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    for phase in phases {
        let data = |phase: &Phase| (phase.value_bytes, phase.cold);
        let fits = |chain: &&mut Chain| {
            let first = &chain.phases[0];
            !first.alone() && data(first) == data(phase)
        };
        match chains.iter_mut().find(fits) {
            Some(chain) if !phase.alone() => chain.phases.push(phase.clone()),
            _ => chains.push(Chain { phases: vec![phase.clone()] }),
        }
    }
    for chain in &mut chains {
        chain.phases.sort_by_key(|phase| phase.work);
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Phase> {
        parse_all(text, 2).unwrap()
    }

    #[test]
    fn every_name_that_is_listed_can_be_read() {
        let names = names_all();
        let phases = parsed(&names.join(","));
        let read: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(read, names);
        assert_eq!(parsed(DEFAULT).len(), 8);
    }

    #[test]
    fn names_carry_threads_values_and_memory() {
        let asked = "ycsb_f, ycsb_f_1thread, sync_16threads, overwrite_8k, cold_scan";
        let phases = parsed(&format!("{asked}, overwrite_64k, cold_ycsb_a"));
        let threads: Vec<usize> = phases.iter().map(|phase| phase.threads).collect();
        assert_eq!(threads, [2, 1, 16, 1, 1, 1, 2]);
        assert_eq!(phases[3].value_bytes, Some(8000));
        assert_eq!(phases[3].keys(10_000_000), 268_435);
        assert!(phases[4].cold);
        assert_eq!((phases[5].value_bytes, phases[5].keys(10_000_000)), (Some(64_000), 33_554));
        assert!(phases[6].cold && phases[6].name == "cold_ycsb_a");
        assert_eq!(phases[6].ops(phases[6].keys(1000)), 2_000_000);
        for wrong in ["ycsb_g", "scan_1k", "cold_delete", "sync_2threads", ""] {
            assert!(parse_all(wrong, 2).is_err(), "{wrong}");
        }
    }

    #[test]
    fn phases_on_the_same_data_share_a_chain_and_fill_it_first() {
        let asked = "overwrite,fill_batch100,get_present,fill_random,scan_reverse,overwrite_1k,\
                     cold_scan";
        let chains = chains(&parsed(asked));
        let names: Vec<Vec<&str>> = chains
            .iter()
            .map(|chain| chain.phases.iter().map(|phase| phase.name.as_str()).collect())
            .collect();
        assert_eq!(
            names,
            [
                vec!["fill_random", "get_present", "scan_reverse", "overwrite"],
                vec!["fill_batch100"],
                vec!["overwrite_1k"],
                vec!["cold_scan"],
            ]
        );
    }
}
