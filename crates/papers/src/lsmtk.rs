//! The text on triangular compaction in lsmtk: bytes ingested, bytes written by merges, and the
//! quotient over time.

use crate::form::*;
use crate::shuffle::shuffled;
use anyhow::Context;
use lsmith_sim::{Event, KeyedSim, Parts};
use lsmith_spec::format_bytes;
use lsmith_tree::{EntryKind, Mode};
use lsmith_workload::{Rng, Zipf};

/// Tables of level 0 that go down together, and the levels of the text's script.
const BATCH: u64 = 8;
const LEVELS: u64 = 11;

/// The levels of a quick measurement.
const LEVELS_QUICK: u64 = 7;

/// Entries of a memtable, about.
const ENTRIES: u64 = 128;

/// Bytes of the text's keys and values: any number from the first to the second.
const KEY_BYTES: [u64; 2] = [8, 16];
const VALUE_BYTES: [u64; 2] = [64, 256];

/// Bytes that every entry has besides.
const HEAD_BYTES: u64 = 8;

/// Bytes of entries of one size: as many as the others have in the mean.
const MEAN_BYTES: u64 =
    (KEY_BYTES[0] + KEY_BYTES[1] + VALUE_BYTES[0] + VALUE_BYTES[1]) / 2 + HEAD_BYTES;

/// Logical bytes of a memtable.
const MEMTABLE_BYTES: u64 = ENTRIES * MEAN_BYTES;

/// The skew of keys, and the writes per key, where keys are skewed.
const SKEW: f64 = 0.99;
const WRITES_PER_KEY: u64 = 4;

/// Samples of a curve.
const POINTS: u64 = 128;

/// The tables during whose ingest every merge is drawn.
const DRAWN_TABLES: u64 = 1024;

/// The number of the original's README, of a load of 46.6 GB with keys at random.
const README_COST: f64 = 2.91;

const RATIO: &str = "triangular(score=ratio)";
const BYTES: &str = "triangular(score=bytes)";
const UNLIMITED: &str = "triangular(max_bytes=1024GiB, max_files=1000M, score=ratio)";

const POLICIES: [&str; 6] = [RATIO, BYTES, "leveled", "tiered", "choose_best", "minlatency"];

/// The name of the curve of the formula `1 + L/2`.
const FORMULA: &str = "1 + L/2";

/// The panels of costs: by the theory, and for each order of keys, with a title.
const THEORY: &str = "theory";
const ORDERS: [(&str, Keys, &str); 3] = [
    (UNIFORM, Keys::Uniform, "new keys at random"),
    ("skewed", Keys::Skewed, "updates, Zipf 0.99"),
    ("sequential", Keys::Sequential, "new keys in order"),
];
const UNIFORM: &str = "uniform";

/// The order in which keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// New keys at random, in entries of one size.
    Theory,
    /// New keys at random.
    Uniform,
    /// Keys are overwritten, the popular ones often.
    Skewed,
    /// New keys in order.
    Sequential,
}

impl Keys {
    /// Returns the ranks of `writes` writes.
    fn ranks(self, writes: u64) -> Vec<u32> {
        let mut rng = Rng::new(1, 0);
        match self {
            Keys::Theory | Keys::Uniform => shuffled(writes, &mut rng),
            Keys::Sequential => (0..writes as u32).collect(),
            Keys::Skewed => {
                let keys = (writes / WRITES_PER_KEY).max(1);
                // The popular keys lie anywhere.
                let places = shuffled(keys, &mut rng);
                let zipf = Zipf::new(keys, SKEW);
                let mut rng = Rng::new(2, 0);
                (0..writes).map(|_| places[zipf.draw(&mut rng) as usize]).collect()
            }
        }
    }

    /// Returns the logical bytes of the next entry.
    fn entry_bytes(self, rng: &mut Rng) -> u64 {
        let mut within = |[least, most]: [u64; 2]| least + rng.below(most - least + 1);
        match self {
            Keys::Theory => MEAN_BYTES,
            _ => within(KEY_BYTES) + within(VALUE_BYTES) + HEAD_BYTES,
        }
    }
}

/// One simulation.
#[derive(Clone, Debug)]
struct Ingest {
    keys: Keys,
    spec: String,
    /// Tables ingested.
    flushes: u64,
}

/// What came out.
struct Course {
    /// Tables ingested, with what was counted until then.
    looks: Vec<(u64, Parts)>,
    /// The merges until [`DRAWN_TABLES`] tables were ingested: tables ingested before, and bytes of
    /// all inputs, in tables.
    merges: Vec<(f64, f64)>,
}

/// What came out of each ingest; a spot has no place on an axis.
type Courses = Sweep<Ingest, Course>;

impl Course {
    /// Returns the write costs over time: the bytes that merges wrote over those ingested.
    fn costs(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> + '_ {
        self.looks.iter().map(|(flushes, parts)| (*flushes as f64, cost(parts)))
    }

    fn last(&self) -> f64 {
        self.costs().next_back().map_or(0.0, |(_, cost)| cost)
    }
}

fn cost(parts: &Parts) -> f64 {
    parts.merge_written_bytes as f64 / parts.flush_bytes.max(1) as f64
}

impl Ingest {
    fn measure(&self, task: &Task<'_>, ticker: &Ticker<'_>) -> anyhow::Result<Course> {
        let policy = task.policy(&self.spec)?;
        // The original rewrites all that it merges.
        let mut sim = KeyedSim::new(&policy, MEMTABLE_BYTES).with_rewrites();
        // A few more than fill the memtables, and more where keys are overwritten within one.
        let spare = if self.keys == Keys::Skewed { 4 } else { 1 };
        let writes = (self.flushes + 8) * ENTRIES * spare * 11 / 10;
        let every = (self.flushes / POINTS).max(1);
        let mut rng = Rng::new(3, 0);
        let mut looks = Vec::new();
        let mut merges = Vec::new();
        let mut live = vec![0; writes as usize];
        let mut live_bytes = 0;
        for rank in self.keys.ranks(writes) {
            let bytes = self.keys.entry_bytes(&mut rng);
            live_bytes += bytes;
            live_bytes -= std::mem::replace(&mut live[rank as usize], bytes);
            let before = sim.flushes();
            sim.write(EntryKind::Put, rank, bytes as u32);
            if sim.is_full() {
                let mut observe = |event: Event<'_>| {
                    let Event::Merge { tree, plan, .. } = event else { return };
                    if before >= DRAWN_TABLES || plan.mode == Mode::Move || plan.inputs.len() < 2 {
                        return;
                    }
                    let inputs = plan.inputs.iter().filter_map(|input| {
                        tree.run(input.run).map(|(_, run)| run.size_within(&input.range).bytes)
                    });
                    let tables = inputs.sum::<u64>() as f64 / MEMTABLE_BYTES as f64;
                    merges.push(((before + 1) as f64, tables));
                };
                sim.flush(live_bytes, &mut observe).with_context(|| self.spec.clone())?;
            }
            let now = sim.flushes();
            if now == before {
                continue;
            }
            ticker.tick(now - before);
            let is_power = now.is_multiple_of(BATCH) && (now / BATCH).is_power_of_two();
            if now.is_multiple_of(every) || is_power {
                looks.push((now, sim.figures().parts));
            }
            if now >= self.flushes {
                break;
            }
        }
        Ok(Course { looks, merges })
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let levels = match task.effort.is_quick {
        // A smaller effort than a quick one has fewer levels.
        true => (LEVELS_QUICK + u64::from(Effort::QUICK.shrink.ilog2()))
            .saturating_sub(u64::from(task.effort.shrink.max(1).ilog2()))
            .clamp(3, LEVELS_QUICK),
        false => LEVELS,
    };
    let flushes = BATCH << levels;
    let ingest = |panel, keys, spec: &str| Spot {
        panel,
        curve: spec.to_owned(),
        x: 0.0,
        job: Ingest { keys, spec: spec.to_owned(), flushes },
    };
    let own = task.own_beside(POLICIES);
    let own = || own.iter().map(String::as_str);
    let mut all = vec![ingest(THEORY, Keys::Theory, UNLIMITED)];
    for (panel, keys, _) in ORDERS {
        all.extend(POLICIES.into_iter().chain(own()).map(|spec| ingest(panel, keys, spec)));
    }
    let work = |ingest: &Ingest| ingest.flushes;
    let measure = |ingest: &Ingest, ticker: &Ticker<'_>| ingest.measure(task, ticker);
    let courses = Courses::measure(task, "keyed simulation", all, work, measure)?;
    let mut figure = task.figure(panels(flushes));
    for (spot, course) in courses.iter().filter(|(spot, _)| spot.panel != THEORY) {
        figure.draw(spot.panel, &spot.curve, course.costs());
    }
    theory(&mut figure, &courses, levels);
    for spec in [RATIO, BYTES].into_iter().chain(own()) {
        let course = courses.at(UNIFORM, spec, 0.0);
        figure.draw("triangles", spec, course.into_iter().flat_map(|it| it.merges.iter().copied()));
    }
    claims(&mut figure, &courses);
    notes(&mut figure, &courses);
    Ok(figure)
}

fn panels(flushes: u64) -> Vec<Panel> {
    let panel = |name: &str, title: String, x: Axis| {
        Panel::new(name, title, x, Axis::linear("write cost", "bytes merged per byte ingested"))
    };
    let levels = Axis::linear("levels L, 8 * 2^L tables", "");
    let mut panels = vec![panel(THEORY, "keys at random, no limits".to_owned(), levels)];
    panels.extend(ORDERS.map(|(name, _, title)| {
        panel(name, format!("{title}, {flushes} tables"), Axis::log("tables ingested", ""))
    }));
    let [x, y] = [Axis::linear("tables ingested", ""), Axis::log("bytes of a merge", "tables")];
    panels.push(Panel::new("triangles", "each merge, new keys at random", x, y));
    panels
}

/// The cost over `2^L` batches beside the formula.
fn theory(figure: &mut Figure, courses: &Courses, levels: u64) {
    let Some(course) = courses.at(THEORY, UNLIMITED, 0.0) else { return };
    let cost_after = |levels| course.costs().find(|(at, _)| *at == (BATCH << levels) as f64);
    let costs = (3..=levels).filter_map(|levels| Some((levels as f64, cost_after(levels)?.1)));
    let formula = |levels: f64| 1.0 + levels / 2.0;
    let off = farthest(costs.clone().map(|(levels, cost)| cost - formula(levels)));
    figure.draw(THEORY, RATIO, costs);
    figure.draw(THEORY, FORMULA, (3..=levels).map(|at| (at as f64, formula(at as f64))));
    let claim =
        format!("theory: most distance of the write cost from 1 + L/2, L from 3 to {levels}");
    figure.at_most(claim, off, 1e-9);
    if levels == LEVELS {
        let claim = "theory: write cost with 11 levels (the text's script)";
        figure.near(claim, 6.5, course.last(), 0.005);
    }
}

fn claims(figure: &mut Figure, courses: &Courses) {
    let last = |panel, spec| courses.at(panel, spec, 0.0).map_or(0.0, Course::last);
    let cost = last(UNIFORM, RATIO);
    let early = most(figure.curve(UNIFORM, RATIO).map(|(_, cost)| cost));
    let claim = "uniform: greatest write cost on the way (above the theory's 6.5 at the start)";
    figure.at_least(claim, early, 6.5);
    figure.explain(
        "greatest write cost on the way",
        "the theory's cost is that of all levels, and a young tree has few: the cost grows by a \
         half with each doubling. The original's prototype took other triangles at first.",
    );
    figure.at_most("uniform: write cost at the end (less than the theory's 6.5)", cost, 6.5);
    let claim = "uniform: write cost at the end (2.91 in the original's README)";
    figure.near(claim, README_COST, cost, 0.3);
    figure.explain(
        "2.91 in the original's README",
        "with keys at random, triangles that keep level 0 bounded write each byte once per \
         doubling, half of the time. 2.91 is the theory's cost with 3.8 levels.",
    );
    for spec in [RATIO, BYTES] {
        let uniform = last(UNIFORM, spec).max(f64::MIN_POSITIVE);
        let claim =
            format!("{spec}: write cost with skewed keys over that with keys at random (less)");
        figure.at_most(claim, last("skewed", spec) / uniform, 1.0);
        let claim = format!("{spec}: write cost with keys in order (moves only)");
        figure.at_most(claim, last("sequential", spec), 0.0);
        let claim = format!(
            "{spec}, uniform: write cost of leveled over it (one level at a time is dearer)"
        );
        figure.at_least(claim, last(UNIFORM, "leveled") / uniform, 1.0);
    }
}

fn notes(figure: &mut Figure, courses: &Courses) {
    for (panel, ..) in ORDERS {
        let lines = courses.iter().filter(|(spot, _)| spot.panel == panel);
        let lines = lines.filter_map(|(spot, course)| {
            let (_, parts) = course.looks.last()?;
            let [ingested, merged] = [parts.flush_bytes, parts.merge_written_bytes]
                .map(|bytes| format_bytes(bytes / 1000 * 1000));
            Some(format!("{} {ingested} and {merged}", spot.curve))
        });
        let lines = joined("; ", lines);
        figure.note(format!("Bytes ingested and bytes written by merges, {panel}: {lines}."));
    }
    figure.note(format!(
        "A table has about {ENTRIES} entries with keys of 8 to 16 bytes and values of 64 to 256, \
         {MEMTABLE_BYTES} B in all; in the panel theory all entries have {MEAN_BYTES} B. The text \
         has tables of 4 MiB. Only the number of tables matters to triangles of level 0.",
    ));
    figure.note(
        "The write cost is that of the source: bytes written by merges over bytes ingested. \
         Neither the ingest itself nor moves count. A policy that merges memtables straight in \
         pays for them in its merges.",
    );
}
