//! The paper's designs as policies: their costs by formula, key by key and on the store.

use super::design::{Design, ITEM_BYTES, Levels, Pick, SKEWS};
use super::panels::{PANELS, in_a_hurry, panels, percent_off};
use super::steady::{StageCosts, Steady};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all, measure_in_turn};
use lsmith_model::formulas::{SiltModel, SlotModel, Slots, UniversalModel};
use lsmith_model::{KeyOrder, Model, Popularity, Setting};

/// Keys of simulations, and requests per key.
const SIMULATED: [(u64, u64); 2] = [(1_000_000, 10), (10_000_000, 5)];
const SIMULATED_QUICK: [(u64, u64); 1] = [(330_000, 10)];
/// Keys on the store, and requests per key.
const ON_STORE: (u64, u64) = (330_000, 10);
const ON_STORE_QUICK: (u64, u64) = (66_000, 4);

/// Logical bytes of an entry on the store.
const STORE_ITEM_BYTES: u32 = 200;

/// The number of keys from which on the model must be within `OFF_MAX` percent.
const MANY_KEYS: u64 = 10_000_000;
const OFF_MAX: f64 = 3.0;
/// The same for fewer keys, which are few tables.
const OFF_MAX_FEW: f64 = 8.0;

/// A design of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    LevelDb,
    /// LevelDB with the sizes of least cost, with as many levels.
    Optimal,
    RocksDb,
    Cola,
    Samt,
    Universal,
    /// SILT with full hash stores, which is `constant`.
    Silt,
}

const KINDS: [(Kind, &str); 7] = [
    (Kind::LevelDb, "leveldb"),
    (Kind::Optimal, "leveldb(sizes=optimal)"),
    (Kind::RocksDb, "rocksdb"),
    (Kind::Cola, "cola"),
    (Kind::Samt, "samt"),
    (Kind::Universal, "universal"),
    (Kind::Silt, "silt"),
];

/// The ratio of slots, and the number of runs that triggers a universal merge.
const RATIO: u64 = 3;
const TRIGGER: usize = 12;
/// Hash stores that are merged together, few enough for several merges.
const HASH_STORES: u64 = 16;

fn curve(source: &str, kind: &str) -> String {
    format!("{source}, {kind}")
}

const MODEL: &str = "model";
const KEYED: &str = "keyed";
const STORE: &str = "store";

impl Kind {
    /// Returns how to measure the design with so many requests per key.
    fn steady(self, keys: u64, skew: f64, rounds: u64) -> anyhow::Result<Steady> {
        let leveldb = Design::leveldb(keys, skew);
        let design = match self {
            Kind::RocksDb => Design { pick: Pick::Random, ..leveldb },
            Kind::Optimal => leveldb.optimized(Levels::AsMany)?,
            _ => leveldb,
        };
        // As the formulas count: a memtable of COLA goes into the first merge.
        let policy = match self {
            Kind::LevelDb | Kind::Optimal | Kind::RocksDb => None,
            Kind::Cola => Some("cola(ratio=3, eager=always)"),
            Kind::Samt => Some("samt(ratio=3, eager=never)"),
            Kind::Universal => Some("universal(trigger=12, eager=never)"),
            Kind::Silt => Some("constant(k=16, eager=never)"),
        };
        Ok(Steady { policy, rounds, ..Steady::new(design) })
    }

    /// Returns the bytes written per byte of requests, by formula.
    fn by_model(self, steady: &Steady) -> anyhow::Result<f64> {
        let Design { keys, skew, memtable, .. } = steady.design;
        let popularity = Popularity::zipf(keys, skew)?;
        let setting = Setting {
            popularity: &popularity,
            memtable,
            item_bytes: ITEM_BYTES,
            requests: keys as f64,
            false_positives: 1.0,
            loaded: 0.0,
            order: KeyOrder::Random,
        };
        let slots = |slots: Slots| SlotModel { memtable, ratio: RATIO, slots }.evaluate(&setting);
        let model: Model = match self {
            Kind::LevelDb | Kind::Optimal | Kind::RocksDb => steady.design.model()?,
            Kind::Cola => slots(Slots::Merged),
            Kind::Samt => slots(Slots::Apart),
            Kind::Universal => {
                let requests = (keys * steady.rounds) as f64;
                let universal = UniversalModel {
                    memtable,
                    trigger: TRIGGER,
                    size_ratio: 1.0,
                    space_percent_max: 200.0,
                    requests,
                };
                universal.evaluate(&setting)
            }
            Kind::Silt => {
                let log = popularity.unique(memtable);
                let silt = SiltModel { log, occupancy: 1.0, hash_stores: HASH_STORES, grown: None };
                silt.evaluate(&setting)
            }
        };
        Ok(model.write_cost_user())
    }
}

/// A measurement on the store and by simulation.
struct Both(Steady);

impl Job for Both {
    type Output = [f64; 2];

    fn work(&self) -> u64 {
        2 * self.0.work()
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<[f64; 2]> {
        let (stored, _) = self.0.run(ticker)?;
        Ok([stored.write_cost(), self.0.simulate(ticker, &mut |_| {})?.write_cost()])
    }
}

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let panels = panels(&Axis::log("unique keys", ""), str::to_owned);
    let mut figure = Figure::empty(info.name, info.title, panels);
    let hurried = |(keys, rounds): (u64, u64)| (in_a_hurry(keys, effort), rounds);
    let (simulated, on_store) = if effort.is_quick {
        (SIMULATED_QUICK.map(hurried).to_vec(), hurried(ON_STORE_QUICK))
    } else {
        (SIMULATED.to_vec(), ON_STORE)
    };
    store(&mut figure, on_store, progress)?;
    simulate(&mut figure, &simulated, progress)?;
    claims(&mut figure, &simulated, on_store);
    figure.explain(
        ", rocksdb: model off",
        "the paper takes all places of a level to be equally dense. A table taken at random leaves \
         places that have waited for unequal times, which hold fewer different keys for as many \
         requests.",
    );
    figure.explain(
        "leveldb(sizes=optimal): model off",
        "the formula is too high there, so that optimal sizes gain more than it predicts.",
    );
    notes(&mut figure);
    Ok(figure)
}

fn store(
    figure: &mut Figure,
    (keys, rounds): (u64, u64),
    progress: &SharedProgress,
) -> anyhow::Result<()> {
    let mut jobs = Vec::new();
    let mut curves = Vec::new();
    for (panel, (_, skew)) in PANELS.iter().zip(SKEWS) {
        for (kind, name) in KINDS {
            let steady = kind.steady(keys, skew, rounds)?;
            let model = kind.by_model(&steady)?;
            curves.push((*panel, name, model));
            jobs.push(Both(Steady { item_bytes: STORE_ITEM_BYTES, ..steady }));
        }
    }
    let found = measure_in_turn(STORE, &jobs, progress)?;
    for ((panel, name, model), [stored, keyed]) in curves.into_iter().zip(found) {
        for (source, y) in [(MODEL, model), (KEYED, keyed), (STORE, stored)] {
            figure.point(panel, &curve(source, name), keys as f64, y);
        }
    }
    Ok(())
}

fn simulate(
    figure: &mut Figure,
    sizes: &[(u64, u64)],
    progress: &SharedProgress,
) -> anyhow::Result<()> {
    let mut jobs: Vec<Steady> = Vec::new();
    let mut curves = Vec::new();
    for (panel, (_, skew)) in PANELS.iter().zip(SKEWS) {
        for (kind, name) in KINDS {
            for (keys, rounds) in sizes {
                let steady = kind.steady(*keys, skew, *rounds)?;
                curves.push((*panel, name, kind.by_model(&steady)?));
                jobs.push(steady);
            }
        }
    }
    let found: Vec<StageCosts> = measure_all("keyed simulation", &jobs, progress)?;
    for ((panel, name, model), (job, found)) in curves.into_iter().zip(jobs.iter().zip(found)) {
        let keys = job.design.keys as f64;
        figure.point(panel, &curve(MODEL, name), keys, model);
        figure.point(panel, &curve(KEYED, name), keys, found.write_cost());
    }
    Ok(())
}

fn claims(figure: &mut Figure, simulated: &[(u64, u64)], on_store: (u64, u64)) {
    for (panel, (title, _)) in PANELS.iter().zip(SKEWS) {
        for (_, name) in KINDS {
            for (keys, _) in simulated {
                let y = |source: &str| figure.y(panel, &curve(source, name), *keys as f64);
                let off = y(MODEL).zip(y(KEYED)).map(|(model, keyed)| percent_off(model, keyed));
                let allowed = if *keys >= MANY_KEYS { OFF_MAX } else { OFF_MAX_FEW };
                let claim = format!("{title}, {keys} keys, {name}: model off from simulation, %");
                figure.claim(off.map(|off| Claim::near(claim, 0.0, off, allowed)));
            }
            let y = |source: &str| figure.y(panel, &curve(source, name), on_store.0 as f64);
            let off = y(KEYED).zip(y(STORE)).map(|(keyed, stored)| percent_off(keyed, stored));
            let claim = format!("{title}, {name}: simulation off from the store, %");
            figure.claim(off.map(|off| Claim::near(claim, 0.0, off, 1e-6)));
        }
        for (keys, _) in simulated {
            let y = |kind: usize| figure.y(panel, &curve(KEYED, KINDS[kind].1), *keys as f64);
            let gain = y(0).zip(y(1)).map(|(fixed, optimal)| -percent_off(optimal, fixed));
            let claim = format!("{title}, {keys} keys: sizes=optimal writes less, %, at least");
            figure.claim(gain.map(|gain| Claim::at_least(claim, gain, 3.0)));
        }
    }
}

fn notes(figure: &mut Figure) {
    figure.note(format!(
        "The policies of the registry by the protocol of msls-wa, with memtables of 4 MiB: \
         LevelDB and RocksDB as there, LevelDB with optimal sizes of as many levels, COLA and \
         SAMT with ratio {RATIO}, universal with trigger {TRIGGER}. SILT has {HASH_STORES} hash \
         stores without empty places, so that it is constant(k={HASH_STORES}). On the store \
         entries have {STORE_ITEM_BYTES} bytes, and costs are counted in logical bytes."
    ));
}
