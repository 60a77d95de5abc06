// Elements, numbers as text, colours.

const SVG = "http://www.w3.org/2000/svg";

// Returns a new element. Children are elements or texts; texts are never read as HTML.
function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

// Returns a number with three significant digits.
function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(2);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size === 0) return "0";
  return size >= 0.01 ? value.toFixed(2) : value.toPrecision(2);
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return (unit === 0 ? String(size) : size.toFixed(size < 100 ? 1 : 0)) + " " + units[unit];
}

// Returns a relative error in percent, with its sign.
function percent(part) {
  if (part === null || part === undefined || !Number.isFinite(part)) return "–";
  const value = (part * 100).toFixed(1);
  return (part >= 0 && !value.startsWith("-") ? "+" : "") + value.replace("-0.0", "+0.0") + " %";
}

// Colours that colour-blind readers can tell apart (Okabe and Ito), and shapes. A policy's colour
// and shape follow from its index; up to 56 policies differ.
const COLOURS = 8;
const SHAPES = ["circle", "square", "triangle", "diamond", "down", "plus", "cross"];

function colourOf(index) {
  return "var(--curve" + (index % COLOURS) + ")";
}

function shapeOf(index) {
  return SHAPES[Math.floor(index / COLOURS + index) % SHAPES.length];
}

// Returns the path of a policy's marker around a point.
function markerPath(index, x, y, size) {
  const r = size;
  const at = (dx, dy) => (x + dx * r).toFixed(1) + " " + (y + dy * r).toFixed(1);
  const polygon = (points) => "M" + points.map(([dx, dy]) => at(dx, dy)).join("L") + "Z";
  switch (shapeOf(index)) {
    case "square": return polygon([[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]);
    case "triangle": return polygon([[0, -1.2], [1.1, 0.8], [-1.1, 0.8]]);
    case "diamond": return polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]);
    case "down": return polygon([[0, 1.2], [1.1, -0.8], [-1.1, -0.8]]);
    case "plus": return polygon([[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4],
      [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]]);
    case "cross": return polygon([[0, -0.5], [0.7, -1.2], [1.2, -0.7], [0.5, 0], [1.2, 0.7],
      [0.7, 1.2], [0, 0.5], [-0.7, 1.2], [-1.2, 0.7], [-0.5, 0], [-1.2, -0.7], [-0.7, -1.2]]);
    default: return "M" + at(-1, 0) + "a" + [r, r, 0, 1, 0, 2 * r, 0].join(" ")
      + "a" + [r, r, 0, 1, 0, -2 * r, 0].join(" ") + "Z";
  }
}

// Returns a small drawing of a policy's marker.
function marker(index) {
  const path = svg("path", { d: markerPath(index, 8, 8, 5), fill: colourOf(index) });
  return svg("svg", { width: 16, height: 16, "aria-hidden": "true" }, path);
}

// Returns a table. Cells are texts or elements; columns from `numbersFrom` on hold numbers.
function plainTable(caption, header, rows, numbersFrom) {
  const cell = (name) => (content, index) => {
    const isName = name === "td" && index === 0;
    return el(isName ? "th" : name, {
      scope: isName ? "row" : name === "th" ? "col" : null,
      class: index >= numbersFrom ? "number" : null,
    }, content);
  };
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, header.map(cell("th")))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))))));
}
