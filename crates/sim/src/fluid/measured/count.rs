//! One pass over the operations of a workload.

use super::cell::{Cell, DistinctKeys, Kind, NEVER, Write};
use crate::SimError;
use crate::fluid::place::PLACES;
use lsmith_policy::is_memtable_full;
use lsmith_tree::logical_bytes;
use lsmith_workload::{Op, OpKind, Workload};
use std::ops::Range;

/// Most writes that are counted: they take some 40 bytes each while they are.
pub(crate) const WRITES_MAX: usize = 100_000_000;

/// Most parts of the key space that are looked at apart, and least keys of one.
const CELLS_MAX: usize = 1024;
const CELL_KEYS_MIN: usize = 64;

/// Keys that lie as near to each other as those of a block.
const NEAR_KEYS: usize = 32;

/// Parts of time in which parts of the key space are compared.
const EPOCHS: usize = 16;

/// Variance of the keys that parts of the key space have in a part of time, over that by chance,
/// from which on they differ.
const UNEVEN: f64 = 1.5;

/// Writes between two moments of which the bytes are known.
const STEP: usize = 256;

/// Counts of the keys that any stretch of writes comes to, exact but for where in its part of the
/// key space a key lies.
#[derive(Clone, Debug)]
pub(in crate::fluid) struct Counted {
    whole: Cell,
    /// Parts of the key space with as many keys each, in key order: none where keys that are
    /// written together lie anywhere in it, else a power of two.
    cells: Vec<Cell>,
    /// True if the keys of a part are written as if they had no order.
    is_even: bool,
    writes: usize,
    /// Logical bytes of all writes before each step.
    bytes: Vec<u64>,
}

/// A write as it is read.
#[derive(Clone, Copy)]
struct Read {
    rank: u32,
    bytes: u32,
    kind: Kind,
}

/// Everything about all writes, by number.
struct Writes {
    read: Vec<Read>,
    /// The numbers of writes by key and, of one key, in order.
    by_key: Vec<u32>,
    /// Where in `by_key` each key begins, and its end.
    keys: Vec<usize>,
    next: Vec<u32>,
    before: Vec<u32>,
}

impl Counted {
    /// Counts the writes of `workload`, up to its end.
    ///
    /// # Errors
    /// [`SimError::NotFluid`] if there are too many, or none; [`SimError::Workload`] if a line is
    /// damaged.
    pub(in crate::fluid) fn of(workload: &Workload) -> Result<Counted, SimError> {
        let ranks = workload.ranks();
        let mut read = Vec::new();
        for op in workload.ops() {
            let op = op?;
            let Some(kind) = kind(&op) else { continue };
            if read.len() == WRITES_MAX {
                let what = "more writes than the 100 M that are counted one by one";
                return Err(SimError::NotFluid { workload: workload.spec().clone(), what });
            }
            let bytes = logical_bytes(workload.key_bytes(op.item), op.value_bytes as usize);
            read.push(Read { rank: ranks.rank(op.item) as u32, bytes: bytes as u32, kind });
        }
        if read.is_empty() {
            let what = "it writes nothing";
            return Err(SimError::NotFluid { workload: workload.spec().clone(), what });
        }
        Ok(Counted::new(Writes::new(read)))
    }

    fn new(writes: Writes) -> Counted {
        let mut sum = 0;
        let add = |step: &[Read]| {
            sum += step.iter().map(|read| u64::from(read.bytes)).sum::<u64>();
            sum
        };
        let bytes = std::iter::once(0).chain(writes.read.chunks(STEP).map(add)).collect();
        let identity: Vec<u32> = (0..writes.read.len() as u32).collect();
        let all: Vec<Write> = identity.iter().map(|&at| writes.write(at, &identity)).collect();
        let whole = Cell::new(None, &all);
        let (cells, is_even) = writes.cells();
        Counted { whole, cells, is_even, writes: all.len(), bytes }
    }

    /// Returns true if it is known, up to chance, what the keys of a block meet.
    pub(in crate::fluid) fn is_even(&self) -> bool {
        self.is_even
    }

    /// Returns what the writes from one up to another come to, if all of the key space were as the
    /// part in which `place` lies.
    pub(in crate::fluid) fn found(&self, place: u64, from: f64, until: f64) -> DistinctKeys {
        let from = from.round() as u32;
        let until = until.round() as u32;
        match self.cells.len() {
            0 => self.whole.found(from, until),
            count => {
                let cell = (place / (PLACES / count as u64)).min(count as u64 - 1);
                self.cells[cell as usize].found(from, until).times(count as f64)
            }
        }
    }

    /// Returns the same of the key space as a whole.
    pub(in crate::fluid) fn all(&self, from: f64, until: f64) -> DistinctKeys {
        self.whole.found(from.round() as u32, until.round() as u32)
    }

    /// Returns where the part of the key space ends in which `place` lies.
    pub(in crate::fluid) fn border_after(&self, place: u64) -> u64 {
        let width = PLACES / self.cells.len().max(1) as u64;
        (place / width + 1) * width
    }

    /// Returns how many writes there are when a memtable is full that took its first after `from`
    /// of them; `None` if the writes end before.
    pub(in crate::fluid) fn memtable_end(&self, from: f64, seal_bytes: u64) -> Option<f64> {
        let before = self.requested_bytes(from);
        let is_full = |until: usize| {
            let until = until as f64;
            let found = self.all(from, until);
            let live_bytes = (found.put_bytes + found.tombstone_bytes).round() as u64;
            let written_bytes = (self.requested_bytes(until) - before) as u64;
            is_memtable_full(seal_bytes, live_bytes, written_bytes)
        };
        // What is full stays so, but for what cancels, which is little in one memtable.
        let mut open = from as usize;
        let mut step = 1;
        while !is_full((open + step).min(self.writes)) {
            open += step;
            step *= 2;
            if open >= self.writes {
                return None;
            }
        }
        let (mut open, mut full) = (open, (open + step).min(self.writes));
        while open + 1 < full {
            let middle = open.midpoint(full);
            if is_full(middle) { full = middle } else { open = middle }
        }
        Some(full as f64)
    }

    /// Returns the logical bytes of the first so many writes.
    pub(in crate::fluid) fn requested_bytes(&self, writes: f64) -> f64 {
        let steps = writes / STEP as f64;
        let step = (steps as usize).min(self.bytes.len() - 1);
        let below = self.bytes[step] as f64;
        let Some(next) = self.bytes.get(step + 1) else { return below };
        let len = (self.writes - step * STEP).min(STEP) as f64;
        let part = (writes - (step * STEP) as f64) / len;
        below + (*next as f64 - below) * part.min(1.0)
    }
}

impl Writes {
    fn new(read: Vec<Read>) -> Writes {
        let number = |(number, read): (usize, &Read)| u64::from(read.rank) << 32 | number as u64;
        let mut sorted: Vec<u64> = read.iter().enumerate().map(number).collect();
        sorted.sort_unstable();
        let mut next = vec![NEVER; read.len()];
        let mut before = vec![NEVER; read.len()];
        let mut keys = vec![0];
        for (index, pair) in sorted.windows(2).enumerate() {
            let left = pair[0] as u32;
            let right = pair[1] as u32;
            if pair[0] >> 32 == pair[1] >> 32 {
                next[left as usize] = right;
                before[right as usize] = left;
            } else {
                keys.push(index + 1);
            }
        }
        keys.push(read.len());
        let by_key = sorted.into_iter().map(|write| write as u32).collect();
        Writes { read, by_key, keys, next, before }
    }

    /// Returns the write of a number; `moments` are those of all writes in its cell.
    fn write(&self, number: u32, moments: &[u32]) -> Write {
        let at = |number: u32| moments[number as usize];
        let number_before = Some(self.before[number as usize]).filter(|before| *before != NEVER);
        let next = self.next[number as usize];
        let Read { bytes, kind, .. } = self.read[number as usize];
        Write {
            at: at(number),
            before: number_before.map(|before| (at(before), self.read[before as usize].kind)),
            next: if next == NEVER { NEVER } else { at(next) },
            kind,
            bytes,
        }
    }

    /// Parts of the key space, if they differ, and whether there is nothing more to be told apart
    /// within them.
    fn cells(&self) -> (Vec<Cell>, bool) {
        let key_count = self.keys.len() - 1;
        let count = 1 << (key_count / CELL_KEYS_MIN).clamp(1, CELLS_MAX).ilog2();
        let all = 0..key_count;
        let borders: Vec<Range<usize>> = parts(&all, count).collect();
        let near = |range: &Range<usize>| parts(range, range.len().div_ceil(NEAR_KEYS)).collect();
        if self.unevenness([borders.clone()]) <= UNEVEN {
            let is_even = self.unevenness([near(&all)]) <= UNEVEN;
            return (Vec::new(), is_even);
        }
        let is_even = self.unevenness(borders.iter().map(near)) <= UNEVEN;
        let mut moments = vec![0; self.read.len()];
        let cell = |keys: Range<usize>| {
            let mut numbers = self.numbers(&keys).to_vec();
            numbers.sort_unstable();
            for (at, number) in numbers.iter().enumerate() {
                moments[*number as usize] = at as u32;
            }
            let write = |number: &u32| self.write(*number, &moments);
            let writes: Vec<Write> = numbers.iter().map(write).collect();
            Cell::new(Some(numbers), &writes)
        };
        (borders.into_iter().map(cell).collect(), is_even)
    }

    /// Returns the numbers of all writes to some keys.
    fn numbers(&self, keys: &Range<usize>) -> &[u32] {
        &self.by_key[self.keys[keys.start]..self.keys[keys.end]]
    }

    /// Returns how much the keys that are written in a part of time differ in number between the
    /// parts of each group: their variance over that by chance.
    fn unevenness(&self, groups: impl IntoIterator<Item = Vec<Range<usize>>>) -> f64 {
        let mut squares = 0.0;
        let mut chance = 0.0;
        for group in groups {
            let counts: Vec<[f64; EPOCHS]> = group.iter().map(|keys| self.counts(keys)).collect();
            for at in 0..EPOCHS {
                let counts = || counts.iter().map(|keys| keys[at]);
                let sum = counts().sum::<f64>();
                let mean = sum / group.len() as f64;
                squares += counts().map(|count| (count - mean).powi(2)).sum::<f64>();
                chance += sum;
            }
        }
        squares / chance
    }

    /// Returns how many of the keys are written in each part of time.
    fn counts(&self, keys: &Range<usize>) -> [f64; EPOCHS] {
        let epoch = self.read.len().div_ceil(EPOCHS);
        let mut counts = [0.0; EPOCHS];
        for &number in self.numbers(keys) {
            let at = number as usize / epoch;
            if self.next[number as usize] as usize >= (at + 1) * epoch {
                counts[at] += 1.0;
            }
        }
        counts
    }
}

/// So many parts of a range, as equal as can be.
fn parts(range: &Range<usize>, count: usize) -> impl Iterator<Item = Range<usize>> {
    let start = range.start;
    let len = range.len();
    let border = move |part: usize| start + part * len / count;
    (0..count).map(move |part| border(part)..border(part + 1))
}

/// Returns what an operation does to its key, if it writes.
fn kind(op: &Op) -> Option<Kind> {
    match op.kind {
        OpKind::Read | OpKind::Scan => None,
        OpKind::Put | OpKind::ReadModifyWrite => Some(Kind::Put),
        OpKind::Insert => Some(Kind::Insert),
        OpKind::Delete => Some(Kind::Delete),
        OpKind::Remove => Some(Kind::Remove),
    }
}
