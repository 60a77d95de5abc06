// How fast free runs were in their course, and when writers were held back; predicted beside
// measured.

const COURSE_SIZE = { width: 560, height: 260 };

// Returns a point for each stretch between two moments: when it ended, thousands of operations per
// second in it, and the part of it, in percent, for which writers were held back.
function stretches(moments) {
  return moments.slice(1).map((moment, index) => {
    const before = moments[index];
    const seconds = Math.max(moment.seconds - before.seconds, 1e-9);
    return {
      seconds: moment.seconds,
      speed: (moment.ops - before.ops) / seconds / 1000,
      held: Math.min(100, 100 * (moment.held_back_seconds - before.held_back_seconds) / seconds),
    };
  });
}

function courseView(group) {
  const rows = group.costs.map((costs, index) => ({ costs, index }))
    .filter(({ costs }) => costs.course && costs.course.measured.length > 1);
  if (rows.length === 0) return null;
  return el("div", { id: "course" },
    el("h2", {}, "The course of the free runs"),
    el("p", {}, "Solid lines are measured on the store. Dashed lines are simulated in time, if a "
      + "machine was given."),
    rows.map((row) => el("div", { class: "charts" },
      courseChart(row, "speed", "thousands of operations per second"),
      courseChart(row, "held", "writers held back, % of the time"))));
}

function courseChart({ costs, index }, field, label) {
  const measured = stretches(costs.course.measured);
  const simulated = stretches(costs.course.simulated);
  const all = [...measured, ...simulated];
  const x = axis(all.map((point) => point.seconds), { label: "seconds", zero: true });
  const y = axis(all.map((point) => point[field]), { label, zero: true });
  const plot = chart(costs.name, x, y, COURSE_SIZE);
  const draw = (points, attributes) => {
    if (points.length === 0) return;
    const places = points.map((point) => [plot.toX(point.seconds), plot.toY(point[field])]);
    plot.root.append(line(places, { stroke: colourOf(index), "stroke-width": 1.5, ...attributes }));
  };
  draw(measured, { class: "measured" });
  draw(simulated, { class: "simulated", "stroke-dasharray": "5 4" });
  return plot.root;
}
