//! Sweep: young runs go into the oldest run by key range, one window after the other.

use crate::stack::pressure_of_runs;
use crate::tables::stack_depth;
use crate::{Eager, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack};
use lsmith_spec::Spec;
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{Input, Key, KeyRange, MergePlan, Mode, Place, Reason, Run, RunId, TreeView};
use std::sync::Arc;

/// Keeps one large run, the oldest, and young ones above it, which hold at most `young` times its
/// bytes, or `least` memtables where that is more. What is over that leaves all young runs
/// at once: the next window of keys, with a quarter of a memtable in them, is merged into the
/// oldest run. Windows follow each other through the keys, round and round.
///
/// So there are never more overwritten entries than the young runs have, and no merge needs room
/// for a second copy of all data. While a round passes, twice the bytes come that young runs hold:
/// with S bytes of them above B, each byte is written B / 2S times into the oldest run. Merges of
/// whole runs, made whenever S bytes have gathered, write it B / S times.
///
/// The runs of a round are merged as by MinLatency with `(k - 1) / 2` runs, never with those that
/// are left of the round before.
///
/// Source: the round-robin merges of Thonangi & Yang, ICDE 2017, section III-B, out of several runs
/// at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sweep {
    k: u64,
    young: f64,
    least: f64,
}

/// How many windows come to one memtable: few enough for large writes, enough that a window under
/// way needs little room and that a memtable does not wait long for it.
const WINDOWS: u64 = 4;

/// The pressure of young runs that hold three memtables too much or more, as they do in a tree that
/// another policy has left.
const DEBT_PRESSURE_MAX: f64 = 0.9;

/// The memo's name of the key at which the next window begins.
const NEXT: &str = "sweep_next";

/// The memo's name of the newest run of the round before, and the flushes until then.
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
        build: |params| {
            let k = params.count("k", 11, 3..=64)?;
            let young = params.real("young", 0.2, 0.01..=100.0)?;
            Ok(Arc::new(Sweep { k, young, least: params.real("least", 5.0, 1.0..=1000.0)? }))
        },
    };

    /// Most runs of one round.
    fn round_runs(self) -> u64 {
        (self.k - 1) / 2
    }

    /// Merges the newest runs of this round where it has more than its flushes allow.
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

    /// Bytes that young runs hold, and that they may hold.
    fn young_bytes(self, view: &TreeView) -> (u64, u64) {
        let mut bytes: u64 = view.tree.disk_runs().map(|run| run.bytes()).sum();
        let oldest = view.tree.disk_runs().last().map_or(0, |run| run.bytes());
        bytes -= oldest;
        let least = view.memtable_bytes as f64 * self.least;
        (bytes, (oldest as f64 * self.young).max(least) as u64)
    }

    /// Takes a window out of all young runs where they hold too much.
    fn sweep(self, view: &TreeView) -> Option<MergePlan> {
        let (bytes, allowed) = self.young_bytes(view);
        if bytes <= allowed {
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
            reuse: None,
            memo,
            reason: Reason::new("young runs hold {} bytes of {}", [bytes, allowed, 0]),
        })
    }
}

/// What the memo says of the round before.
fn round_before(view: &TreeView) -> Option<(RunId, u64)> {
    let (run, flushes) = view.memo(ROUND)?.split_once('/')?;
    Some((RunId(run.parse().ok()?), flushes.parse().ok()?))
}

/// The keys from `start` on with about `bytes` of `young` in them, or up to the end of all keys;
/// `None` where no run has keys there.
///
/// Each run has a part in these bytes that follows from what it has left, and the one that comes
/// to the end of its part first ends the window; runs with little left are not asked.
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

/// The key up to which `run` has at least `bytes` within `rest`; `None` for the end of all keys.
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
        // Writers wait for what is in memory: that goes first.
        if view.tree.memory().runs().is_empty() { self.sweep(view) } else { None }
    }

    /// Writers are slowed, though not stopped, where young runs hold more than one memtable too
    /// much, and would go on to grow.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let (bytes, allowed) = self.young_bytes(view);
        let excess = bytes.saturating_sub(allowed) as f64 / view.memtable_bytes.max(1) as f64;
        let debt = ((excess - 1.0) / 2.0).clamp(0.0, DEBT_PRESSURE_MAX);
        pressure_of_runs(view.tree.disk_run_count(), self.k, load).max(debt)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.k }
    }
}
