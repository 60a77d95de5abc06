// One clock for several trees. It ticks through the flushes; within a flush, each tree makes its
// next step at each tick, until all are at rest.

class Clock {
  constructor(histories) {
    this.histories = histories;
    const flushCount = Math.max(...histories.map((history) => history.flushes.length));
    // The tick at which each flush begins, and the tick after the last.
    this.starts = [0];
    for (let flush = 0; flush < flushCount; flush++) {
      const steps = histories.map((history) => stepsOf(history, flush));
      this.starts.push(this.starts[flush] + Math.max(...steps, flush === 0 ? 1 : 0));
    }
    this.flushLast = flushCount - 1;
    this.tickLast = this.starts[flushCount] - 1;
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

  // Returns the number of steps that a tree has made at a tick.
  stepsAt(history, tick) {
    const [flush, passed] = this.place(tick);
    if (flush >= history.flushes.length) return history.count;
    // The tick at which a flush begins is that of its first step: the memtable is sealed.
    const first = flush === 0 ? 0 : 1;
    return history.flushes[flush] + Math.min(passed + first, stepsOf(history, flush));
  }
}

// Returns the number of steps of a history in one flush. Flush 0 is what comes before the first.
function stepsOf(history, flush) {
  if (flush >= history.flushes.length) return 0;
  const end = flush + 1 < history.flushes.length ? history.flushes[flush + 1] : history.count;
  return end - history.flushes[flush];
}
