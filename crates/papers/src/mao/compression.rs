//! What compression does to the costs of policies, on the real store.

use super::fit::{least, most};
use crate::unsynced::Unsynced;
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, NoProgress, Options, Scratch, SharedProgress, Ticker, measure_in_turn, run};
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

/// Costs that differ by at most this share count as equal when policies are ranked.
const TIE: f64 = 0.03;

/// A run on the store.
#[derive(Clone, Copy, Debug)]
struct Setting {
    policy: &'static str,
    codec: &'static str,
    share: f64,
    keys: u64,
    memtable_bytes: u64,
}

/// The costs of a run.
#[derive(Clone, Copy, Debug)]
struct Cost {
    setting: Setting,
    /// Physical bytes of tables written per byte of keys and values.
    written: f64,
    /// Physical bytes of tables per live byte, mean.
    space: f64,
    /// In logical bytes, which policies count.
    logical: f64,
    cpu_seconds: f64,
}

impl Job for Setting {
    type Output = Cost;

    fn work(&self) -> u64 {
        1
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Cost> {
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
        let report = run(self.policy, &workload, dir.path(), &options, &NoProgress)?;
        ticker.tick(1);
        let bytes = &report.bytes.physical;
        let flushed = report.bytes.logical.flush.max(1) as f64;
        Ok(Cost {
            setting: *self,
            written: (bytes.flush + bytes.merge_written) as f64 / flushed,
            space: report.space_cost_physical_mean.unwrap_or(0.0),
            logical: report.costs.write_cost_system,
            cpu_seconds: report.cpu_seconds,
        })
    }
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let shrink = if effort.is_quick { effort.shrink } else { 1 };
    let keys = (KEYS / shrink).max(200);
    let memtable_bytes = (MEMTABLE_BYTES / shrink).max(8 << 10);
    let setting = |policy, codec, share| Setting { policy, codec, share, keys, memtable_bytes };
    let settings: Vec<Setting> = POLICIES
        .into_iter()
        .flat_map(|policy| {
            let coded = CODECS.into_iter().flat_map(move |codec| {
                SHARES.into_iter().map(move |share| setting(policy, codec, share))
            });
            coded.chain([setting(policy, NONE, HALF)])
        })
        .collect();
    let found = measure_in_turn("runs on the store", &settings, progress)?;

    let axis = || Axis::linear("share of each value that is zeros", "");
    let panel = |name: &str, title: &str, y: Axis| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: axis(),
        y,
    };
    let written = || Axis::linear("bytes of tables written", "per logical byte flushed");
    let panels = vec![
        panel("lz4", "LZ4", written()),
        panel("zstd", "Zstandard", written()),
        panel("space", "LZ4, space", Axis::linear("bytes of tables", "per live logical byte")),
    ];
    let mut figure = Figure::empty(info.name, info.title, panels);
    for (name, codec, cost) in [
        ("lz4", "lz4", (|cost| cost.written) as fn(&Cost) -> f64),
        ("zstd", "zstd", |cost| cost.written),
        ("space", "lz4", |cost| cost.space),
    ] {
        for at in found.iter().filter(|cost| cost.setting.codec == codec) {
            figure.point(name, at.setting.policy, at.setting.share, cost(at));
        }
    }
    claims(&mut figure, &found);
    note(&mut figure, &found, keys, memtable_bytes);
    Ok(figure)
}

/// Returns the cost of a policy with a codec, for values that are half zeros.
fn of<'a>(found: &'a [Cost], policy: &str, codec: &str) -> Option<&'a Cost> {
    let is_it = |setting: &Setting| {
        setting.policy == policy && setting.codec == codec && setting.share == HALF
    };
    found.iter().find(|cost| is_it(&cost.setting))
}

fn claims(figure: &mut Figure, found: &[Cost]) {
    let ratios = |codec: &'static str, base: &'static str, cost: fn(&Cost) -> f64| {
        POLICIES.into_iter().filter_map(move |policy| {
            Some(cost(of(found, policy, codec)?) / cost(of(found, policy, base)?))
        })
    };
    for codec in CODECS {
        for (what, cost) in [
            ("bytes of tables written", (|cost| cost.written) as fn(&Cost) -> f64),
            ("space", |cost| cost.space),
        ] {
            figure.claim(most(ratios(codec, NONE, cost)).map(|ratio| {
                let claim = format!(
                    "{codec}, half of each value is zeros: {what} over those without compression, \
                     most of all policies (lower)"
                );
                Claim::at_most(claim, ratio, 0.65)
            }));
        }
    }
    figure.claim(most(ratios("zstd", "lz4", |cost| cost.written)).map(|ratio| {
        let claim = "bytes written with zstd over those with lz4, most of all policies (lower with \
                     stronger compression)";
        Claim::at_most(claim, ratio, 1.0)
    }));
    for codec in CODECS {
        let cpu = |codec: &str| -> f64 {
            POLICIES.iter().filter_map(|policy| Some(of(found, policy, codec)?.cpu_seconds)).sum()
        };
        let claim = format!("{codec}: CPU time of all policies over that without (higher)");
        figure.claim(Claim::at_least(claim, cpu(codec) / cpu(NONE), 1.0));
    }
    let logical = found.iter().filter_map(|cost| {
        let plain = of(found, cost.setting.policy, NONE)?;
        Some((cost.logical / plain.logical - 1.0).abs())
    });
    figure.claim(most(logical).map(|apart| {
        let claim = "write cost in logical bytes, any codec and share: the most by which it \
                     differs from that without compression (policies count logical bytes, so that \
                     merges are the same)";
        Claim::at_most(claim, apart, 0.0)
    }));
    for codec in CODECS {
        let turned = pairs_turned(found, codec);
        let claim = format!(
            "{codec}: pairs of policies of which the other writes more than without compression, \
             differences up to 3 % aside"
        );
        figure.claim(Claim::at_most(claim, turned as f64, 0.0));
        let spread = [least(ratios(codec, NONE, written)), most(ratios(codec, NONE, written))];
        if let [Some(least), Some(most)] = spread {
            let claim = format!(
                "{codec}: the most that a policy gains over the least, as ratios of bytes written \
                 (no policy is affected more than another)"
            );
            figure.claim(Claim::at_most(claim, most / least, 1.03));
        }
    }
}

fn written(cost: &Cost) -> f64 {
    cost.written
}

/// Returns the number of pairs of policies whose order by bytes written is not that without
/// compression.
fn pairs_turned(found: &[Cost], codec: &str) -> usize {
    let above = |one: &str, other: &str, codec: &str| {
        let pair = of(found, one, codec).zip(of(found, other, codec));
        pair.is_some_and(|(one, other)| one.written > other.written * (1.0 + TIE))
    };
    let pairs = POLICIES.iter().flat_map(|one| POLICIES.iter().map(move |other| (one, other)));
    pairs.filter(|(one, other)| above(one, other, codec) && above(other, one, NONE)).count()
}

fn note(figure: &mut Figure, found: &[Cost], keys: u64, memtable_bytes: u64) {
    figure.note(format!(
        "Real store, in lockstep: {keys} new keys in random order with values of 1000 B, memtables \
         of {} KiB. Of each value a share is zeros, and the rest is random bytes. Blocks of 4 KiB \
         are compressed each on its own. Bytes are those of the files of tables: flushes and \
         outputs of merges, without the log. Files are real but never synced.",
        memtable_bytes >> 10
    ));
    let shown = POLICIES.iter().filter_map(|policy| {
        let [none, lz4, zstd] = [NONE, "lz4", "zstd"].map(|codec| of(found, policy, codec));
        let cells = [none?, lz4?, zstd?].map(|cost| format!("{:.2}", cost.written));
        Some(format!("{policy} {}", cells.join(", ")))
    });
    figure.note(format!(
        "Bytes written without compression, with lz4 and with zstd, half of each value zeros: {}.",
        shown.collect::<Vec<_>>().join("; ")
    ));
    figure.note(
        "The paper expects that compression makes flushes smaller than memtables, which could \
         affect minlatency and binomial. They count flushes, so that all flushes shrink alike. The \
         policies that look at sizes see logical bytes here, so that they merge the same too.",
    );
}
