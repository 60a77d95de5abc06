// Charts: axes with ticks, and what is drawn between them.

const CHART = { width: 500, height: 380, left: 62, right: 14, top: 34, bottom: 48 };

// Returns a number beside an axis. Sums of steps have rounding errors.
function tickText(value) {
  return Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 });
}

function linearTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
  const ticks = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n++) ticks.push(n * step);
  return ticks;
}

// Returns ticks of a logarithmic axis: the coarsest of three series with at least four in sight.
function logTicks(low, high, count) {
  for (const digits of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
      for (const digit of digits) ticks.push(digit * 10 ** power);
    }
    const seen = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    if (seen.length >= 4) return seen;
  }
  return linearTicks(low, high, count);
}

// Returns an axis over `values`: its range, its ticks, and the place of a value from 0 to 1.
function axis(values, options) {
  const known = values.filter((value) => Number.isFinite(value));
  const log = Boolean(options.log) && known.every((value) => value > 0) && known.length > 0;
  let low = Math.min(...known), high = Math.max(...known);
  if (known.length === 0) [low, high] = [0, 1];
  if (log) {
    [low, high] = [low / 1.15, high * 1.15];
  } else {
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    [low, high] = options.zero ? [0, high + margin] : [low - margin, high + margin];
    if (options.low !== undefined) low = Math.max(low, options.low);
  }
  const ticks = log ? logTicks(low, high, 6) : linearTicks(low, high, 6);
  const place = (value) => log
    ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return { low, high, ticks, place, label: options.label };
}

// Returns a chart with axes, and functions from values to pixels.
function chart(title, x, y, size) {
  const box = { ...CHART, ...size };
  const inner = [box.width - box.left - box.right, box.height - box.top - box.bottom];
  const toX = (value) => box.left + x.place(value) * inner[0];
  const toY = (value) => box.top + (1 - y.place(value)) * inner[1];
  const right = box.left + inner[0], bottom = box.top + inner[1];
  const text = (content, attributes) => svg("text", attributes, content);
  const root = svg("svg", {
    class: "chart", viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": title,
  });
  root.append(text(title, { x: box.left, y: 16, class: "title" }));
  for (const tick of x.ticks) {
    const at = toX(tick);
    root.append(
      svg("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: bottom }),
      text(tickText(tick), { x: at, y: bottom + 16, "text-anchor": "middle" }));
  }
  for (const tick of y.ticks) {
    const at = toY(tick);
    root.append(
      svg("line", { class: "grid", x1: box.left, x2: right, y1: at, y2: at }),
      text(tickText(tick), { x: box.left - 6, y: at + 4, "text-anchor": "end" }));
  }
  root.append(
    svg("rect", { class: "frame", x: box.left, y: box.top, width: inner[0], height: inner[1] }),
    text(x.label, { x: box.left + inner[0] / 2, y: box.height - 8, "text-anchor": "middle" }),
    text(y.label, {
      transform: `translate(14 ${box.top + inner[1] / 2}) rotate(-90)`, "text-anchor": "middle",
    }));
  return { root, toX, toY, box, right, bottom };
}

function line(points, attributes) {
  const path = points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L");
  return svg("path", { d: "M" + path, fill: "none", ...attributes });
}
