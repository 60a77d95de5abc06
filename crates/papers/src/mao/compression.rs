//! What compression does to the costs of policies, on the real store.

use crate::form::*;
use crate::unsynced::Unsynced;
use lsmith_lab::{NoProgress, Options, Scratch, run};
use lsmith_workload::{NoInputs, Workload};
use std::sync::Arc;

const POLICIES: [&str; 6] = [
    "minlatency(k=5)",
    "binomial(k=5)",
    "bigtable(k=5)",
    "exploring(k=5)",
    "tiered(ratio=4)",
    "leveled(ratio=8)",
];

/// Costs are compared for values with this share of zeros.
const HALF: f64 = 0.5;
const SHARES: [f64; 4] = [0.0, 0.25, HALF, 0.75];
const CODECS: [&str; 2] = ["lz4", "zstd"];
const NONE: &str = "none";

/// The keys of a load, and logical bytes of a memtable: some 200 flushes.
const KEYS: u64 = 50_000;
const MEMTABLE_BYTES: u64 = 256 << 10;

/// A run on the store.
#[derive(Clone, Debug)]
struct Setting {
    policy: String,
    codec: &'static str,
    /// The share of zeros.
    share: f64,
    keys: u64,
    memtable_bytes: u64,
}

/// The costs of a run.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Physical bytes of tables written per byte of keys and values.
    written: f64,
    /// Physical bytes of tables per live byte, mean.
    space: f64,
    /// In logical bytes, which policies count.
    logical: f64,
    cpu_seconds: f64,
}

/// The costs of all runs; the panel of a spot is its codec.
type Costs = Sweep<Setting, Cost>;

impl Setting {
    fn measure(&self, task: &Task<'_>, ticker: &Ticker<'_>) -> anyhow::Result<Cost> {
        let Setting { keys, share, .. } = self;
        let spec = format!("load(keys={keys}, value=1000B, compressible={share})");
        let workload = Workload::from_spec(&spec.parse()?, &NoInputs)?;
        let options = Options {
            memtable_bytes: self.memtable_bytes,
            compression: Some(self.codec.to_owned()),
            env: Arc::new(Unsynced::default()),
            ..Options::default()
        };
        let dir = Scratch::new("lsmith-reproduce-")?;
        let report = run(task.policy(&self.policy)?, &workload, dir.path(), &options, &NoProgress)?;
        ticker.tick(1);
        let bytes = &report.bytes.physical;
        let flushed = report.bytes.logical.flush.max(1) as f64;
        Ok(Cost {
            written: (bytes.flush + bytes.merge_written) as f64 / flushed,
            space: report.space_cost_physical_mean.unwrap_or(0.0),
            logical: report.costs.write_cost_system,
            cpu_seconds: report.cpu_seconds,
        })
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shrink = task.pick(task.effort.shrink, 1);
    let keys = (KEYS / shrink).max(200);
    let memtable_bytes = (MEMTABLE_BYTES / shrink).max(8 << 10);
    let own = task.own_beside(POLICIES);
    let all = POLICIES.into_iter().chain(own.iter().map(String::as_str));
    let settings = all.flat_map(|policy| {
        let of = move |codec, shares| {
            spots(codec, [policy], shares, |policy, share| {
                let policy = policy.to_owned();
                Setting { policy, codec, share, keys, memtable_bytes }
            })
        };
        [of("lz4", &SHARES[..]), of("zstd", &SHARES), of(NONE, &[HALF])].concat()
    });
    let settings: Vec<_> = settings.collect();
    let found = task.each_in_turn(
        "runs on the store",
        &settings,
        |_| 1,
        |spot, ticker| spot.job.measure(task, ticker),
    )?;
    let costs = Costs::of(settings, found);
    let x = || Axis::linear("share of each value that is zeros", "");
    let written = || Axis::linear("bytes of tables written", "per logical byte flushed");
    let space = Axis::linear("bytes of tables", "per live logical byte");
    let mut figure = task.figure([
        Panel::new("lz4", "LZ4", x(), written()),
        Panel::new("zstd", "Zstandard", x(), written()),
        Panel::new("space", "LZ4, space", x(), space),
    ]);
    for (panel, codec, cost) in
        [("lz4", "lz4", WRITTEN), ("zstd", "zstd", WRITTEN), ("space", "lz4", SPACE)]
    {
        for (spot, found) in costs.iter().filter(|(spot, _)| spot.panel == codec) {
            figure.point(panel, &spot.curve, spot.x, cost(found));
        }
    }
    claims(&mut figure, &costs);
    note(&mut figure, &costs, keys, memtable_bytes);
    Ok(figure)
}

const WRITTEN: fn(&Cost) -> f64 = |cost| cost.written;
const SPACE: fn(&Cost) -> f64 = |cost| cost.space;

fn claims(figure: &mut Figure, costs: &Costs) {
    let ratios = |codec: &str, base: &str, cost: fn(&Cost) -> f64| -> Vec<f64> {
        let of = |codec, policy| costs.at(codec, policy, HALF).map(cost);
        POLICIES.iter().filter_map(|policy| over(of(codec, policy), of(base, policy))).collect()
    };
    for codec in CODECS {
        for (what, cost) in [("bytes of tables written", WRITTEN), ("space", SPACE)] {
            let claim = format!(
                "{codec}, half of each value is zeros: {what} over those without compression, most \
                 of all policies (lower)"
            );
            figure.at_most(claim, most(ratios(codec, NONE, cost)), 0.65);
        }
    }
    let claim = "bytes written with zstd over those with lz4, most of all policies (lower with \
                 stronger compression)";
    figure.at_most(claim, most(ratios("zstd", "lz4", WRITTEN)), 1.0);
    for codec in CODECS {
        let cpu = |codec: &str| -> f64 {
            let all = POLICIES.iter().filter_map(|policy| costs.at(codec, policy, HALF));
            all.map(|cost| cost.cpu_seconds).sum()
        };
        let claim = format!("{codec}: CPU time of all policies over that without (higher)");
        figure.at_least(claim, cpu(codec) / cpu(NONE), 1.0);
    }
    let written = |codec: &str, policy: &str| {
        costs.at(codec, policy, HALF).map_or(f64::NAN, |cost| cost.written)
    };
    let logical = costs.iter().filter_map(|(spot, cost)| {
        Some(cost.logical / costs.at(NONE, &spot.curve, HALF)?.logical - 1.0)
    });
    let claim = "write cost in logical bytes, any codec and share: the most by which it differs \
                 from that without compression (policies count logical bytes, so that merges are \
                 the same)";
    figure.at_most(claim, farthest(logical), 0.0);
    for codec in CODECS {
        let claim = format!(
            "{codec}: pairs of policies of which the other writes more than without compression, \
             differences up to 3 % aside"
        );
        let turned = pairs_turned(
            &POLICIES,
            |policy| written(codec, policy),
            |policy| written(NONE, policy),
        );
        figure.at_most(claim, turned, 0.0);
        let gains = ratios(codec, NONE, WRITTEN);
        let claim = format!(
            "{codec}: the most that a policy gains over the least, as ratios of bytes written (no \
             policy is affected more than another)"
        );
        figure.at_most(claim, over(most(gains.iter().copied()), least(gains)), 1.03);
    }
}

fn note(figure: &mut Figure, costs: &Costs, keys: u64, memtable_bytes: u64) {
    figure.note(format!(
        "Real store, in lockstep: {keys} new keys in random order with values of 1000 B, memtables \
         of {} KiB. Of each value a share is zeros, and the rest is random bytes. Blocks of 4 KiB \
         are compressed each on its own. Bytes are those of the files of tables: flushes and \
         outputs of merges, without the log. Files are real but never synced.",
        memtable_bytes >> 10
    ));
    let shown = POLICIES.iter().filter_map(|policy| {
        let [none, lz4, zstd] = [NONE, "lz4", "zstd"].map(|codec| costs.at(codec, policy, HALF));
        let cells = [none?, lz4?, zstd?].map(|cost| format!("{:.2}", cost.written));
        Some(format!("{policy} {}", cells.join(", ")))
    });
    figure.note(format!(
        "Bytes written without compression, with lz4 and with zstd, half of each value zeros: {}.",
        joined("; ", shown)
    ));
    figure.note(
        "The paper expects that compression makes flushes smaller than memtables, which could \
         affect minlatency and binomial. They count flushes, so that all flushes shrink alike. The \
         policies that look at sizes see logical bytes here, so that they merge the same too.",
    );
}
