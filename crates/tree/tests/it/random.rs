//! Random trees, plans and orders, all from one seed.

use crate::model::{Entry, KEYS, Model, key, range};
use lsmith_spec::random;
use lsmith_tree::{
    Input, KeyRange, KnotId, MergePlan, Mode, Place, Reason, Run, RunId, Size, Slice, Table,
    TableId,
};
use std::collections::BTreeMap;

/// A stream of random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (random::next(&mut self.0) % bound as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn range(&mut self) -> KeyRange {
        if self.chance(30) {
            return KeyRange::ALL;
        }
        let start = self.below(KEYS);
        let end = start + 1 + self.below(KEYS - start);
        let mut range = range(start, end);
        if self.chance(10) {
            range.end = None;
        }
        range
    }
}

/// A memtable with some puts and deletes newer than everything else.
pub(crate) fn memtable(random: &mut Random, model: &mut Model) -> Slice {
    let entries: BTreeMap<usize, Entry> = (0..1 + random.below(6))
        .map(|_| {
            model.next_seq += 1;
            (random.below(KEYS), Entry { seq: model.next_seq, tombstone: random.chance(40) })
        })
        .collect();
    let id = model.new_table();
    model.table(id, entries)
}

/// Levels of runs of slices. Some slices are parts of tables whose other parts are hidden or
/// visible elsewhere; some neighbouring runs are knotted.
pub(crate) fn model(random: &mut Random) -> Model {
    let mut model = Model::default();
    let levels = 1 + random.below(3);
    let mut lines = Vec::new();
    let mut parts: Vec<(Table, KeyRange)> = Vec::new();
    let mut seq = 10_000;
    let mut name = 0;
    let mut knot = None;
    for _ in 0..levels {
        let mut runs = Vec::new();
        for _ in 0..random.below(4) {
            // Within a knot entries interleave; elsewhere every run is older than the one before.
            if knot.is_none() || !random.chance(60) {
                knot = random.chance(20).then_some(KnotId(name));
                seq -= 100;
            }
            let slices = run_slices(random, &mut model, &mut parts, seq);
            if !slices.is_empty() {
                runs.push(Run::new(RunId(name), slices).in_knot(knot));
                name += 1;
            }
        }
        lines.push(lsmith_tree::Level::new(runs));
    }
    model.tree = lsmith_tree::Tree::from_levels(lines);
    model.next_seq = 20_000;
    model
}

fn run_slices(
    random: &mut Random,
    model: &mut Model,
    parts: &mut Vec<(Table, KeyRange)>,
    seq: u64,
) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut at = random.below(4);
    while at < KEYS {
        let end = (at + 1 + random.below(5)).min(KEYS);
        let wide = end + if random.chance(30) { random.below(3) } else { 0 };
        let free = |(table, left): &(Table, KeyRange)| {
            table.range.covers(&range(at, end)) && left.covers(&range(at, end))
        };
        let slice = match parts.iter().position(free) {
            Some(index) if random.chance(50) => {
                let (table, _) = parts.remove(index);
                Slice::whole(table).clip(&range(at, end)).expect("covered")
            }
            _ => {
                let dead = random.chance(15);
                let table = Table {
                    id: model.new_table(),
                    range: range(at, wide),
                    size: Size { bytes: 100, entries: 10, tombstones: if dead { 10 } else { 3 } },
                    ..Table::default()
                };
                if wide > end {
                    parts.push((table.clone(), range(end, wide)));
                }
                Slice::whole(table).clip(&range(at, end)).expect("not empty")
            }
        };
        let id = slice.table().id;
        let dead = slice.table().size.tombstones == 10;
        for key in at..end {
            model.entries.remove(&(id, key));
            if random.chance(70) {
                let entry = Entry {
                    seq: seq + random.below(90) as u64,
                    tombstone: dead || random.chance(30),
                };
                model.entries.insert((id, key), entry);
            }
        }
        // What is hidden in a table must never come to light.
        for key in end..wide {
            model.entries.entry((id, key)).or_insert(Entry { seq: 99_999, tombstone: false });
        }
        slices.push(slice);
        at = end + random.below(4);
    }
    slices
}

/// A plan that has a fair chance to be legal.
pub(crate) fn plan(random: &mut Random, model: &Model) -> Option<MergePlan> {
    let runs: Vec<RunId> = model.tree.runs().map(|(_, run)| run.id()).collect();
    let first = random.below(runs.len().max(1));
    let taken: Vec<RunId> = match random.below(3) {
        0 => runs.iter().skip(first).copied().filter(|_| random.chance(50)).collect(),
        1 => runs.iter().skip(first).copied().take(1).collect(),
        _ => runs.iter().skip(first).copied().take(1 + random.below(4)).collect(),
    };
    let common = random.chance(60).then(|| random.range());
    let mut reach = KeyRange::new(key(0), key(0));
    let widen = random.chance(50);
    let inputs: Vec<Input> = taken
        .into_iter()
        .map(|run| {
            let own = common.clone().unwrap_or_else(|| random.range());
            reach = reach.hull(&own);
            Input { run, range: if widen { reach.clone() } else { own } }
        })
        .filter(|input| {
            let run = model.tree.run(input.run).expect("just listed").1;
            !run.overlapping(&input.range).is_empty()
        })
        .collect();
    let neighbour = *runs.get(random.below(runs.len().max(1)))?;
    let last = inputs.last()?.run;
    let place = match random.below(10) {
        0 | 1 => Place::Oldest,
        2 | 3 => Place::NewRun(random.below(4)),
        4..=6 => Place::Into(neighbour),
        7 => Place::Into(last),
        _ => Place::Append(neighbour),
    };
    if random.chance(5) {
        let run = if random.chance(50) { runs.last()? } else { &neighbour };
        let range = inputs.last()?.range.clone();
        return Some(MergePlan::drop(*run, range, Reason::new("", [0; 3])));
    }
    let mode = if random.chance(25) { Mode::Move } else { Mode::Merge };
    Some(MergePlan { inputs, mode, ..MergePlan::merge([], place, Reason::new("", [0; 3])) })
}

/// Cuts a merge's entries into tables of one to four keys.
pub(crate) fn tables(
    random: &mut Random,
    model: &mut Model,
    entries: BTreeMap<usize, Entry>,
) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut rest: Vec<(usize, Entry)> = entries.into_iter().collect();
    while !rest.is_empty() {
        let count = (1 + random.below(4)).min(rest.len());
        let chunk = rest.drain(..count).collect();
        let id: TableId = model.new_table();
        slices.push(model.table(id, chunk));
    }
    slices
}
