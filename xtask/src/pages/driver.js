// Uses a page as a person does, and writes what it found to the end of the page. The page's own
// scripts have run before.

(async () => {
  const failures = [];
  let checks = 0;
  const check = (what, isTrue) => {
    checks += 1;
    if (!isTrue) failures.push(what);
  };
  const find = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => all(selector).map((element) => element.textContent).join("\n");
  const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
  // Waits until something is true: views with trees are made in the background.
  const until = async (what, isTrue) => {
    for (let turn = 0; turn < 100 && !isTrue(); turn++) await sleep(50);
    check(what, isTrue());
  };
  const click = (id) => {
    check("there is #" + id, find(id) !== null);
    find(id)?.focus();
    find(id)?.click();
  };
  const choose = (id, value) => {
    check("there is #" + id, find(id) !== null);
    find(id).value = value;
    find(id).dispatchEvent(new Event("change", { bubbles: true }));
  };
  const press = (key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const isShown = (view) => () => find("tab-" + view)?.getAttribute("aria-selected") === "true"
    && find("view").getAttribute("aria-labelledby") === "tab-" + view;

  const content = JSON.parse(find("content").textContent);
  const group = content.groups[0];

  const useCosts = async () => {
    click("tab-costs");
    await until("the costs are shown", isShown("costs"));
    check("each policy is in the legend", all("button.legend").length === group.costs.length);
    const rows = all("#view tbody tr");
    check("each policy has a row", rows.length === group.costs.length);
    group.costs.forEach((costs, index) => {
      check("the row names " + costs.name, rows[index].textContent.includes(costs.name));
      const write = costs.by_source[0].write;
      check("the row has its write cost", Math.abs(Number(
        rows[index].children[1].textContent.replaceAll(",", "")) - write) <= write * 0.006);
    });
    check("each policy is in the first chart",
      all(".chart")[0].querySelectorAll(".point").length === group.costs.length);
    check("the exact optimum is drawn", group.least.length === 0
      || all("path.least").length > 0);
    click("policy-0");
    await until("the others fade", () => find("policy-0").getAttribute("aria-pressed") === "true"
      && all(".faded").length >= group.costs.length - 1);
    check("the focus stays", document.activeElement.id === "policy-0");
    check("the row is marked", text(".chosen").includes(group.costs[0].name));
    if (group.sources.length > 1) {
      choose("source", 3);
      await until("the fluid simulation is shown", () =>
        text("#view caption").includes(group.sources[3].name));
      choose("source", 0);
      await until("no prediction is shown", () => all(".predicted").length === 0);
    }
    await until("the address has the choice", () => location.hash.includes("policy=0"));
  };

  const useTrees = async () => {
    click("tab-trees");
    await until("the trees are shown", () => isShown("trees")() && all(".bars").length === 1);
    if (group.trees[0].step_count < 2) {
      check("a tree at one moment has no clock", find("clock") === null);
      check("its runs are drawn", all("rect.run").length > 0 && all("rect.new").length === 0);
      const written = group.trees[0].levels.some((level) => level.written > 0);
      check("it is not empty", written && !text(".step").startsWith("0 runs"));
      return;
    }
    click("first");
    check("the clock begins", find("place").textContent.startsWith("flush 0 "));
    check("the tree is empty", text(".bars").includes("The tree is empty"));
    click("next");
    check("a memtable is sealed", text(".step").includes("was sealed"));
    check("it is drawn as new", all("rect.new").length === 1);
    click("next");
    check("a flush or merge follows", /(Flush|Merge|Move) (in)?to L\d/.test(text(".step")));
    click("back");
    check("a step back", text(".step").includes("was sealed"));
    click("flush-next");
    check("a flush on", find("place").textContent.startsWith("flush 2 "));
    find("play").focus();
    press("PageUp");
    check("a flush back by key", find("place").textContent.startsWith("flush 1 "));
    press("End");
    const runs = Number(/^(\d+) runs/.exec(text(".step"))?.[1]);
    check("the clock ends", find("clock").value === find("clock").max && runs > 0);
    all("details")[0].open = true;
    await until("the runs are listed", () => all("details tbody tr").length === runs);
    await until("the address has the clock", () => location.hash.includes("at="));
    const byStep = text(".step");
    // All steps one by one lead to the same tree as going to its end.
    click("first");
    for (let tick = Number(find("clock").max); tick > 0; tick--) click("next");
    check("all steps lead to the end", text(".step") === byStep);
    if (find("keys")) {
      click("keys");
      check("runs lie in the key space", all("rect.space").length >= runs);
      click("keys");
    }
    click("log");
    check("sizes are logarithmic", find("log").checked);
    click("first");
    choose("speed", 1024);
    click("play");
    check("it plays", find("play").textContent === "Pause");
    await until("it plays to the end", () => find("clock").value === find("clock").max
      && find("play").textContent === "Play");
    if (find("b")) {
      choose("b", 1);
      await until("two trees are shown", () => all(".bars").length === 2);
      click("first");
      click("next");
      check("both take the step", all(".step").every((step) =>
        step.textContent.includes("was sealed")));
    }
  };

  const useBytes = async () => {
    click("tab-bytes");
    await until("the bytes are shown", () => isShown("bytes")() && all(".stacks li").length > 0);
    check("each tree has a bar", all(".stacks li").length === group.trees.length);
    const shown = text("#view tbody");
    const level = group.trees[0].levels.find((level) => level.written > 0);
    check("bytes are in the table", shown.includes(level.written.toLocaleString("en")));
    for (const route of group.trees[0].routes) {
      check("each route has its causes", all("tbody tr").some((row) =>
        row.children[0].textContent === route.from + " to " + route.to
        && row.textContent.endsWith(route.bytes_written.toLocaleString("en"))));
    }
    if (group.trees.length > 1) {
      click("bytes-1");
      await until("another tree is chosen", () => text("#view h2").includes(group.trees[1].name));
    }
  };

  const useFigures = async () => {
    click("tab-figures");
    await until("the figures are shown", isShown("figures"));
    const rows = () => all("table.figures tbody tr").map((row) => row.children[0].textContent);
    check("each row is there", rows().length === group.table.rows.length);
    if (rows().length > 1) {
      click("sort-0");
      await until("it is sorted", () => text("[aria-sort=ascending]") !== "");
      const sorted = rows();
      check("names ascend", sorted.every((name, at) => at === 0
        || sorted[at - 1].localeCompare(name, "en") <= 0));
      click("sort-0");
      const backwards = sorted.slice().reverse().join();
      await until("it is sorted backwards", () => rows().join() === backwards);
      check("the focus stays", document.activeElement.id === "sort-0");
    }
    if (find("all")) {
      click("all");
      await until("all columns are shown", () =>
        all("table.figures thead th").length === group.table.columns.length);
    }
  };

  const useAddress = async () => {
    location.hash = "#view=about";
    await until("an address is followed", isShown("about"));
    check("the command is shown", text("#view").includes(content.facts[0][1]));
    location.hash = "#view=nothing&group=99&a=-5&at=x.y&policy=1000&speed=3&source=-1";
    await until("a senseless address shows the first view", () =>
      find("view").getAttribute("aria-labelledby") === all("[role=tab]")[0].id);
    find(all("[role=tab]")[0].id).focus();
    press("ArrowRight");
    await until("an arrow key changes the view", () =>
      all("[role=tab]")[1].getAttribute("aria-selected") === "true");
    if (content.groups.length > 1) {
      choose("group", 1);
      await until("another workload is chosen", () => location.hash.includes("group=1"));
      check("its name is shown", text("#group option").includes(content.groups[1].name));
      for (const view of ["costs", "trees", "bytes", "figures"]) {
        click("tab-" + view);
        await until("the other workload has " + view, isShown(view));
        useNames();
      }
    }
  };

  const useNames = () => {
    check("no control is without a name", all("button, select, input").every((control) =>
      control.textContent.trim() || control.labels?.length || control.ariaLabel));
    check("every drawing has a name", all("svg[role=img]").every((drawing) =>
      drawing.getAttribute("aria-label")));
    check("names are unique", new Set(all("[id]").map((element) => element.id)).size
      === all("[id]").length);
    check("names are texts", all("b, img").length === 0);
    check("nothing is undefined", !/undefined|NaN|\[object/.test(find("view").textContent));
  };

  addEventListener("error", (event) => failures.push("error: " + event.message));
  addEventListener("unhandledrejection", (event) => failures.push("rejection: " + event.reason));
  try {
    await until("the page has views", () => all("[role=tab]").length > 1);
    const views = [["costs", useCosts], ["trees", useTrees], ["bytes", useBytes],
      ["figures", useFigures]];
    for (const [name, use] of views) {
      if (find("tab-" + name)) await use();
      useNames();
    }
    await useAddress();
  } catch (error) {
    failures.push("stopped: " + (error.stack || error));
  }
  const result = document.createElement("pre");
  result.id = "driver";
  result.textContent = failures.length === 0 ? `passed ${checks} checks`
    : "failed: " + failures.join("; ");
  document.body.append(result);
})();
