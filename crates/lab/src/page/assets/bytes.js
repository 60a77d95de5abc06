// The view "bytes": why bytes were written, by level and by reason.

async function bytesView(app) {
  const histories = app.histories();
  const shown = await shownHistories(app);
  return el("div", {},
    el("p", {}, "What flushes and merges did in all, by the level that received it. "
      + "Bytes are logical: key + value + 8 per entry."),
    totalsChart(app, histories),
    el("div", { class: "trees" }, shown.map((history) => el("section", { class: "tree" },
      el("h2", {}, history.name), levelTable(history),
      history.routes.length > 0 ? causeTable(history) : null,
      history.count > 1 ? reasonTable(history) : null))));
}

// Returns a bar per tree: the bytes written to each level.
function totalsChart(app, histories) {
  const total = (history) => history.levels.reduce((sum, level) => sum + level.written, 0);
  const most = Math.max(...histories.map(total), 1);
  const bars = histories.map((history, index) => {
    const segments = [];
    const add = (kind, size, name) => {
      if (size === 0) return;
      const width = size / most * 100;
      segments.push(el("span", {
        class: "segment " + kind, style: `width:${width}%`, title: name + ": " + bytes(size),
      }));
    };
    history.levels.forEach((level, number) =>
      add("level" + (number % 6), level.written, "written to L" + number));
    return el("li", {}, el("button", {
      id: "bytes-" + index, class: "legend", "aria-pressed": String(app.state.a === index),
      onclick: () => app.update({ a: index }),
    }, history.name), el("span", { class: "stack" }, segments,
      el("span", { class: "small" }, " " + bytes(total(history)))));
  });
  const levels = Math.max(...histories.map((history) => history.levels.length), 0);
  const keys = Array.from({ length: Math.min(levels, 6) }, (_, number) => el("span", {},
    el("span", { class: "swatch level" + number }), levels > 6 ? `L${number}, L${number + 6} … `
      : `L${number} `));
  return el("section", { "aria-label": "Bytes written" },
    el("h2", {}, "Bytes written, by level"), el("p", { class: "small" }, keys),
    el("ul", { class: "plain stacks" }, bars));
}

function levelTable(history) {
  const row = (name, level) => [name, level.flushes, level.merges, level.moves,
    level.from_memory, level.read, level.written, level.reused, level.moved].map((value) =>
    typeof value === "number" ? value.toLocaleString("en") : value);
  const sum = {};
  for (const level of history.levels) {
    for (const [name, value] of Object.entries(level)) sum[name] = (sum[name] || 0) + value;
  }
  const rows = history.levels.map((level, number) => row("L" + number, level));
  if (history.levels.length > 0) rows.push(row("all", sum));
  return plainTable("By level", ["level", "flushes", "merges", "moves", "bytes from memory",
    "bytes read", "bytes written", "bytes reused", "bytes moved"], rows, 1);
}

// Returns why bytes were written. Only causes that have bytes are columns. Bytes that were not
// written are negative, so that each row sums to its last column.
function causeTable(history) {
  const causes = Object.keys(history.routes[0].causes).filter((cause) =>
    history.routes.some((route) => route.causes[cause] !== 0));
  const number = (value) => value.toLocaleString("en");
  const rows = history.routes.map((route) => [route.from + " to " + route.to,
    number(route.merges), number(route.moves),
    ...causes.map((cause) => number(route.causes[cause])), number(route.bytes_written)]);
  const sum = (of) => number(history.routes.reduce((all, route) => all + of(route), 0));
  rows.push(["all", sum((route) => route.merges), sum((route) => route.moves),
    ...causes.map((cause) => sum((route) => route.causes[cause])),
    sum((route) => route.bytes_written)]);
  return plainTable("By cause: bytes not written are negative", ["from, to", "merges", "moves",
    ...causes.map((cause) => cause.replace(/_/g, " ")), "bytes written"], rows, 1);
}

function reasonTable(history) {
  const sums = new Map();
  let all = 0;
  for (const step of history.steps(0, history.count)) {
    if (step.kind === SEAL || step.kind === START) continue;
    const key = step.level + " " + step.reason;
    const sum = sums.get(key)
      || { level: step.level, reason: step.reason, count: 0, written: 0, read: 0 };
    sum.count += 1;
    sum.written += step.written;
    sum.read += step.read;
    all += step.written;
    sums.set(key, sum);
  }
  const sorted = [...sums.values()].sort((a, b) => b.written - a.written);
  const rows = sorted.map((sum) => [
    history.reasons[sum.reason].replace(/\{\}/g, "…"), "L" + sum.level,
    sum.count.toLocaleString("en"), sum.read.toLocaleString("en"),
    sum.written.toLocaleString("en"), percent(all > 0 ? sum.written / all : 0).replace("+", "")]);
  return plainTable("By the policy's reason, most written first",
    ["reason", "into", "times", "bytes read", "bytes written", "share of written"], rows, 2);
}
