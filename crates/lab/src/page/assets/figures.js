// The view "figures": all figures, in a table that can be sorted.

function figuresView(app) {
  const { columns, rows } = app.group().table;
  const { sort, all } = app.state;
  const shown = columns.map((column, index) => index)
    .filter((index) => all === 1 || columns[index].is_main);
  const sorted = rows.slice();
  if (sort !== 0 && columns[Math.abs(sort) - 1]) {
    const at = Math.abs(sort) - 1;
    sorted.sort((a, b) => compareCells(a[at], b[at], Math.sign(sort)));
  }
  const header = shown.map((index) => {
    const column = columns[index];
    const direction = Math.abs(sort) - 1 === index ? Math.sign(sort) : 0;
    const state = { "-1": "descending", 0: "none", 1: "ascending" }[direction];
    return el("th", { scope: "col", "aria-sort": state, title: column.about || null },
      el("button", {
        id: "sort-" + index, class: "sort",
        onclick: () => app.update({ sort: direction === 1 ? -(index + 1) : index + 1 }),
      }, column.name.replace(/^engine\./, "").replaceAll("_", "_\u200b"),
      { "-1": " ▼", 0: "", 1: " ▲" }[direction]));
  });
  const isNumber = (value, index) => value === null
    ? rows.some((row) => typeof row[index] === "number") : typeof value === "number";
  const body = sorted.map((row) => el("tr", {}, shown.map((index, place) => {
    const value = row[index];
    return el(place === 0 ? "th" : "td", {
      scope: place === 0 ? "row" : null, class: isNumber(value, index) ? "number" : null,
      title: typeof value === "number" ? String(value) : null,
    }, cellText(value));
  })));
  const hidden = columns.length - columns.filter((column) => column.is_main).length;
  const toggle = hidden === 0 ? null : el("p", { class: "controls" }, el("label", {},
    el("input", {
      id: "all", type: "checkbox", checked: all === 1,
      onchange: (event) => app.update({ all: event.target.checked ? 1 : 0 }),
    }), ` all ${columns.length} columns`));
  return el("div", {}, toggle,
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures" },
      el("table", { class: "figures" },
        el("caption", {}, "Choose a column to sort by it. Numbers in full appear on hover."),
        el("thead", {}, el("tr", {}, header)), el("tbody", {}, body))),
    definitions(shown.map((index) => columns[index])));
}

// Orders cells: numbers by size, others as texts, missing ones last.
function compareCells(a, b, direction) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "number" && typeof b === "number" ? a - b
    : String(a).localeCompare(String(b), "en");
  return order * direction;
}

function cellText(value) {
  if (value === null) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  if (typeof value === "number") return short(value);
  return typeof value === "boolean" ? (value ? "yes" : "no") : value;
}

function definitions(columns) {
  const known = columns.filter((column) => column.about);
  return el("dl", { class: "small" }, known.map((column) =>
    [el("dt", {}, column.name), el("dd", {}, column.about)]));
}
