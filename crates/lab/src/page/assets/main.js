// The page: its views, and its state, which is in the address.

const VIEWS = [["costs", "Costs"], ["trees", "Trees"], ["bytes", "Bytes"], ["figures", "Figures"],
  ["about", "About"]];
const START_STATE = { view: "", group: 0, policy: -1, source: 1, a: 0, b: -1, at: null, keys: 0,
  log: 0, list: 0, speed: 16, sort: 0, all: 0 };

class App {
  constructor(content) {
    this.content = content;
    this.loaded = content.groups.map((group) =>
      group.trees.map((tree) => new TreeHistory(tree)));
    this.state = this.read();
    this.shown = null;
    this.host = el("div", { id: "view", role: "tabpanel", tabindex: -1 });
    this.tabs = el("div", { role: "tablist", "aria-label": "Views", class: "tabs",
      onkeydown: (event) => this.tabKey(event) });
    this.groups = el("p", { class: "controls" });
    document.getElementById("page").append(this.tabs, this.groups, this.host);
    addEventListener("hashchange", () => {
      if (location.hash === this.hash()) return;
      this.state = this.read();
      this.render();
    });
    this.render();
  }

  group() {
    return this.content.groups[this.state.group];
  }

  histories() {
    return this.loaded[this.state.group];
  }

  views() {
    const group = this.group();
    const has = { costs: group.costs.length > 0, trees: group.trees.length > 0,
      bytes: group.trees.length > 0, figures: group.table.rows.length > 0, about: true };
    return VIEWS.filter(([name]) => has[name]);
  }

  // Reads the state from the address. What is missing or impossible gets its default.
  read() {
    const state = { ...START_STATE };
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      if (name === "view") state.view = value;
      else if (name === "at") state.at = value.split(".").map(Number);
      else if (name in state && Number.isInteger(Number(value))) state[name] = Number(value);
    }
    const within = (value, from, end, other) => value >= from && value < end ? value : other;
    const { groups } = this.content;
    state.group = within(state.group, 0, groups.length, 0);
    const group = groups[state.group];
    state.a = within(state.a, 0, group.trees.length, 0);
    state.b = within(state.b, -1, group.trees.length, -1);
    state.policy = within(state.policy, -1, group.costs.length, -1);
    state.source = within(state.source, 0, Math.max(group.sources.length, 2), 1);
    if (!SPEEDS.includes(state.speed)) state.speed = START_STATE.speed;
    if (state.at && !(state.at.length === 2 && state.at.every(Number.isInteger))) state.at = null;
    return state;
  }

  // Returns the address of the state: what differs from the start.
  hash() {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(this.state)) {
      if (value === null || value === START_STATE[name]) continue;
      parts.set(name, name === "at" ? value.join(".") : value);
    }
    const text = parts.toString();
    return text === "" ? "" : "#" + text;
  }

  // Changes the state. A quiet change leaves it to the view to show it.
  update(changes, isQuiet) {
    const changesGroup = "group" in changes && changes.group !== this.state.group;
    Object.assign(this.state, changes);
    if (changesGroup) Object.assign(this.state, { policy: -1, a: 0, b: -1, at: null, sort: 0 });
    const hash = this.hash();
    clearTimeout(this.noting);
    // A page inside another has no address. Browsers refuse to change one many times a second.
    if (location.protocol !== "about:") {
      const note = () => history.replaceState(null, "", hash || location.pathname);
      this.noting = setTimeout(note, 100);
    }
    if (!isQuiet) this.render();
  }

  async render() {
    const views = this.views();
    const known = views.find(([name]) => name === this.state.view) || views[0];
    const turn = this.turn = (this.turn || 0) + 1;
    this.renderTabs(views, known[0]);
    this.renderGroups();
    const focused = document.activeElement && document.activeElement.id;
    const root = await this.build(known[0]);
    // A later change may have overtaken this one.
    if (turn !== this.turn) return;
    if (this.shown) this.shown.stop();
    this.shown = root.stop ? root : null;
    this.host.setAttribute("aria-labelledby", "tab-" + known[0]);
    this.host.replaceChildren(root.root || root);
    const again = focused && document.getElementById(focused);
    if (again) again.focus({ preventScroll: true });
  }

  async build(view) {
    switch (view) {
      case "costs": return costsView(this);
      case "trees": return new TreesView(this, await shownHistories(this));
      case "bytes": return bytesView(this);
      case "figures": return figuresView(this);
      default: return aboutView(this);
    }
  }

  renderTabs(views, shown) {
    this.tabs.replaceChildren(...views.map(([name, label]) => el("button", {
      id: "tab-" + name, role: "tab", "aria-selected": String(name === shown),
      "aria-controls": "view", tabindex: name === shown ? 0 : -1,
      onclick: () => this.update({ view: name }),
    }, label)));
  }

  tabKey(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const names = this.views().map(([name]) => name);
    const at = names.indexOf(document.activeElement.id.replace("tab-", ""));
    const name = names[(at + move + names.length) % names.length];
    document.getElementById("tab-" + name).focus();
    this.update({ view: name });
  }

  renderGroups() {
    const { groups } = this.content;
    const notes = this.group().notes.slice(0, 1).join(" ");
    if (groups.length < 2) {
      this.groups.replaceChildren(el("strong", {}, this.group().name), " " + notes);
      return;
    }
    const options = groups.map((group, index) =>
      el("option", { value: index, selected: index === this.state.group }, group.name));
    this.groups.replaceChildren(el("label", { for: "group" }, "Show: "), el("select", {
      id: "group", onchange: (event) => this.update({ group: Number(event.target.value) }),
    }, options), " " + notes);
  }
}

function aboutView(app) {
  const { facts, versions } = app.content;
  const rows = [...facts, ["lsmith", versions.lsmith],
    ["made on", versions.os + ", " + versions.arch]];
  return el("div", {},
    el("ul", {}, app.group().notes.map((note) => el("li", {}, note))),
    plainTable("Settings", ["setting", "value"], rows, 2),
    el("p", {}, "This page is complete in itself. Its address names what is shown: copy the "
      + "address, with the file, to share a view."),
    el("p", {}, "Keys: in the view of trees, ← and → make a step, Page Up and Page Down a flush, "
      + "Home and End go to the ends. In the row of views, ← and → choose one."));
}

new App(JSON.parse(document.getElementById("content").textContent));
