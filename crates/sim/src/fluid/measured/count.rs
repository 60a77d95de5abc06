//! One pass over the operations of a workload.

use super::cell::{Cell, CellWrite, DistinctKeys, Kind, NEVER};
use crate::SimError;
use crate::fluid::place::PLACES;
use lsmith_policy::is_memtable_full;
use lsmith_tree::logical_bytes;
use lsmith_workload::{Op, OpKind, Workload};
use std::ops::Range;
use std::sync::Arc;

/// The most writes that can be counted. Counting takes some 50 bytes per write.
pub(crate) const WRITES_MAX: usize = 100_000_000;

/// The most separate parts of the key space, and the least keys of a part.
const CELLS_MAX: usize = 1024;
const CELL_KEYS_MIN: usize = 64;

/// The number of neighbouring keys that are as near to each other as keys of one block.
const NEAR_KEYS: usize = 32;

/// The number of parts of time in which parts of the key space are compared.
const EPOCHS: usize = 16;

/// The number of moments at which the live bytes are looked at.
const MOMENTS: usize = 64;

/// The ratio from which on parts of the key space differ: the variance of their numbers of keys in
/// a part of time, relative to the variance by chance.
const UNEVEN: f64 = 1.5;

/// The number of writes between two stored byte totals.
const STEP: usize = 256;

/// Counts of the different keys in any interval of writes. They are exact, except for the position
/// of a key in its part of the key space.
#[derive(Clone, Debug)]
pub(in crate::fluid) struct Counted {
    whole: Arc<Cell>,
    /// Parts of the key space with equally many keys, in key order. Empty if keys that are written
    /// together lie anywhere, else a power of two.
    cells: Arc<[Cell]>,
    /// The number of neighbouring parts that are counted together, a power of two.
    joined: usize,
    /// True if the keys of a part are written in an order that is independent of key order, as far
    /// as long times show.
    is_even: bool,
    /// The number of keys of a part, if its own writes show a key order.
    ordered_keys: Option<usize>,
    writes: usize,
    /// What each write does to a memtable.
    memory: Arc<[MemoryWrite]>,
    /// Logical bytes of all writes before each step.
    bytes: Arc<[u64]>,
}

/// A write, as a memtable sees it.
#[derive(Clone, Copy, Debug)]
struct MemoryWrite {
    bytes: u32,
    /// The index of the write to the key before this one.
    before: Option<u32>,
    /// True if both writes vanish from a memtable that has both: an insert and a remove.
    cancels: bool,
}

impl MemoryWrite {
    /// Returns the logical bytes that a memtable holds of the write, if it starts with write
    /// `first`.
    fn left(self, first: usize) -> u64 {
        let is_gone = self.cancels && self.before.is_some_and(|before| before as usize >= first);
        if is_gone { 0 } else { self.bytes.into() }
    }
}

/// A write that the workload requests.
#[derive(Clone, Copy)]
struct Request {
    rank: u32,
    bytes: u32,
    kind: Kind,
}

/// All writes, in time order.
struct Writes {
    requests: Vec<Request>,
    /// The indexes of writes, sorted by key, then by time.
    by_key: Vec<u32>,
    /// The start of each key in `by_key`, and the end of the last.
    keys: Vec<usize>,
    next: Vec<u32>,
    before: Vec<u32>,
}

impl Counted {
    /// Counts the writes of `workload`, up to its end.
    ///
    /// # Errors
    /// Fails with [`SimError::NotFluid`] if there are too many writes or none, and with
    /// [`SimError::Workload`] if a line is damaged.
    pub(in crate::fluid) fn of(workload: &Workload) -> Result<Counted, SimError> {
        let ranks = workload.ranks();
        let mut requests = Vec::new();
        for op in workload.ops() {
            let op = op?;
            let Some(kind) = kind(&op) else { continue };
            if requests.len() == WRITES_MAX {
                let what = "more writes than the 100 M that are counted one by one";
                return Err(SimError::NotFluid { workload: workload.spec().clone(), what });
            }
            let bytes = logical_bytes(workload.key_bytes(op.item), op.value_bytes as usize);
            requests.push(Request { rank: ranks.rank(op.item) as u32, bytes: bytes as u32, kind });
        }
        if requests.is_empty() {
            let what = "it writes nothing";
            return Err(SimError::NotFluid { workload: workload.spec().clone(), what });
        }
        Ok(Counted::new(Writes::new(requests)))
    }

    fn new(writes: Writes) -> Counted {
        let mut sum = 0;
        let add = |step: &[Request]| {
            sum += step.iter().map(|request| u64::from(request.bytes)).sum::<u64>();
            sum
        };
        let bytes = std::iter::once(0).chain(writes.requests.chunks(STEP).map(add)).collect();
        let memory = (0..writes.requests.len()).map(|at| writes.in_memory(at)).collect();
        let identity: Vec<u32> = (0..writes.requests.len() as u32).collect();
        let all: Vec<CellWrite> = identity.iter().map(|&at| writes.write(at, &identity)).collect();
        let whole = Arc::new(Cell::new(None, &all));
        let (cells, is_even) = writes.cells();
        let is_ordered = !cells.is_empty() && writes.is_ordered(cells.len());
        let ordered_keys = is_ordered.then(|| (writes.keys.len() - 1) / cells.len());
        Counted {
            whole,
            cells: cells.into(),
            joined: 1,
            is_even,
            ordered_keys,
            writes: all.len(),
            memory,
            bytes,
        }
    }

    /// Returns true if the overlap of the keys of a block is known, except for chance.
    pub(in crate::fluid) fn is_even(&self) -> bool {
        self.is_even
    }

    /// Returns the number of neighbouring keys whose writes are in key order, as far as that is not
    /// counted; 0 if there is no such order.
    pub(in crate::fluid) fn ordered_keys(&self) -> usize {
        self.ordered_keys.unwrap_or(0)
    }

    /// Returns true if at some moment less than half of the bytes are live that were live before.
    pub(in crate::fluid) fn shrinks(&self) -> bool {
        let mut most = 0.0_f64;
        (1..=MOMENTS).any(|moment| {
            let live = self.whole.found(0, (self.writes * moment / MOMENTS) as u32).put_bytes;
            most = most.max(live);
            live < most / 2.0
        })
    }

    /// Returns the totals of the writes of an interval, if all of the key space were like the part
    /// that contains `place`.
    pub(in crate::fluid) fn found(&self, place: u64, from: f64, until: f64) -> DistinctKeys {
        let from = from.round() as u32;
        let until = until.round() as u32;
        if self.cells.is_empty() {
            return self.whole.found(from, until);
        }
        let parts = self.cells.len() / self.joined;
        let part = (place / (PLACES / parts as u64)).min(parts as u64 - 1) as usize;
        let cells = &self.cells[part * self.joined..][..self.joined];
        let mut sum = DistinctKeys::default();
        for cell in cells {
            sum += cell.found(from, until);
        }
        sum.times(parts as f64)
    }

    /// Returns the same counts with half as many parts of the key space. `None` if there are no
    /// parts.
    pub(in crate::fluid) fn coarser(&self) -> Option<Counted> {
        let joined = 2 * self.joined;
        (self.cells.len() >= joined).then(|| Counted { joined, ..self.clone() })
    }

    /// Returns the same totals for the whole key space.
    pub(in crate::fluid) fn all(&self, from: f64, until: f64) -> DistinctKeys {
        self.whole.found(from.round() as u32, until.round() as u32)
    }

    /// Returns the end of the part of the key space that contains `place`.
    pub(in crate::fluid) fn border_after(&self, place: u64) -> u64 {
        let width = PLACES / (self.cells.len() / self.joined).max(1) as u64;
        (place / width + 1) * width
    }

    /// Returns the index of the write at which a memtable is full that started after write `from`;
    /// `None` if the writes end before.
    pub(in crate::fluid) fn memtable_end(&self, from: f64, seal_bytes: u64) -> Option<f64> {
        let first = from as usize;
        let (mut live, mut written) = (0, 0);
        for at in first..self.writes {
            written += u64::from(self.memory[at].bytes);
            live += self.memory[at].left(first);
            if let Some(before) = self.memory[at].before.filter(|before| *before as usize >= first)
            {
                live -= self.memory[before as usize].left(first);
            }
            if is_memtable_full(seal_bytes, live, written) {
                return Some((at + 1) as f64);
            }
        }
        None
    }

    /// Returns true if keys that are written together lie together.
    pub(in crate::fluid) fn is_clustered(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Returns the number of all writes.
    pub(in crate::fluid) fn writes(&self) -> usize {
        self.writes
    }

    /// Returns the logical bytes of the given number of first writes.
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
    fn new(requests: Vec<Request>) -> Writes {
        let keyed =
            |(index, request): (usize, &Request)| u64::from(request.rank) << 32 | index as u64;
        let mut sorted: Vec<u64> = requests.iter().enumerate().map(keyed).collect();
        sorted.sort_unstable();
        let mut next = vec![NEVER; requests.len()];
        let mut before = vec![NEVER; requests.len()];
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
        keys.push(requests.len());
        let by_key = sorted.into_iter().map(|write| write as u32).collect();
        Writes { requests, by_key, keys, next, before }
    }

    /// Returns the write at `index`; `moments` are the moments of all writes in their cells.
    fn write(&self, index: u32, moments: &[u32]) -> CellWrite {
        let at = |index: u32| moments[index as usize];
        let before = Some(self.before[index as usize]).filter(|before| *before != NEVER);
        let next = self.next[index as usize];
        let Request { bytes, kind, .. } = self.requests[index as usize];
        CellWrite {
            at: at(index),
            before: before.map(|before| (at(before), self.requests[before as usize].kind)),
            next: if next == NEVER { NEVER } else { at(next) },
            kind,
            bytes,
        }
    }

    /// Returns what the write at `index` does to a memtable.
    fn in_memory(&self, index: usize) -> MemoryWrite {
        let before = Some(self.before[index]).filter(|before| *before != NEVER);
        let is_insert = |before: u32| self.requests[before as usize].kind == Kind::Insert;
        let Request { bytes, kind, .. } = self.requests[index];
        MemoryWrite {
            bytes,
            before,
            cancels: kind == Kind::Remove && before.is_some_and(is_insert),
        }
    }

    /// Returns the parts of the key space if they differ, and true if keys within a part do not
    /// differ further.
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
        let mut moments = vec![0; self.requests.len()];
        let cell = |keys: Range<usize>| {
            let mut numbers = self.numbers(&keys).to_vec();
            numbers.sort_unstable();
            for (at, index) in numbers.iter().enumerate() {
                moments[*index as usize] = at as u32;
            }
            let write = |index: &u32| self.write(*index, &moments);
            let writes: Vec<CellWrite> = numbers.iter().map(write).collect();
            Cell::new(Some(numbers), &writes)
        };
        (borders.into_iter().map(cell).collect(), is_even)
    }

    /// Returns the indexes of all writes to some keys.
    fn numbers(&self, keys: &Range<usize>) -> &[u32] {
        &self.by_key[self.keys[keys.start]..self.keys[keys.end]]
    }

    /// Returns true if the first writes to the keys of each of `count` parts of the key space are
    /// not in random order: if the lower half of the keys comes early, or late.
    fn is_ordered(&self, count: usize) -> bool {
        let mut squares = 0.0;
        let mut chance = 0.0;
        for keys in parts(&(0..self.keys.len() - 1), count) {
            let mut firsts: Vec<u32> =
                keys.clone().map(|key| self.by_key[self.keys[key]]).collect();
            let sorted = &mut firsts.clone();
            sorted.sort_unstable();
            let middle = sorted[sorted.len() / 2];
            let half = firsts.len() / 2;
            firsts.truncate(half);
            let early = firsts.iter().filter(|first| **first < middle).count() as f64;
            squares += (early - half as f64 / 2.0).powi(2);
            // The variance of the number of early ones among a random half.
            chance += half as f64 / 8.0;
        }
        squares / chance > UNEVEN
    }

    /// Returns how much the number of keys written in a part of time differs between the parts of
    /// each group: the variance, relative to the variance by chance.
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

    /// Returns the number of the keys that are written in each part of time.
    fn counts(&self, keys: &Range<usize>) -> [f64; EPOCHS] {
        let epoch = self.requests.len().div_ceil(EPOCHS);
        let mut counts = [0.0; EPOCHS];
        for &index in self.numbers(keys) {
            let at = index as usize / epoch;
            if self.next[index as usize] as usize >= (at + 1) * epoch {
                counts[at] += 1.0;
            }
        }
        counts
    }
}

/// Splits a range into `count` parts, as equal as possible.
fn parts(range: &Range<usize>, count: usize) -> impl Iterator<Item = Range<usize>> {
    let start = range.start;
    let len = range.len();
    let border = move |part: usize| start + part * len / count;
    (0..count).map(move |part| border(part)..border(part + 1))
}

/// Returns the action of an operation, if it writes.
fn kind(op: &Op) -> Option<Kind> {
    match op.kind {
        OpKind::Read | OpKind::Scan => None,
        // What combines make is as long as the newest operand, and no merge drops it.
        OpKind::Put | OpKind::ReadModifyWrite | OpKind::Combine => Some(Kind::Put),
        OpKind::Insert => Some(Kind::Insert),
        // Workloads with range deletes are refused.
        OpKind::Delete | OpKind::DeleteRange => Some(Kind::Delete),
        OpKind::Remove => Some(Kind::Remove),
    }
}
