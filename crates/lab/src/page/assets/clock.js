// One clock for several trees. It ticks through the flushes; within a flush, each tree makes its
// next step at each tick, until all are at rest.

class Clock {
  constructor(histories) {
    // Policies that count in blocks seal memory more often. So the flushes are those of the tree
    // with the fewest, and other trees are matched by the bytes that came into memory.
    const fewest = histories.reduce((least, history) =>
      history.flushes.length < least.flushes.length ? history : least);
    this.flushLast = fewest.flushes.length - 1;
    this.matched = new Map(histories.map((history) => [history, matchFlushes(history, fewest)]));
    // The tick at which each flush begins, and the tick after the last.
    this.starts = [0];
    for (let flush = 0; flush <= this.flushLast; flush++) {
      const steps = histories.map((history) => this.stepsOf(history, flush));
      this.starts.push(this.starts[flush] + Math.max(...steps, 1));
    }
    this.tickLast = this.starts[this.flushLast + 1] - 1;
  }

  // Returns the number of steps of a tree in one flush. Flush 0 is what comes before the first.
  stepsOf(history, flush) {
    const { begins } = this.matched.get(history);
    return begins[flush + 1] - begins[flush];
  }

  // Returns the flush of a tick, and how many ticks of it have passed.
  place(tick) {
    let low = 0, high = this.flushLast;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= tick) low = middle;
      else high = middle - 1;
    }
    return [low, tick - this.starts[low]];
  }

  tick(flush, steps) {
    const known = Math.min(Math.max(flush, 0), this.flushLast);
    const last = this.starts[known + 1] - 1;
    return Math.min(this.starts[known] + Math.max(steps, 0), last);
  }

  // Returns how many steps of the present flush a tick stands for. The tick at which a flush begins
  // is that of its first step: the memtable is sealed. Before the first flush, only a tree that was
  // there at the start has a step.
  stepsDue(history, tick) {
    const [flush, passed] = this.place(tick);
    return passed + (flush > 0 || history.hasStart ? 1 : 0);
  }

  // Returns the number of steps that a tree has made at a tick.
  stepsAt(history, tick) {
    const [flush] = this.place(tick);
    const { begins } = this.matched.get(history);
    return begins[flush] + Math.min(this.stepsDue(history, tick), this.stepsOf(history, flush));
  }

  // Returns true if a tree waits at a tick: it has made all steps of the flush.
  isResting(history, tick) {
    return this.stepsDue(history, tick) > this.stepsOf(history, this.place(tick)[0]);
  }

  // Returns the figures of a tree at the end of each flush.
  series(history) {
    return this.matched.get(history).ends.map((own) => history.series[own]);
  }
}

// Returns the steps at which the flushes of `fewest` begin in another history, with the number of
// all steps at the end, and the last of its own flushes in each.
function matchFlushes(history, fewest) {
  const begins = [0], ends = [];
  let own = 0;
  for (let flush = 0; flush < fewest.flushes.length; flush++) {
    const isLast = flush === fewest.flushes.length - 1;
    const { flushed } = fewest.series[flush];
    const isWithin = (next) => isLast || history.series[next].flushed <= flushed;
    while (own + 1 < history.flushes.length && isWithin(own + 1)) own += 1;
    ends.push(own);
    begins.push(own + 1 < history.flushes.length ? history.flushes[own + 1] : history.count);
  }
  return { begins, ends };
}
