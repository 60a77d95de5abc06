//! Sweep: young runs are merged into the oldest run one window of keys after the other.

use crate::pressure::pressure_of_runs;
use crate::tables::stack_depth;
use crate::{Eager, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{
    Cuts, Input, Key, KeyRange, MergePlan, Mode, Place, Reason, Run, RunId, TreeView,
};
use std::sync::Arc;

/// Keeps one large run, the oldest, and young runs above it. The young runs hold at most `young`
/// times the bytes of the oldest run, or `least` memtables if that is more. When they hold more,
/// the next window of keys is merged into the oldest run, out of all young runs at once. A window
/// holds a quarter of a memtable. Windows follow each other through the key space, round after
/// round.
///
/// So the tree never holds more overwritten entries than the young runs have, and no merge needs
/// room for a second copy of all data. During a round, twice as many bytes arrive as the young runs
/// hold. With S bytes of young runs above B bytes, each byte is written B / 2S times into the
/// oldest run. A policy that merges whole runs after every S bytes writes it B / S times.
///
/// The runs of one round are merged with each other as MinLatency does with `(k - 1) / 2` runs.
/// They are never merged with runs that remain from the round before.
///
/// Source: the round-robin merges of Thonangi & Yang, ICDE 2017, section III-B, out of several runs
/// at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sweep {
    k: u64,
    young: f64,
    least: f64,
}

/// Windows per memtable. Few enough for large writes, and enough that a merge of one window needs
/// little room and a memtable does not wait long for it.
const WINDOWS: u64 = 4;

/// The pressure if young runs hold three memtables or more too much, as they do in a tree that
/// another policy has left.
const DEBT_PRESSURE_MAX: f64 = 0.9;

/// The name of the note that holds the start of the next window.
const NEXT: &str = "sweep_next";

/// The name of the note that holds the newest run of the round before, and the number of flushes
/// until then.
const ROUND: &str = "sweep_round";

impl Sweep {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "sweep",
        source: "Thonangi & Yang, ICDE 2017, section III-B (round robin), out of several runs",
        summary: "young runs go into one large run, a window of keys of all of them at a time",
        params: &[
            ParamInfo {
                name: "k",
                default: "11",
                meaning: "most runs on storage at rest, 3 to 64",
            },
            ParamInfo {
                name: "young",
                default: "0.2",
                meaning: "bytes of all runs but the oldest over those of the oldest, at most",
            },
            ParamInfo {
                name: "least",
                default: "5",
                meaning: "memtables that young runs may hold however small the oldest is",
            },
        ],
        build: |params| Ok(Arc::new(Sweep::read(params)?)),
    };

    /// Returns the policy with at most `k` runs, from 3 to 64. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `k` is out of range.
    pub fn new(k: u64) -> Result<Sweep, SpecError> {
        Sweep::INFO.read(&Spec::bare(Sweep::INFO.name).with("k", k), Sweep::read)
    }

    fn read(params: &Params<'_>) -> Result<Sweep, SpecError> {
        let k = params.count("k", 11, 3..=64)?;
        let young = params.real("young", 0.2, 0.01..=100.0)?;
        Ok(Sweep { k, young, least: params.real("least", 5.0, 1.0..=1000.0)? })
    }

    /// Returns the most runs of one round.
    fn round_runs(self) -> u64 {
        (self.k - 1) / 2
    }

    /// Returns the merge of the newest runs of this round, if there are more than its flushes
    /// allow.
    fn merge_round(self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view);
        let (last, flushes_before) = round_before(view).unwrap_or((RunId(u64::MAX), 0));
        let young = stack.len().checked_sub(1)?;
        let is_before = |run: &crate::StackRun| run.id == last;
        let runs = stack.runs().iter().position(is_before).unwrap_or(young);
        let flushes = stack.flushes().saturating_sub(flushes_before);
        let leave = stack_depth(self.round_runs(), flushes.clamp(1, 1 << 62)).max(1) as usize;
        let newest = (runs + 1).checked_sub(leave).filter(|newest| *newest > 1)?;
        let numbers = [flushes, leave as u64, runs as u64];
        let reason = Reason::new("flush {} of the round leaves {} runs of {}", numbers);
        stack.merge(0, newest, Eager::Auto, reason)
    }

    /// Returns the bytes that the young runs hold, and the bytes that they may hold.
    fn young_bytes(self, view: &TreeView) -> (u64, u64) {
        let mut bytes: u64 = view.tree.disk_runs().map(|run| run.bytes()).sum();
        let oldest = view.tree.disk_runs().last().map_or(0, |run| run.bytes());
        bytes -= oldest;
        let least = view.memtable_bytes as f64 * self.least;
        (bytes, (oldest as f64 * self.young).max(least) as u64)
    }

    /// Returns the merge of the next window, if the young runs hold too much, or if another policy
    /// has left more runs than may stay.
    fn sweep(self, view: &TreeView) -> Option<MergePlan> {
        let (bytes, allowed) = self.young_bytes(view);
        if bytes <= allowed && view.tree.disk_run_count() as u64 <= self.k {
            return None;
        }
        let runs: Vec<_> = view.tree.disk_runs().collect();
        let (oldest, young) = runs.split_last()?;
        let piece = (view.memtable_bytes / WINDOWS).max(1);
        let next = view.memo(NEXT).and_then(|text| parse_key(text).ok()).unwrap_or_default();
        let window = window(young, next, piece).or_else(|| window(young, Key::new(), piece))?;
        let has_keys = |run: &&&Arc<Run>| !run.overlapping(&window).is_empty();
        let inputs = runs.iter().filter(has_keys);
        let inputs: Vec<_> =
            inputs.map(|run| Input { run: run.id(), range: window.clone() }).collect();
        let mut memo = Vec::new();
        if window.end.is_none() {
            let round = format!("{}/{}", young[0].id().0, view.tree.flushes());
            memo.push((ROUND.into(), Some(round)));
        }
        let end = window.end.unwrap_or_default();
        memo.push((NEXT.into(), Some(display_key(&end).to_string())));
        Some(MergePlan {
            place: Place::Into(oldest.id()),
            mode: if inputs.len() == 1 { Mode::Move } else { Mode::Merge },
            inputs,
            cut_bytes: None,
            cuts: Cuts::default(),
            reuse: None,
            memo,
            reason: Reason::new("young runs hold {} bytes of {}", [bytes, allowed, 0]),
        })
    }
}

/// Returns the newest run of the round before, and the number of flushes until then.
fn round_before(view: &TreeView) -> Option<(RunId, u64)> {
    let (run, flushes) = view.memo(ROUND)?.split_once('/')?;
    Some((RunId(run.parse().ok()?), flushes.parse().ok()?))
}

/// Returns the window of keys from `start` on that holds about `bytes` of the young runs, or all
/// keys from `start` on if they hold less. Returns `None` if no run has keys there.
///
/// Each run contributes in proportion to the bytes that it has left. The run that reaches its share
/// first ends the window. Runs with little left are ignored.
fn window(young: &[&Arc<Run>], start: Key, bytes: u64) -> Option<KeyRange> {
    let rest = KeyRange { start, end: None };
    let left = |run: &Arc<Run>| run.size_within(&rest).bytes;
    let all: u64 = young.iter().map(|run| left(run)).sum();
    if all == 0 {
        return None;
    }
    let parts = young.iter().map(|run| (run, left(run)));
    let large = parts.filter(|(_, left)| u128::from(*left) * 2 * young.len() as u128 >= all.into());
    let ends = large.filter_map(|(run, left)| {
        let part = u128::from(bytes) * u128::from(left) / u128::from(all);
        end_of(run, &rest, (part as u64).max(1))
    });
    let end = ends.min();
    let last = |end: &Key| !young.iter().any(|run| run.hull().end.is_none_or(|last| last > *end));
    Some(KeyRange { end: end.filter(|end| !last(end)), ..rest })
}

/// Returns the key below which `run` has at least `bytes` within `rest`; `None` for the end of all
/// keys.
fn end_of(run: &Run, rest: &KeyRange, mut bytes: u64) -> Option<Key> {
    for slice in run.clip(rest) {
        let piece = slice.first_piece(bytes);
        let taken = slice.size_within(&piece).bytes;
        if taken >= bytes {
            return piece.end;
        }
        bytes -= taken;
    }
    run.hull().end
}

impl MergePolicy for Sweep {
    fn spec(&self) -> Spec {
        Spec::bare("sweep").with("k", self.k).with("young", self.young).with("least", self.least)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if !view.reservations.is_empty() {
            return None;
        }
        if let Some(plan) = self.merge_round(view) {
            return Some(plan);
        }
        // Writers wait for memory to be merged, so that goes first.
        if view.tree.memory().runs().is_empty() { self.sweep(view) } else { None }
    }

    /// Slows writers, but does not stop them, if young runs hold more than one memtable too much.
    /// Otherwise they would keep growing.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let (bytes, allowed) = self.young_bytes(view);
        let excess = bytes.saturating_sub(allowed) as f64 / view.memtable_bytes.max(1) as f64;
        let debt = ((excess - 1.0) / 2.0).clamp(0.0, DEBT_PRESSURE_MAX);
        pressure_of_runs(view, view.tree.disk_run_count(), self.k, load).max(debt)
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, ..Needs::default() }
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.k }
    }
}
