//! The paper's designs as policies: their costs by formula, key by key and on the store.

use super::design::{Design, Levels, Pick};
use super::panels::{POPULARITIES, in_a_hurry, panels};
use super::steady::{Steady, simulated};
use crate::form::*;
use lsmith_model::formulas::{SiltModel, SlotModel, Slots, UniversalModel};
use lsmith_model::{Model, Popularity};

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
        let setting = steady.design.setting(&popularity);
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

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let mut figure = task.figure(panels(&Axis::log("unique keys", ""), str::to_owned));
    let hurried = |(keys, rounds): (u64, u64)| (in_a_hurry(keys, task.effort), rounds);
    let sizes = task.pick(SIMULATED_QUICK.map(hurried).to_vec(), SIMULATED.to_vec());
    let on_store = task.pick(hurried(ON_STORE_QUICK), ON_STORE);
    let stores = spots(&[on_store])?;
    let work = |(spot, _): &(Spot<Steady>, f64)| 2 * spot.job.work();
    let found = task.each_in_turn(STORE, &stores, work, |(spot, _), ticker| {
        let steady = Steady { item_bytes: STORE_ITEM_BYTES, ..spot.job.clone() };
        let (stored, _) = steady.run(ticker)?;
        Ok([steady.simulate(ticker, &mut |_| {})?.write_cost(), stored.write_cost()])
    })?;
    for ((spot, model), [keyed, stored]) in stores.iter().zip(found) {
        for (source, y) in [(MODEL, *model), (KEYED, keyed), (STORE, stored)] {
            figure.point(spot.panel, &curve(source, &spot.curve), spot.x, y);
        }
    }
    let (all, models): (Vec<_>, Vec<f64>) = spots(&sizes)?.into_iter().unzip();
    for ((spot, found), model) in simulated(task, all)?.iter().zip(models) {
        figure.point(spot.panel, &curve(MODEL, &spot.curve), spot.x, model);
        figure.point(spot.panel, &curve(KEYED, &spot.curve), spot.x, found.write_cost());
    }
    claims(&mut figure, &sizes, on_store.0 as f64);
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

/// Returns all designs at each of `sizes`, keys and requests per key, with the costs by formula.
fn spots(sizes: &[(u64, u64)]) -> anyhow::Result<Vec<(Spot<Steady>, f64)>> {
    let mut all = Vec::new();
    for (panel, _, skew) in POPULARITIES {
        for (kind, name) in KINDS {
            for (keys, rounds) in sizes {
                let job = kind.steady(*keys, skew, *rounds)?;
                let model = kind.by_model(&job)?;
                let curve = name.to_owned();
                all.push((Spot { panel, curve, x: *keys as f64, job }, model));
            }
        }
    }
    Ok(all)
}

fn claims(figure: &mut Figure, simulated: &[(u64, u64)], on_store: f64) {
    for (panel, title, _) in POPULARITIES {
        for (_, name) in KINDS {
            let [model, keyed, store] = [MODEL, KEYED, STORE].map(|source| curve(source, name));
            for (keys, _) in simulated {
                let off = figure.excess(panel, &model, &keyed, *keys as f64);
                let allowed = if *keys >= MANY_KEYS { OFF_MAX } else { OFF_MAX_FEW };
                let claim = format!("{title}, {keys} keys, {name}: model off from simulation, %");
                figure.near(claim, 0.0, off, allowed);
            }
            let off = figure.excess(panel, &keyed, &store, on_store);
            let claim = format!("{title}, {name}: simulation off from the store, %");
            figure.near(claim, 0.0, off, 1e-6);
        }
        for (keys, _) in simulated {
            let [fixed, optimal] = [0, 1].map(|kind: usize| curve(KEYED, KINDS[kind].1));
            let more = figure.excess(panel, &optimal, &fixed, *keys as f64);
            let claim = format!("{title}, {keys} keys: sizes=optimal writes less, %, at least");
            figure.at_least(claim, more.map(|percent| -percent), 3.0);
        }
    }
}

fn notes(figure: &mut Figure) {
    figure.note(format!(
        "The policies of the registry by the protocol of msls-wa, with memtables of 4 MiB: LevelDB \
         and RocksDB as there, LevelDB with optimal sizes of as many levels, COLA and SAMT with \
         ratio {RATIO}, universal with trigger {TRIGGER}. SILT has {HASH_STORES} hash stores \
         without empty places, so that it is constant(k={HASH_STORES}). On the store entries have \
         {STORE_ITEM_BYTES} bytes, and costs are counted in logical bytes."
    ));
}
