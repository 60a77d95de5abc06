// Histories: trees, decoded step by step. The format is that of `History` in `history.rs`.

const PLACES = 4096;
const SEAL = 0, FLUSH = 1, MERGE = 2, MOVE = 3, START = 4;

async function inflated(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Reads numbers of variable length. They can exceed 32 bits, so shifts will not do.
class Reader {
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  next() {
    let number = 0;
    let unit = 1;
    for (;;) {
      const byte = this.data[this.at++];
      number += (byte & 127) * unit;
      if (byte < 128) return number;
      unit *= 128;
    }
  }
}

// A tree: rows of runs, newest first. Row 0 is memory, row 1 + n is level n. Runs are never
// changed, so that copies of a tree share them.
class Tree {
  constructor(rows) {
    this.rows = rows.map((runs) => runs.slice());
  }

  runs() {
    return this.rows.flat();
  }

  runCount() {
    return this.rows.slice(1).reduce((sum, runs) => sum + runs.length, 0);
  }

  bytes() {
    const sum = (runs) => runs.reduce((sum, run) => sum + run.bytes, 0);
    return this.rows.slice(1).reduce((all, runs) => all + sum(runs), 0);
  }

  find(name) {
    for (let row = 0; row < this.rows.length; row++) {
      const index = this.rows[row].findIndex((run) => run.name === name);
      if (index >= 0) return [row, index];
    }
    throw new Error("the history names a run that is not there: " + name);
  }
}

// Reads what a step did, without the runs that it changed.
function readHead(reader, reasons) {
  const step = { kind: reader.next() };
  if (step.kind >= FLUSH && step.kind <= MOVE) {
    step.level = reader.next();
    step.reason = reader.next();
    const count = Math.min(reasons[step.reason].split("{}").length - 1, 3);
    step.numbers = Array.from({ length: count }, () => reader.next());
    for (const part of ["fromMemory", "read", "written", "reused", "moved"]) {
      step[part] = reader.next();
    }
  }
  return step;
}

// Reads one step and applies it to the tree. Returns what the step did.
function applyStep(reader, tree, reasons) {
  const step = { ...readHead(reader, reasons), changed: [], removed: [] };
  for (let count = reader.next(); count > 0; count--) {
    const name = reader.next();
    const [row, index] = tree.find(name);
    step.removed.push(tree.rows[row][index]);
    tree.rows[row].splice(index, 1);
  }
  for (let count = reader.next(); count > 0; count--) changeRun(reader, tree, step);
  return step;
}

function changeRun(reader, tree, step) {
  const name = reader.next();
  const place = reader.next();
  let row, index, old;
  if (place === 0) {
    [row, index] = tree.find(name);
    old = tree.rows[row][index];
  } else {
    row = place - 1;
    index = reader.next();
    while (tree.rows.length <= row) tree.rows.push([]);
  }
  const slices = reader.next();
  const at = reader.next();
  const gone = reader.next();
  const inserted = [];
  const before = old ? old.pieces : [];
  let end = at === 0 ? 0 : before[at - 1].end;
  for (let count = reader.next(); count > 0; count--) {
    const start = end + reader.next();
    end = start + reader.next();
    inserted.push({ start, end, bytes: reader.next() });
  }
  const pieces = [...before.slice(0, at), ...inserted, ...before.slice(at + gone)];
  const sum = (list) => list.reduce((bytes, piece) => bytes + piece.bytes, 0);
  const size = (old ? old.bytes - sum(before.slice(at, at + gone)) : 0) + sum(inserted);
  const run = { name, slices, pieces, bytes: size };
  tree.rows[row].splice(index, old ? 1 : 0, run);
  step.changed.push({ run, new: !old, pieces: inserted });
}

// Returns the bytes that came into memory. A policy that counts in blocks leaves a part of memory
// in place; what is sealed then replaces it.
function sealedBytes(step) {
  const bytes = (sum, run) => sum + run.bytes;
  const replaced = step.removed.reduce(bytes, 0);
  return Math.max(step.changed.map(({ run }) => run).reduce(bytes, 0) - replaced, 0);
}

// All trees of one policy. `load` reads the steps once; then `at(step)` returns the tree after any
// step, from the nearest copy kept before it.
class TreeHistory {
  constructor(stored) {
    this.name = stored.name;
    this.source = stored.source;
    this.reasons = stored.reasons;
    this.levels = stored.levels;
    this.routes = stored.routes;
    this.hasKeys = stored.has_keys;
    this.count = stored.step_count;
    this.stored = stored;
  }

  async load() {
    if (!this.loading) this.loading = this.readAll();
    await this.loading;
    return this;
  }

  async readAll() {
    this.data = await inflated(this.stored.steps);
    this.hasStart = this.data[0] === START;
    const reader = new Reader(this.data);
    const tree = new Tree([]);
    // The byte at which each step begins, and the step with which each flush begins.
    this.offsets = new Float64Array(this.count + 1);
    this.flushes = [0];
    this.copies = [{ step: 0, tree: new Tree([]) }];
    // At the end of each flush: runs, bytes held, bytes written and flushed so far.
    this.series = [];
    this.runBytesMax = 1;
    let written = 0, flushed = 0, sinceCopy = 0;
    for (let index = 0; index < this.count; index++) {
      this.offsets[index] = reader.at;
      if (this.data[reader.at] === SEAL) {
        this.endFlush(tree, written, flushed);
        this.flushes.push(index);
      }
      const step = applyStep(reader, tree, this.reasons);
      // As write_cost_system: a memtable that is merged straight in counts as flushed first.
      written += (step.written || 0) + (step.kind === MERGE ? step.fromMemory : 0);
      if (step.kind === SEAL) flushed += sealedBytes(step);
      for (const { run } of step.changed) this.runBytesMax = Math.max(this.runBytesMax, run.bytes);
      sinceCopy += 1;
      if (sinceCopy >= 256 + tree.runCount()) {
        this.copies.push({ step: index + 1, tree: new Tree(tree.rows) });
        sinceCopy = 0;
      }
    }
    this.offsets[this.count] = reader.at;
    this.endFlush(tree, written, flushed);
    this.last = { index: this.count, tree, step: null };
  }

  endFlush(tree, written, flushed) {
    const runs = tree.runCount();
    this.series.push({ runs, bytes: tree.bytes(), written, flushed });
  }

  // Returns the tree after the first `index` steps, and the last of these steps.
  at(index) {
    if (this.last.index === index && this.last.step !== null) return this.last;
    let from = this.copies.findLast((copy) => copy.step < index) || this.copies[0];
    let tree = new Tree(from.tree.rows);
    let next = from.step;
    // Stepping forward goes on from the tree that was shown last.
    if (this.last.index < index && this.last.index >= next) {
      tree = this.last.tree;
      next = this.last.index;
    }
    const reader = new Reader(this.data);
    let step = { kind: null, changed: [], removed: [] };
    for (; next < index; next++) {
      reader.at = this.offsets[next];
      step = applyStep(reader, tree, this.reasons);
    }
    this.last = { index, tree, step };
    return this.last;
  }

  // Reads what the steps from `first` up to `end` did.
  *steps(first, end) {
    const reader = new Reader(this.data);
    for (let index = first; index < end; index++) {
      reader.at = this.offsets[index];
      yield readHead(reader, this.reasons);
    }
  }

  reasonOf(step) {
    const numbers = step.numbers.slice();
    return this.reasons[step.reason].replace(/\{\}/g, () => String(numbers.shift() ?? 0));
  }
}
