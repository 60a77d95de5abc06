//! Plays the flushes of a LOG again, under the present settings and under others.

mod advice;
mod candidates;
mod flushes;
mod keys;
mod play;
mod trust;
mod watch;

pub use advice::Move;
pub use watch::Watch;

use crate::{Case, Family, Store, cassandra};
use candidates::{Candidate, Present};
use flushes::Flushes;
use lsmith_model::optimum::least_of_sizes;
use play::{Played, play};
use serde::Serialize;

/// The least flushes of a replay. With fewer, hardly anything was merged.
const FLUSHES_MIN: usize = 8;

/// The most flushes that policies are played for that look at each table to pick one: the time per
/// flush grows with the tree. This many take some seconds.
const SLOW_FLUSHES_MAX: usize = 5000;

/// What other settings and policies would have cost on the same flushes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// Bytes written per byte flushed, as the LOG counts them.
    pub counted: f64,
    /// The same in a simulation of the present settings.
    pub replayed: f64,
    /// What the simulation is off by: (replayed - counted) / counted.
    pub error: f64,
    /// The part by which rows must differ to say something: the error, and [`Replay::BAND_MIN`] at
    /// least.
    pub band: f64,
    /// What the replay does not know, the weightiest first.
    pub doubts: Vec<String>,
    /// The number of different keys, each written as often as another, with which the compactions
    /// of the LOG would have written as many entries.
    pub keys: u64,
    /// The policies: the present settings first, the others by what they write.
    pub rows: Vec<Row>,
    /// The best rows, and how to get there. Empty if no row writes less by more than the band.
    pub moves: Vec<Move>,
}

/// What a policy costs on the flushes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The store that has the policy: `RocksDB`, `LevelDB` or `lsmith`.
    pub store: &'static str,
    /// Settings of RocksDB in short, or the spec of a policy of lsmith.
    pub policy: String,
    /// True for the present settings.
    pub is_present: bool,
    /// True for the policy of lsmith that is nearest to the present settings.
    pub is_nearest: bool,
    /// Bytes written per byte flushed.
    pub write: f64,
    /// The least that merges of whole runs can write with as many runs, if no key comes twice. A
    /// policy that drops many entries may write less.
    pub least: f64,
    /// True if `least` is the optimum; otherwise it is a lower bound of it.
    pub is_exact: bool,
    /// Runs after a flush, mean over flushes.
    pub runs_mean: f64,
    /// The most runs after a flush.
    pub runs_max: u64,
    /// The most bytes held per live byte, compactions under way included.
    pub space_peak: f64,
    /// Bytes held per live byte at the end.
    pub space_now: f64,
}

impl Replay {
    /// The least band. The simulation was off by up to a tenth on the stores that it was tested on
    /// (docs/doctor.md), so a smaller error of one store is luck.
    pub const BAND_MIN: f64 = 0.1;

    /// Plays the flushes of `family`.
    ///
    /// # Errors
    /// Fails with the reason if the files do not say enough.
    pub fn of(case: &Case, family: &Family) -> Result<Replay, String> {
        Replay::watched(case, family, &mut ())
    }

    /// Plays the flushes of `family`, and tells `watch` of it. The present settings come first.
    ///
    /// # Errors
    /// As [`Replay::of`].
    pub fn watched(case: &Case, family: &Family, watch: &mut dyn Watch) -> Result<Replay, String> {
        watch.begin_family(&family.name);
        let with_entries;
        let family = if case.store == Store::Cassandra {
            with_entries = cassandra::with_entries(family);
            &with_entries
        } else {
            family
        };
        if family.flushes().count() < FLUSHES_MIN {
            return Err(format!("No replay: expected at least {FLUSHES_MIN} flushes in the LOG."));
        }
        let flushes = Flushes::of(family)?;
        let major = case.version.as_deref().and_then(|version| version.split('.').next());
        let major = major.and_then(|major| major.parse().ok()).unwrap_or(0);
        let present =
            Present::of(family, major, &flushes).ok_or_else(|| unknown_settings(case, family))?;
        let keys = keys::keys(family, &flushes);
        let writes = flushes.writes(keys);
        let now = play(&present.now, &writes, watch)
            .map_err(|error| format!("No replay of the settings of now: {error}."))?;
        let sizes: Vec<u64> = family.flushes().map(|job| job.output_bytes()).collect();
        let (mut candidates, mut rows) = (Vec::new(), Vec::new());
        let mut doubts = trust::doubts(case, family, &flushes, now.dropped);
        for (place, candidate) in present.candidates().into_iter().enumerate() {
            if place > 0 && candidate.is_slow && writes.flushes.len() > SLOW_FLUSHES_MAX {
                let name = &candidate.name;
                doubts.push(format!("what {name} costs: that many flushes take it too long"));
                continue;
            }
            // The first one has the settings of now.
            match if place == 0 { Ok(now) } else { play(&candidate, &writes, watch) } {
                Ok(played) => {
                    rows.push(row(&candidate, &played, &sizes));
                    candidates.push(candidate);
                }
                Err(error) => doubts.push(format!("what {} costs: {error}", candidate.name)),
            }
        }
        rows[0].is_present = true;
        leave_out_repetitions(&mut candidates, &mut rows);
        let flushed: u64 = sizes.iter().sum();
        let compacted: u64 = family.compactions().map(|job| job.output_bytes()).sum();
        let counted = (flushed + compacted) as f64 / flushed.max(1) as f64;
        let error = now.write / counted - 1.0;
        let band = error.abs().max(Replay::BAND_MIN);
        let moves = advice::moves(family, &candidates, &rows, band);
        rows[1..].sort_by(|left, right| left.write.total_cmp(&right.write));
        let (keys, replayed) = (keys as u64, now.write);
        Ok(Replay { counted, replayed, error, band, doubts, keys, rows, moves })
    }
}

/// Returns why the settings of now cannot be played.
fn unknown_settings(case: &Case, family: &Family) -> String {
    match family.settings.get("compaction_style") {
        Some(strategy) if case.store == Store::Cassandra => format!(
            "No replay: {strategy} is not known; expected {}, {} or {}.",
            cassandra::SIZE_TIERED,
            cassandra::LEVELED,
            cassandra::UNIFIED
        ),
        _ => "No replay: expected the settings in OPTIONS-* or the head of a LOG.".to_owned(),
    }
}

/// Returns what `candidate` costs, for flushes of `sizes`.
fn row(candidate: &Candidate, played: &Played, sizes: &[u64]) -> Row {
    let least = least_of_sizes(sizes, played.runs_max);
    Row {
        store: candidate.store,
        policy: candidate.name.clone(),
        is_present: false,
        is_nearest: candidate.is_nearest,
        write: played.write,
        least: 1.0 + least.merged / sizes.iter().sum::<u64>().max(1) as f64,
        is_exact: least.is_exact,
        runs_mean: played.runs_mean,
        runs_max: played.runs_max,
        space_peak: played.space_peak,
        space_now: played.space_now,
    }
}

/// Leaves out settings of RocksDB that cost as much as earlier ones: they differ in levels that the
/// tree does not reach.
fn leave_out_repetitions(candidates: &mut Vec<Candidate>, rows: &mut Vec<Row>) {
    let is_same = |row: &Row, other: &Row| {
        let figures = |row: &Row| [row.write, row.runs_mean, row.space_peak, row.space_now];
        row.store == "RocksDB" && other.store == row.store && figures(row) == figures(other)
    };
    for place in (1..rows.len()).rev() {
        if rows[..place].iter().any(|row| is_same(row, &rows[place])) {
            rows.remove(place);
            candidates.remove(place);
        }
    }
}
