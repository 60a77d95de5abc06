// The view "trees": one or two trees on one clock, as bars by level and age.

const BAR = { label: 128, width: 512, height: 13, gap: 3 };
// The most runs that are drawn, and that are listed.
const RUNS_DRAWN = 150;
const RUNS_LISTED = 1000;
const SPEEDS = [1, 4, 16, 64, 256, 1024];

// Returns the histories that are shown: one or two.
async function shownHistories(app) {
  const { a, b } = app.state;
  const histories = app.histories();
  const chosen = [histories[a], b >= 0 && b !== a ? histories[b] : null];
  return Promise.all(chosen.filter((history) => history).map((history) => history.load()));
}

class TreesView {
  constructor(app, histories) {
    this.app = app;
    this.histories = histories;
    this.clock = new Clock(histories);
    this.timer = null;
    this.tick = this.clock.tick(...(app.state.at || [this.clock.flushLast, Infinity]));
    this.build();
    this.refresh();
  }

  build() {
    const { app } = this;
    const isStill = this.clock.tickLast === 0;
    this.slider = el("input", {
      id: "clock", type: "range", min: 0, max: this.clock.tickLast, value: this.tick,
      "aria-label": "Clock", oninput: (event) => this.go(Number(event.target.value)),
    });
    this.status = el("output", { id: "place", for: "clock" });
    this.player = el("button", {
      id: "play", "aria-pressed": "false", onclick: () => this.play(this.timer === null),
    }, "Play");
    const button = (id, label, title, move) =>
      el("button", { id, title, "aria-label": title, onclick: () => this.move(move) }, label);
    const speeds = SPEEDS.map((speed) =>
      el("option", { value: speed, selected: speed === app.state.speed }, speed + " steps/s"));
    const transport = el("div", { class: "controls", role: "group", "aria-label": "Clock" },
      button("first", "|‹", "To the first step", "first"),
      button("flush-back", "«", "One flush back", "flush-back"),
      button("back", "‹", "One step back", "back"),
      this.player,
      button("next", "›", "One step on", "next"),
      button("flush-next", "»", "One flush on", "flush-next"),
      button("last", "›|", "To the last step", "last"),
      el("select", {
        id: "speed", "aria-label": "Speed",
        onchange: (event) => app.update({ speed: Number(event.target.value) }, true),
      }, speeds),
      this.status);
    this.panels = this.histories.map((history, index) => this.panel(history, index));
    this.series = el("div", { class: "charts" });
    this.root = el("div", { onkeydown: (event) => this.key(event) },
      this.choices(),
      isStill ? null : transport,
      isStill ? null : this.slider,
      el("div", { class: "trees" }, this.panels.map((panel) => panel.root)),
      isStill ? null : this.series);
  }

  choices() {
    const { app } = this;
    const histories = app.histories();
    const option = (chosen) => (history, index) =>
      el("option", { value: index, selected: index === chosen }, history.name);
    const select = (id, chosen, first) => el("select", {
      id, onchange: (event) => app.update({ [id]: Number(event.target.value) }),
    }, first, histories.map(option(chosen)));
    const none = el("option", { value: -1, selected: app.state.b < 0 }, "none");
    const parts = histories.length < 2 ? [] : [
      el("label", { for: "a" }, "Tree: "), select("a", app.state.a, null),
      el("label", { for: "b" }, " beside: "), select("b", app.state.b, none)];
    const check = (id, label, isOn) => el("label", {},
      el("input", {
        id, type: "checkbox", checked: isOn,
        onchange: (event) => {
          app.update({ [id]: event.target.checked ? 1 : 0 }, true);
          this.refresh();
        },
      }), " " + label);
    if (this.histories.some((history) => history.hasKeys)) {
      parts.push(check("keys", "align to the key space", app.state.keys === 1));
    }
    parts.push(check("log", "logarithmic sizes", app.state.log === 1));
    return el("p", { class: "controls" }, parts);
  }

  panel(history, index) {
    const drawing = el("div", { class: "drawing" });
    const step = el("p", { class: "step", "aria-live": "polite" });
    const list = el("div", {});
    const details = el("details", { open: this.app.state.list === 1,
      ontoggle: (event) => {
        this.app.update({ list: event.target.open ? 1 : 0 }, true);
        this.refresh();
      } }, el("summary", {}, "The runs as a table"), list);
    const root = el("section", { class: "tree", "aria-label": "Tree of " + history.name },
      el("h2", {}, history.name), el("p", { class: "small" }, history.source), step, drawing,
      details);
    return { root, drawing, step, list, details, index };
  }

  // Shows the trees at the present tick.
  refresh() {
    const [flush, steps] = this.clock.place(this.tick);
    this.slider.value = this.tick;
    const place = `flush ${flush} of ${this.clock.flushLast}, step ${steps}`;
    this.slider.setAttribute("aria-valuetext", place);
    this.status.textContent = place;
    const sizeMax = Math.max(...this.histories.map((history) => history.runBytesMax));
    this.histories.forEach((history, index) => {
      const { tree, step } = history.at(this.clock.stepsAt(history, this.tick));
      const panel = this.panels[index];
      const isResting = this.clock.isResting(history, this.tick);
      panel.step.textContent = stepText(history, tree, step, isResting);
      const drawn = drawTree(tree, step, sizeMax, this.app.state, history.hasKeys);
      panel.drawing.replaceChildren(drawn);
      panel.list.replaceChildren(panel.details.open ? runTable(history, tree) : "");
    });
    if (this.timer === null) this.series.replaceChildren(...this.overTime(flush));
  }

  // Moves the clock, and notes it in the address.
  go(tick) {
    this.tick = Math.min(Math.max(tick, 0), this.clock.tickLast);
    this.app.update({ at: this.clock.place(this.tick) }, true);
    this.refresh();
  }

  move(how) {
    const [flush, steps] = this.clock.place(this.tick);
    const { clock } = this;
    switch (how) {
      case "first": return this.go(0);
      case "last": return this.go(clock.tickLast);
      case "back": return this.go(this.tick - 1);
      case "next": return this.go(this.tick + 1);
      case "flush-back": return this.go(clock.tick(steps > 0 ? flush : flush - 1, 0));
      default: return this.go(flush < clock.flushLast ? clock.tick(flush + 1, 0) : clock.tickLast);
    }
  }

  key(event) {
    if (["SELECT", "INPUT"].includes(event.target.tagName) || event.altKey || event.ctrlKey) return;
    const moves = { ArrowLeft: "back", ArrowRight: "next", PageUp: "flush-back",
      PageDown: "flush-next", Home: "first", End: "last" };
    if (!moves[event.key]) return;
    event.preventDefault();
    this.move(moves[event.key]);
  }

  play(isOn) {
    clearInterval(this.timer);
    this.timer = null;
    this.player.setAttribute("aria-pressed", String(isOn));
    this.player.textContent = isOn ? "Pause" : "Play";
    if (!isOn) {
      this.go(this.tick);
      return;
    }
    if (this.tick === this.clock.tickLast) this.tick = 0;
    const began = { time: performance.now(), tick: this.tick, speed: this.app.state.speed };
    this.timer = setInterval(() => {
      const { speed } = this.app.state;
      if (speed !== began.speed) {
        Object.assign(began, { time: performance.now(), tick: this.tick, speed });
      }
      const passed = Math.floor((performance.now() - began.time) / 1000 * speed);
      this.tick = Math.min(began.tick + passed, this.clock.tickLast);
      this.refresh();
      if (this.tick === this.clock.tickLast) this.play(false);
    }, 50);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
  }

  // Returns two charts over the flushes, with a line at the present one.
  overTime(flush) {
    const cost = (end) => end.flushed > 0 ? end.written / end.flushed : 0;
    const charts = [["Runs on storage after each flush", (end) => end.runs, "runs"],
      ["Bytes written so far, per byte flushed", cost, "bytes per byte"]];
    return charts.map(([title, value, label]) => {
      const values = this.histories.map((history) => this.clock.series(history).map(value));
      const x = axis([0, this.clock.flushLast], { label: "flush", low: 0 });
      const y = axis(values.flatMap(thinned), { label, zero: true });
      const plot = chart(title, x, y, { height: 220 });
      plot.root.append(svg("line", {
        class: "cursor", x1: plot.toX(flush), x2: plot.toX(flush), y1: plot.box.top, y2: plot.bottom,
      }));
      values.forEach((series, index) => {
        const step = Math.ceil(series.length / 2000);
        const points = series.map((value, at) => [plot.toX(at), plot.toY(value)])
          .filter((_, at) => at % step === 0);
        plot.root.append(line(points, { class: "series series" + index }));
      });
      const now = (series) => short(series[Math.min(flush, series.length - 1)]);
      const names = values.map((series, index) => el("span", { class: "key" },
        svg("svg", { width: 28, height: 10, "aria-hidden": "true" },
          line([[0, 5], [28, 5]], { class: "series series" + index })),
        ` ${this.histories[index].name}: ${now(series)}`));
      return el("figure", {}, plot.root, el("figcaption", { class: "small" },
        `After flush ${flush}: `, names));
    });
  }
}

// Returns at most 2000 of the values, the greatest among them.
function thinned(values) {
  const step = Math.ceil(values.length / 2000);
  const greatest = values.reduce((most, value) => Math.max(most, value), 0);
  return [greatest, ...values.filter((_, index) => index % step === 0)];
}

function levelName(row) {
  return row === 0 ? "memory" : "L" + (row - 1);
}

function counted(count, noun) {
  return count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");
}

// Returns a sentence about a step.
function stepText(history, tree, step, isResting) {
  const state = `${counted(tree.runCount(), "run")}, ${bytes(tree.bytes())} on storage. `;
  if (step.kind === null || step.kind === START) return state;
  if (isResting) return state + "At rest.";
  if (step.kind === SEAL) {
    return state + `A memtable of ${bytes(sealedBytes(step))} was sealed.`;
  }
  const parts = [["took", step.fromMemory, " from memory"], ["read", step.read, ""],
    ["wrote", step.written, ""], ["reused", step.reused, ""], ["moved", step.moved, ""]];
  const said = parts.filter(([, size]) => size > 0)
    .map(([verb, size, where]) => `${verb} ${bytes(size)}${where}`);
  const names = { [FLUSH]: "Flush to", [MERGE]: "Merge into", [MOVE]: "Move to" };
  const did = `${names[step.kind]} L${step.level}: ${said.join(", ") || "nothing was written"}`;
  return `${state}${did} (${history.reasonOf(step)}).`;
}

// Returns a drawing of the tree: a bar per run, the newest at the top.
function drawTree(tree, step, sizeMax, state, hasKeys) {
  const runCount = tree.rows.reduce((sum, runs) => sum + runs.length, 0);
  const drawn = Math.min(runCount, RUNS_DRAWN);
  const height = drawn > 60 ? 5 : BAR.height;
  const gap = drawn > 60 ? 1 : BAR.gap;
  // What was there at the start is not new.
  const news = step.kind === START ? [] : step.changed;
  const changed = new Map(news.map((change) => [change.run.name, change]));
  const byKeys = state.keys === 1 && hasKeys;
  const groups = [];
  let y = 4, left = RUNS_DRAWN;
  tree.rows.forEach((runs, row) => {
    if (runs.length === 0 || left === 0) return;
    const top = y;
    const bars = [];
    for (const run of runs.slice(0, left)) {
      bars.push(bar(run, y, height, { byKeys, sizeMax, log: state.log === 1,
        change: changed.get(run.name) }));
      y += height + gap;
    }
    left -= Math.min(left, runs.length);
    y = Math.max(y, top + 16);
    const size = runs.reduce((sum, run) => sum + run.bytes, 0);
    const label = svg("text", { x: BAR.label - 8, y: top + 11, "text-anchor": "end" },
      levelName(row) + " · " + bytes(size));
    groups.push(svg("g", {}, svg("title", {}, `${levelName(row)}: ${counted(runs.length, "run")}, `
      + bytes(size)), label, bars));
    groups.push(svg("line", { class: "grid", x1: 0, x2: BAR.label + BAR.width, y1: y, y2: y }));
    y += 6;
  });
  if (runCount > drawn) {
    groups.push(svg("text", { x: BAR.label, y: y + 12 }, `and ${runCount - drawn} older runs`));
    y += 18;
  }
  if (runCount === 0) {
    groups.push(svg("text", { x: BAR.label, y: 16 }, "The tree is empty."));
    y = 24;
  }
  const place = byKeys ? "across the key space" : "by size";
  return svg("svg", {
    class: "bars", viewBox: `0 0 ${BAR.label + BAR.width + 4} ${y}`, role: "img",
    "aria-label": `${counted(runCount, "run")} ${place}; the table below lists them`,
  }, groups);
}

// Returns the bar of one run.
function bar(run, y, height, { byKeys, sizeMax, log, change }) {
  const share = log ? Math.log2(1 + run.bytes / 1024) / Math.log2(1 + sizeMax / 1024)
    : run.bytes / sizeMax;
  const title = svg("title", {}, `r${run.name}: ${bytes(run.bytes)}, ${counted(run.slices, "slice")}`);
  if (!byKeys) {
    const width = Math.max(share * BAR.width, 1.5);
    const rect = svg("rect", { class: change ? "run new" : "run", x: BAR.label, y, width, height });
    const room = BAR.width - width > 90;
    const text = height < 10 ? null : svg("text", {
      class: room ? "size" : "size inside", y: y + height - 3,
      x: room ? BAR.label + width + 5 : BAR.label + width - 5, "text-anchor": room ? "start" : "end",
    }, bytes(run.bytes));
    return svg("g", {}, title, rect, text);
  }
  const back = svg("rect", { class: "space", x: BAR.label, y, width: BAR.width, height });
  const fresh = new Set(change ? change.pieces : []);
  const old = run.pieces.filter((piece) => !fresh.has(piece));
  return svg("g", {}, title, back, pieces(old, y, height, "run"),
    pieces([...fresh], y, height, "run new"));
}

// Returns pieces of a run at their places in the key space. The denser, the darker.
function pieces(list, y, height, kind) {
  const density = (piece) => piece.bytes / Math.max(piece.end - piece.start, 0.5);
  const densest = list.reduce((most, piece) => Math.max(most, density(piece)), 0);
  const shades = ["", "", "", ""];
  for (const piece of list) {
    const x = BAR.label + piece.start / PLACES * BAR.width;
    const width = Math.max((piece.end - piece.start) / PLACES * BAR.width, 0.6);
    const edge = width > 3 ? 0.4 : 0;
    const shade = Math.min(Math.floor(density(piece) / densest * 4), 3);
    shades[shade] += `M${(x + edge).toFixed(1)} ${y}h${(width - edge).toFixed(1)}v${height}`
      + `h${(edge - width).toFixed(1)}z`;
  }
  return shades.map((path, shade) => path === "" ? null
    : svg("path", { class: kind, d: path, "fill-opacity": 0.4 + 0.2 * shade }));
}

function runTable(history, tree) {
  const rows = [];
  tree.rows.forEach((runs, row) => runs.forEach((run) => {
    const keys = run.pieces.length === 0 ? [0, 0]
      : [run.pieces[0].start / PLACES, run.pieces[run.pieces.length - 1].end / PLACES];
    if (rows.length < RUNS_LISTED) {
      rows.push([levelName(row), "r" + run.name, run.bytes.toLocaleString("en"),
        String(run.slices), ...keys.map((key) => (key * 100).toFixed(1) + " %")]);
    }
  }));
  return plainTable("Runs of " + history.name + ", newest first",
    ["level", "run", "logical bytes", "slices", "keys from", "to"], rows, 2);
}
