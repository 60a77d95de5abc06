//! Draws settings: a policy, a workload and a memtable.

use super::phases::trace;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_workload::{NoInputs, Rng, Workload};
use std::sync::Arc;

/// A policy, a workload and a memtable.
pub(super) struct Setting {
    pub(super) policy: Arc<dyn MergePolicy>,
    pub(super) workload: Workload,
    /// The spec of the workload, or its phases.
    pub(super) workload_name: String,
    pub(super) memtable_bytes: u64,
}

/// Random choices.
pub(super) struct Draws(Rng);

impl Draws {
    pub(super) fn new(seed: u64, setting: u64) -> Draws {
        Draws(Rng::new(seed, setting))
    }

    /// Returns a number from `least` to `most`; each factor is equally likely.
    pub(super) fn number(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.unit())
    }

    /// Returns a whole number from `least` to `most`; each factor is equally likely.
    pub(super) fn count(&mut self, least: u64, most: u64) -> u64 {
        self.number(least as f64, most as f64 + 0.999) as u64
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    /// Returns true in the given share of all cases.
    pub(super) fn is(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Returns a share, in hundredths.
    pub(super) fn share(&mut self) -> f64 {
        (self.0.unit() * 100.0).round() / 100.0
    }
}

/// The most bytes of values of a setting, so that keyed simulations take about a second.
pub(super) const BYTES_MAX: u64 = 100_000_000;

impl Setting {
    /// Draws the setting with this number. All policies come by turns.
    pub(super) fn draw(seed: u64, number: u64) -> Setting {
        let mut draws = Draws::new(seed, number);
        let registry = Registry::builtin();
        let names: Vec<&str> = registry.infos().iter().map(|info| info.name).collect();
        let name = names[number as usize % names.len()];
        let value = draws.count(50, 4096);
        let ops = draws.count(20_000, (BYTES_MAX / value).min(300_000));
        let (workload, workload_name) = workload(&mut draws, ops, value);
        // 12 to 600 memtables.
        let bytes = (ops * (value + 30)) as f64;
        let least = (bytes / 600.0).max(65_536.0);
        let memtable_bytes = draws.number(least, (bytes / 12.0).min(4_194_304.0).max(least)) as u64;
        let spec = policy(&mut draws, name, memtable_bytes, ops * value);
        let policy = registry.build(&spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
        Setting { policy, workload, workload_name, memtable_bytes }
    }
}

const PICKS: [&str; 6] =
    ["min_overlap", "round_robin", "narrowest", "oldest", "best_ratio", "whole_level"];

/// Draws the arguments of the policy named `name`. Many policies have their defaults.
fn policy(draws: &mut Draws, name: &str, memtable_bytes: u64, bytes: u64) -> String {
    if name == "fifo" {
        let bound = draws.count(bytes / 10, bytes);
        return if draws.is(0.2) { name.to_owned() } else { format!("fifo(bytes={bound}B)") };
    }
    if draws.is(0.4) || name == "none" {
        return name.to_owned();
    }
    let eager = if draws.is(0.3) { ", eager=never" } else { "" };
    let ratio = (draws.number(2.0, 20.0) * 2.0).round() / 2.0;
    let table = if draws.is(0.7) {
        "auto".to_owned()
    } else {
        format!("{}B", draws.count(memtable_bytes / 8, memtable_bytes * 2))
    };
    let drawn = of_other_systems(draws, name, memtable_bytes, eager);
    if let Some(spec) = drawn.or_else(|| of_papers(draws, name, eager)) {
        return spec;
    }
    match name {
        "auto" => format!("auto(runs={}{eager})", draws.count(2, 24)),
        "bigtable" | "constant" => format!("{name}(k={}{eager})", draws.count(2, 12)),
        "minlatency" | "binomial" => {
            let count = draws.one_of(&["flushes", "size"]);
            format!("{name}(k={}, count={count}{eager})", draws.count(2, 12))
        }
        "exploring" => {
            let (k, lambda) = (draws.count(2, 12), draws.number(1.0, 3.0));
            format!("{name}(k={k}, lambda={lambda:.2}, min={}{eager})", draws.count(2, 4))
        }
        "tiered" | "cola" | "samt" | "lazy_leveling" => {
            format!("{name}(ratio={}{eager})", draws.count(2, 10))
        }
        "leveled" => {
            let pick = draws.one_of(&PICKS);
            let l0 = draws.count(1, 6);
            format!("{name}(ratio={ratio}, l0={l0}, pick={pick}, table={table})")
        }
        "leveldb" | "rocksdb" => {
            let level1 = draws.count(memtable_bytes, memtable_bytes * 6);
            let table = draws.count(memtable_bytes / 4, memtable_bytes);
            format!("{name}(level1={level1}B, ratio={ratio}, table={table}B)")
        }
        "sweep" => {
            let (k, young) = (draws.count(4, 20), draws.number(0.05, 1.0));
            format!("{name}(k={k}, young={young:.2}, least={:.1})", draws.number(2.0, 8.0))
        }
        "triangular" => {
            let score = draws.one_of(&["ratio", "bytes"]);
            let most = draws.count(memtable_bytes * 4, memtable_bytes * 200);
            let files = draws.count(8, 64);
            format!("{name}(score={score}, max_bytes={most}B, max_files={files})")
        }
        "jungle" => {
            let (c, space) = (draws.number(1.5, 10.0), draws.number(1.3, 3.0));
            let dead =
                if draws.is(0.3) { format!("space={space:.1}") } else { format!("c={c:.1}") };
            format!("{name}({dead}, ratio={ratio}, table={table})")
        }
        "full" => format!("{name}(ratio={ratio}, reuse={})", draws.is(0.8)),
        _ => {
            let (rate, reuse) = (draws.number(0.03, 0.3), draws.is(0.8));
            format!("{name}(ratio={ratio}, rate={rate:.2}, reuse={reuse})")
        }
    }
}

/// Draws the arguments of a policy of another system. Returns `None` for other policies.
fn of_other_systems(
    draws: &mut Draws,
    name: &str,
    memtable_bytes: u64,
    eager: &str,
) -> Option<String> {
    Some(match name {
        "hbase_stripe" => {
            let (l0, k, min) = (draws.count(1, 8), draws.count(2, 12), draws.count(2, 4));
            let split = draws.count(memtable_bytes * 2, memtable_bytes * 50);
            format!("{name}(l0={l0}, split_size={split}B, k={k}, min={min})")
        }
        "spooky" => {
            let (ratio, l0) = (draws.count(2, 12), draws.count(0, 5));
            format!("{name}(ratio={ratio}, l0={l0}{eager})")
        }
        "ucs" => format!(
            "{name}(w={}{eager})",
            draws.one_of(&["L6", "L3", "N", "T3", "T6/L4", "adaptive"])
        ),
        "universal" => {
            let (trigger, size_ratio) = (draws.count(3, 16), draws.count(1, 50));
            let space = draws.count(50, 400);
            let windows = if draws.is(0.4) { ", incremental=true" } else { "" };
            let space = format!("space_max={space}{windows}{eager}");
            format!("{name}(trigger={trigger}, size_ratio={size_ratio}, {space})")
        }
        "lucene_tiered" => {
            let (tier, floor) = (draws.count(2, 12), draws.count(1, memtable_bytes));
            let largest = draws.count(memtable_bytes * 4, memtable_bytes * 200);
            format!("{name}(tier={tier}, floor={floor}B, largest={largest}B{eager})")
        }
        "clickhouse" => {
            let (base, fixed) = (draws.number(2.0, 6.0), draws.count(1, memtable_bytes));
            let largest = draws.count(memtable_bytes * 4, memtable_bytes * 200);
            format!("{name}(base={base:.1}, fixed={fixed}B, largest={largest}B{eager})")
        }
        "ics" => {
            let (threshold, goal) = (draws.number(0.4, 3.0), draws.number(1.2, 3.0));
            let goal = if draws.is(0.5) { String::new() } else { format!(", goal={goal:.1}") };
            format!("{name}(threshold={threshold:.1}{goal}{eager})")
        }
        _ => return None,
    })
}

/// Draws the arguments of a policy of a paper on levels of runs. Returns `None` for other policies.
fn of_papers(draws: &mut Draws, name: &str, eager: &str) -> Option<String> {
    Some(match name {
        "arce" => {
            let price = draws.number(0.05, 3.0);
            format!("arce(runs={}, price={price:.2}{eager})", draws.count(2, 24))
        }
        "fluid" => {
            let ratio = draws.count(3, 12);
            let (inner, last) = (draws.count(1, ratio - 1), draws.count(1, ratio - 1));
            format!("{name}(ratio={ratio}, inner={inner}, last={last}{eager})")
        }
        "lethe" => {
            let (within, ratio) = (draws.count(2, 200), draws.count(2, 12));
            let pick = draws.one_of(&["tombstones", "min_overlap"]);
            format!("{name}(delete_within={within}, ratio={ratio}, pick={pick})")
        }
        "autumn" => {
            let (ratio, c) = (draws.count(2, 8), draws.number(0.3, 1.0));
            format!("{name}(ratio={ratio}, c={c:.2}{eager})")
        }
        "moose" => {
            let (price, space) = (draws.number(0.02, 3.0), draws.number(1.1, 3.0));
            let space = if draws.is(0.5) { String::new() } else { format!(", space={space:.1}") };
            format!("{name}(price={price:.2}{space}{eager})")
        }
        "vertiorizon" => {
            let (levels, ratio) = (draws.count(1, 6), draws.count(2, 8));
            let merge = draws.one_of(&["leveling", "tiering"]);
            format!("{name}(levels={levels}, merge={merge}, ratio={ratio}{eager})")
        }
        _ => return None,
    })
}

/// Draws a workload of about `ops` writes of `value` bytes.
fn workload(draws: &mut Draws, ops: u64, value: u64) -> (Workload, String) {
    let seed = draws.below(1000);
    let keys = draws.count(ops / 20, ops);
    let left = ops - keys.min(ops);
    let dist = draws.one_of(&["latest", "zipf", "uniform"]);
    let some = draws.number(0.02, 0.5);
    let deletes = if draws.is(0.5) { 0.0 } else { some };
    let sizes = format!("value={value}B, seed={seed}");
    let spec = match draws.below(11) {
        0 => format!("load(keys={ops}, {sizes})"),
        1 => format!("load(keys={ops}, order=zipf, {sizes})"),
        2 => format!("load(keys={ops}, order=sequential, {sizes})"),
        3 => format!("churn(keys={keys}, ops={ops}, deletes={deletes:.2}, {sizes})"),
        4 | 5 => {
            let order = draws.one_of(&["hashed", "hashed", "sequential"]);
            let share = draws.share();
            format!(
                "update(keys={keys}, ops={ops}, share={share}, deletes={deletes:.2}, dist={dist}, \
                 order={order}, {sizes})"
            )
        }
        6 => {
            let kind = draws.one_of(&["a", "b", "d", "e", "f"]);
            let requests = left * if kind == "a" || kind == "f" { 2 } else { 1 };
            format!("ycsb({kind}, records={keys}, ops={requests}, {sizes})")
        }
        7 => {
            let insert = draws.one_of(&[0.0, 0.1, 0.5]);
            let delete = draws.one_of(&[0.0, 0.1, 0.2]);
            let get = 0.1;
            let put = 1.0 - insert - delete - get;
            format!(
                "mix(get={get}, insert={insert}, delete={delete}, put={put:.1}, keys={keys}, \
                 ops={left}, dist={dist}, {sizes})"
            )
        }
        8 => match draws.below(3) {
            0 => format!("uniform(keys={keys}, ops={left}, {sizes})"),
            1 => {
                let (sigma, omega) = (draws.number(0.001, 0.1), draws.count(300, 30_000));
                let steady = format!("keys={keys}, ops={left}, {sizes}");
                format!("normal(sigma={sigma:.4}, omega={omega}, {steady})")
            }
            _ => {
                format!("tpc(warehouses={}, keys={keys}, ops={left}, {sizes})", draws.count(1, 100))
            }
        },
        _ => return trace(draws, ops, value),
    };
    let parsed = spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"));
    let found = Workload::from_spec(&parsed, &NoInputs);
    (found.unwrap_or_else(|error| panic!("{spec}: {error}")), spec)
}
