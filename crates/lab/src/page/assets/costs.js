// The view "costs": the frontier of write, read and space costs, and predictions beside them.

// What the costs count, for the titles of axes.
const COST_WORDS = {
  write_cost_system: "bytes written per byte flushed",
  write_cost_user: "bytes written per byte of keys and values",
  read_cost_mean: "runs that a lookup considers",
  space_cost_mean: "bytes held per live byte",
};

// The most policies whose names fit on a chart.
const NAMED_MAX = 16;

function costTitle(figure) {
  return (COST_WORDS[figure] ?? "cost") + " (" + figure + ")";
}

// The costs that a policy can be beaten in.
const BEATEN_IN = ["write", "read", "space"];

// Returns for each policy the index of the policy that beats it in all three costs, of several the
// one that writes least; -1 if none does. Costs that differ by less than the share `alike` count as
// equal.
function beatersOf(points, alike) {
  const beats = (a, b) => {
    const isKnown = (cost) => typeof a[cost] === "number" && typeof b[cost] === "number";
    const both = BEATEN_IN.filter(isKnown);
    return both.every((cost) => a[cost] <= b[cost] * (1 + alike))
      && both.some((cost) => a[cost] < b[cost] * (1 - alike));
  };
  return points.map((point) => points.reduce((found, other, index) => {
    if (!point || !other || !beats(other, point)) return found;
    return found < 0 || other.write < points[found].write ? index : found;
  }, -1));
}

function costsView(app) {
  const group = app.group();
  const source = Math.min(app.state.source, group.sources.length - 1);
  const chosen = app.state.policy;
  const main = group.costs.map((costs) => costs.by_source[0]);
  const beaters = beatersOf(main, group.alike ?? 0);
  const isFrontier = main.map((point, index) => point && beaters[index] < 0);
  const predicted = source > 0 ? group.costs.map((costs) => costs.by_source[source]) : [];
  const drawing = { app, group, main, predicted, beaters, isFrontier, chosen };
  return el("div", {},
    costControls(app, group, source),
    el("div", { class: "beside" },
      el("div", { class: "charts" }, writeAgainstRead(drawing), spaceAgainstWrite(drawing)),
      costLegend(drawing)),
    costTable(drawing, source),
    pausesView(group),
    courseView(group));
}

function costControls(app, group, source) {
  if (group.sources.length < 2) return null;
  const options = group.sources.slice(1).map((known, index) =>
    el("option", { value: index + 1, selected: index + 1 === source }, known.name));
  return el("p", { class: "controls" },
    el("label", { for: "source" }, "Predictions beside the " + group.sources[0].name + ": "),
    el("select", {
      id: "source", onchange: (event) => app.update({ source: Number(event.target.value) }),
    }, el("option", { value: 0, selected: source === 0 }, "none"), options));
}

function drawPoints(drawing, plot, x, y) {
  const { app, group, main, predicted, isFrontier, chosen } = drawing;
  // Policies can have one place: the chosen one is drawn above the others.
  const order = [...group.costs.keys()].sort((a, b) => (a === chosen) - (b === chosen));
  order.forEach((index) => {
    const point = main[index];
    if (!point || x(point) === null || y(point) === null) return;
    const faded = chosen >= 0 && chosen !== index;
    const at = [plot.toX(x(point)), plot.toY(y(point))];
    const other = predicted[index];
    const parts = [];
    if (other && x(other) !== null && y(other) !== null) {
      const to = [plot.toX(x(other)), plot.toY(y(other))];
      parts.push(
        line([at, to], { stroke: colourOf(index), "stroke-width": 1.5 }),
        svg("path", {
          d: markerPath(index, to[0], to[1], 6), class: "predicted", stroke: colourOf(index),
        }));
    }
    if (isFrontier[index]) {
      parts.push(svg("circle", { class: "frontier", cx: at[0], cy: at[1], r: 10 }));
    }
    parts.push(svg("path", { d: markerPath(index, at[0], at[1], 6), fill: colourOf(index) }));
    const isNamed = group.costs.length <= NAMED_MAX || chosen === index
      || group.costs[index].is_best;
    if (isNamed) parts.push(pointName(plot, group.costs[index], at));
    plot.root.append(svg("g", {
      class: faded ? "point faded" : "point",
      onclick: () => app.update({ policy: chosen === index ? -1 : index }),
    }, svg("title", {}, pointText(group, index)), parts));
  });
}

// Returns the name of a policy beside its point, on the side where there is room.
function pointName(plot, costs, [x, y]) {
  const name = costs.is_best ? "best: " + costs.name : costs.name;
  const shown = name.length > 26 ? name.slice(0, 25) + "…" : name;
  const isLeft = x > plot.box.left + (plot.right - plot.box.left) * 0.6;
  return svg("text", {
    class: "name", x: isLeft ? x - 12 : x + 12, y: y + 4, "text-anchor": isLeft ? "end" : "start",
  }, shown);
}

function pointText(group, index) {
  const costs = group.costs[index];
  const of = (point) => "write " + short(point.write) + ", read " + short(point.read)
    + ", space " + short(point.space);
  const texts = costs.by_source.map((point, source) =>
    point ? group.sources[source].name + ": " + of(point) : null);
  return [costs.name, ...texts.filter((text) => text !== null)].join("\n");
}

function valuesOf(drawing, value) {
  return [...drawing.main, ...drawing.predicted]
    .filter((point) => point).map(value).filter((value) => value !== null);
}

function writeAgainstRead(drawing) {
  const { group, main } = drawing;
  const read = (point) => point.read;
  const write = (point) => point.write;
  const x = axis(valuesOf(drawing, read), { label: costTitle("read_cost_mean"), log: true });
  const y = axis(valuesOf(drawing, write), { label: costTitle(group.write_figure), log: true });
  const plot = chart("Write cost against read cost", x, y);
  const least = group.least.filter((point) => point.read >= x.low && point.read <= x.high
    && point.write >= y.low && point.write <= y.high);
  if (least.length > 1) {
    const points = least.map((point) => [plot.toX(point.read), plot.toY(point.write)]);
    plot.root.append(line(points, { class: "least" }));
    const [at, end] = points[Math.floor(points.length / 2)];
    plot.root.append(svg("text", { class: "name", x: at + 6, y: end - 6 }, "exact optimum"));
  }
  const stairs = staircase(main.filter((point) => point), plot);
  if (stairs.length > 1) plot.root.append(line(stairs, { class: "stairs" }));
  drawPoints(drawing, plot, read, write);
  return plot.root;
}

// Returns the border of what the policies reach in write and read cost.
function staircase(points, plot) {
  const sorted = points.slice().sort((a, b) => a.read - b.read || a.write - b.write);
  const path = [];
  let least = Infinity;
  for (const point of sorted) {
    if (point.write >= least) continue;
    const x = plot.toX(point.read);
    if (path.length > 0) path.push([x, plot.toY(least)]);
    path.push([x, plot.toY(point.write)]);
    least = point.write;
  }
  return path;
}

function spaceAgainstWrite(drawing) {
  const { group, main } = drawing;
  if (!main.some((point) => point && point.space !== null)) return null;
  const write = (point) => point.write;
  const space = (point) => point.space;
  const x = axis(valuesOf(drawing, write), { label: costTitle(group.write_figure), log: true });
  const y = axis(valuesOf(drawing, space), { label: costTitle("space_cost_mean") });
  const plot = chart("Space cost against write cost", x, y);
  drawPoints(drawing, plot, write, space);
  return plot.root;
}

function costLegend({ app, group, isFrontier, chosen }) {
  const items = group.costs.map((costs, index) => el("li", {}, el("button", {
    id: "policy-" + index, class: "legend", "aria-pressed": String(chosen === index),
    onclick: () => app.update({ policy: chosen === index ? -1 : index }),
  }, marker(index), el("span", {}, costs.name,
    costs.is_best ? el("strong", {}, " best") : null,
    isFrontier[index] ? el("span", { class: "on-frontier" }, " ○ frontier") : null))));
  const swatch = (kind) => svg("svg", { width: 28, height: 10, "aria-hidden": "true" },
    line([[0, 5], [28, 5]], { class: kind }));
  const notes = [
    el("li", {}, "○ frontier: no other policy is as good in write, read and space cost."),
    el("li", {}, swatch("stairs"), " the border of what the policies reach in write and read"),
  ];
  if (group.least.length > 0) {
    notes.push(el("li", {}, swatch("least"), " the exact optimum: the least write cost at as many "
      + "runs"));
  }
  if (group.sources.length > 1) notes.push(el("li", {}, "hollow: the prediction"));
  return el("section", { class: "legend-box", "aria-label": "Policies" },
    el("ul", { class: "plain" }, items), el("ul", { class: "plain small" }, notes));
}

// Returns whether a policy is on the frontier, and if not what beats it and by how much.
function frontierText(group, main, beater, index) {
  if (!main[index]) return "–";
  if (beater < 0) return "yes";
  const differences = BEATEN_IN.map((cost) => {
    const [own, other] = [main[index][cost], main[beater][cost]];
    return typeof own === "number" && typeof other === "number" && own !== 0
      ? cost + " " + percent(other / own - 1) : null;
  });
  const known = differences.filter((text) => text !== null);
  return "no: " + group.costs[beater].name + " has " + known.join(", ");
}

function costTable({ app, group, main, beaters, chosen }, source) {
  const has = source > 0;
  const parts = [["write", "write"], ["read", "read"], ["space", "space"]];
  const header = ["policy"];
  for (const [, name] of parts) {
    header.push(name);
    if (has) header.push("predicted", "error");
  }
  const hasLeast = group.costs.some((costs) => costs.optimum);
  if (hasLeast) header.push("least write, as many runs", "above it", "above, same mean");
  header.push("on the frontier");
  const rows = group.costs.map((costs, index) => {
    const cells = [el("span", { class: chosen === index ? "chosen" : null },
      marker(index), " ", costs.name)];
    const point = main[index];
    const other = costs.by_source[source];
    for (const [part] of parts) {
      const value = point ? point[part] : null;
      cells.push(short(value));
      if (!has) continue;
      const guess = other ? other[part] : null;
      const known = value !== null && guess !== null && value !== 0;
      cells.push(short(guess), known ? percent(guess / value - 1) : "–");
    }
    const least = costs.optimum;
    const about = least && !least.is_exact ? "≥ " : "";
    if (hasLeast) {
      cells.push(least ? about + short(least.write_cost_system) : "–",
        least ? percent(least.above) : "–",
        least && least.at_mean_runs ? percent(least.at_mean_runs.above) : "–");
    }
    return [...cells, frontierText(group, main, beaters[index], index)];
  });
  const first = group.sources[0].name;
  const caption = has
    ? "Costs on the " + first + ", and as predicted: " + group.sources[source].name
    : "Costs: " + first;
  return plainTable(caption, header, rows, 1);
}
