//! Throughput over write cost, on a device of one bandwidth.

use super::design::{Design, Pick};
use super::panels::{POPULARITIES, in_a_hurry};
use super::requests::Requests;
use crate::form::*;
use crate::store::check_plans;
use crate::unsynced::{Device, Unsynced};
use lsmith::{DEFAULT_KEYSPACE, Store};
use lsmith_lab::{Clock, Scratch};
use lsmith_tree::logical_bytes;
use lsmith_workload::fill_value;
use std::sync::Arc;

/// Keys of the store, and requests per key.
const SCALES: [(u64, u64); 3] = [(33_000, 10), (66_000, 5), (132_000, 3)];
const SCALES_QUICK: [(u64, u64); 1] = [(33_000, 10)];

/// Logical bytes of an entry.
const ITEM_BYTES: u32 = 200;
const KEY_BYTES: usize = size_of::<u32>();

/// Bytes per second that the device takes: few enough that it is what everything waits for.
const BANDWIDTH: f64 = 16e6;
const MEGABYTE: f64 = 1e6;

/// The least share of the bandwidth that must be in use.
const USED_MIN: f64 = 0.9;

const MEASURED: &str = "store";
const EXPECTED: &str = "bandwidth over write cost";

/// A design on the store, for one workload.
struct Bound {
    design: Design,
    rounds: u64,
}

/// What a run has come to.
struct Pace {
    /// Bytes that the device has taken per byte of requests.
    write_cost: f64,
    /// Bytes of requests per second.
    throughput: f64,
}

impl Bound {
    fn work(&self) -> u64 {
        self.design.keys * self.rounds
    }

    fn run(&self, ticker: &Ticker<'_>) -> anyhow::Result<Pace> {
        let dir = Scratch::new("lsmith-reproduce-")?;
        let device = Device::new(BANDWIDTH);
        let per_memtable = self.design.memtable.round() as u64;
        let store = Store::builder(dir.path())
            .env(Arc::new(Unsynced::on(&device)))
            .policy(self.design.policy(ITEM_BYTES)?)
            .memtable_bytes(per_memtable * u64::from(ITEM_BYTES))
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let value_bytes = u64::from(ITEM_BYTES) - logical_bytes(KEY_BYTES, 0);
        let mut value = vec![0; value_bytes as usize];
        let keys = self.design.keys as u32;
        for place in 0..keys {
            fill_value(u64::from(place), &mut value);
            keyspace.put(place.to_be_bytes(), &value)?;
        }
        keyspace.flush()?;
        store.settle()?;
        device.drain();
        let before = device.bytes();
        let clock = Clock::start();
        let mut requests = Requests::new(keys, self.design.skew);
        for request in 0..self.work() {
            fill_value(request, &mut value);
            keyspace.put(requests.next_place().to_be_bytes(), &value)?;
            if request % per_memtable == 0 {
                ticker.tick(per_memtable);
            }
        }
        store.settle()?;
        device.drain();
        let seconds = clock.seconds();
        check_plans(&keyspace)?;
        let requested = (self.work() * u64::from(ITEM_BYTES)) as f64;
        let write_cost = (device.bytes() - before) as f64 / requested;
        Ok(Pace { write_cost, throughput: requested / seconds })
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let mut figure = task.figure(POPULARITIES.map(|(panel, name, _)| {
        let x = Axis::log("write cost", "bytes taken by the device per byte of requests");
        Panel::new(panel, name, x, Axis::log("throughput", "MB of requests per second"))
    }));
    let hurried = SCALES_QUICK.map(|(keys, rounds)| (in_a_hurry(keys, task.effort), rounds));
    let scales = task.pick(hurried.to_vec(), SCALES.to_vec());
    let mut jobs = Vec::new();
    for (_, _, skew) in POPULARITIES {
        for &(keys, rounds) in &scales {
            let leveldb = Design::leveldb(keys, skew);
            // Small memtables, and a last level that everything is merged into at once.
            let small = Design { memtable: leveldb.memtable / 4.0, ..leveldb.clone() };
            let flat = Design { sizes: Vec::new(), ..leveldb.clone() };
            let random = Design { pick: Pick::Random, ..leveldb.clone() };
            jobs.extend([leveldb, small, flat, random].map(|design| Bound { design, rounds }));
        }
    }
    let found = task.each_in_turn("runs on a slow device", &jobs, Bound::work, Bound::run)?;
    for (panel, _, skew) in POPULARITIES {
        let own = jobs.iter().zip(&found).filter(|(job, _)| job.design.skew == skew);
        let mut paces: Vec<&Pace> = own.map(|(_, pace)| pace).collect();
        paces.sort_by(|one, other| one.write_cost.total_cmp(&other.write_cost));
        for pace in paces {
            let expected = BANDWIDTH / pace.write_cost / MEGABYTE;
            figure.point(panel, MEASURED, pace.write_cost, pace.throughput / MEGABYTE);
            figure.point(panel, EXPECTED, pace.write_cost, expected);
        }
    }
    claims(&mut figure);
    figure.note(format!(
        "LevelDB's design on the real store in a free run, with two other sizes of memtables and \
         of levels and with random choice, {:?} keys and requests per key. Every byte that the \
         store writes waits for a device that takes {} MB per second, logs and manifests included. \
         The paper's figure has LevelDB on a device whose bandwidth it does not give.",
        scales,
        BANDWIDTH / MEGABYTE
    ));
    Ok(figure)
}

fn claims(figure: &mut Figure) {
    for (panel, name, _) in POPULARITIES {
        let pairs = figure.curve(panel, MEASURED).zip(figure.curve(panel, EXPECTED));
        let used: Vec<f64> =
            pairs.map(|((_, measured), (_, expected))| measured / expected).collect();
        let (Some(least), Some(most)) = (least(used.iter().copied()), most(used)) else { continue };
        let claim = format!("{name}: share of the bandwidth in use, least of all runs");
        figure.at_least(claim, least, USED_MIN);
        let claim = format!(
            "{name}: throughput times write cost, the most over the least of all runs, % (write \
             cost is proportional to 1 / throughput)"
        );
        figure.at_most(claim, percent_off(most, least), 10.0);
        let xs = figure.xs(panel);
        let spread = xs.last().zip(xs.first()).map(|(most, least)| most / least);
        figure.at_least(format!("{name}: the greatest write cost over the least"), spread, 1.5);
    }
}
