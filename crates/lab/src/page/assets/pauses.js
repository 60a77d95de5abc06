// How long puts of free runs took: percentiles and the longest pause, beside each other.

const PAUSES = [
  ["p50", "p50", 4], ["p99", "p99", 4], ["p999", "p99.9", 4], ["max", "longest pause", 6],
];

// Returns the policies that had a free run, each with its index and the times of its puts.
function putsOf(group) {
  return group.costs.map((costs, index) => ({ costs, index, put: costs.put }))
    .filter((row) => row.put);
}

function pausesView(group) {
  const rows = putsOf(group);
  return rows.length === 0 ? null : el("div", {}, pausesChart(rows), pausesTable(rows));
}

// Returns a chart with a row per policy: from the median put to the longest.
function pausesChart(rows) {
  const micros = (nanos) => Math.max(nanos, 1) / 1000;
  const values = rows.flatMap(({ put }) => PAUSES.map(([field]) => micros(put[field])));
  const x = axis(values, { label: "time of a put, free run (microseconds)", log: true });
  const y = { ticks: [], place: (row) => 1 - (row + 0.6) / rows.length, label: "" };
  const size = { width: 680, height: 96 + 34 * rows.length, left: 16 };
  const plot = chart("How long puts took, and the longest pause", x, y, size);
  rows.forEach(({ costs, index, put }, row) => {
    const at = (field) => [plot.toX(micros(put[field])), plot.toY(row)];
    plot.root.append(
      line([at("p50"), at("max")], { stroke: colourOf(index), "stroke-width": 1.5 }),
      svg("text", { x: plot.box.left + 4, y: plot.toY(row) - 8 }, costs.name));
    PAUSES.forEach(([field, name, radius]) => {
      const [cx, cy] = at(field);
      plot.root.append(
        svg("circle", { cx, cy, r: radius, fill: colourOf(index) },
          svg("title", {}, costs.name + ": " + name + " " + short(micros(put[field])) + " µs")));
    });
  });
  return plot.root;
}

function pausesTable(rows) {
  const header = ["policy", ...PAUSES.map(([, name]) => name + ", µs"), "writers held back, s",
    "operations per second"];
  const cells = rows.map(({ costs, index, put }) => [
    el("span", {}, marker(index), " ", costs.name),
    ...PAUSES.map(([field]) => short(put[field] / 1000)),
    short(put.held_back_seconds), short(put.ops_per_second),
  ]);
  return plainTable("Puts of the free runs", header, cells, 1);
}
