// Uses the page as a person does, and tells the console what it found. The worker needs real time,
// so that a browser which makes time pass faster is of no use here.
(async () => {
  const find = (id) => document.getElementById(id);
  const failures = [];
  const check = (what, isTrue) => isTrue || failures.push(what);
  const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
  const said = async (kinds) => {
    for (let turn = 0; turn < 1200 && !kinds.includes(find("said").dataset.kind); turn++) {
      await sleep(50);
    }
    return find("said").textContent;
  };
  const simulate = async (policies) => {
    find("said").dataset.kind = "";
    find("policies").value = policies;
    find("start").click();
    return said(["done", "error"]);
  };
  const wrong = await simulate("leveld");
  check("a wrong name is refused with the right one: " + wrong, wrong.includes("leveled"));
  const done = await simulate("leveled(ratio=4); minlatency(k=4)");
  check("it is simulated: " + done, done.startsWith("Simulated"));
  let shown = null;
  for (let turn = 0; turn < 200 && !shown?.getElementById("tab-trees"); turn++) {
    await sleep(50);
    shown = find("result").contentDocument;
  }
  shown?.getElementById("tab-trees")?.click();
  await sleep(1000);
  const view = shown?.getElementById("view");
  check("two trees are shown", (view?.querySelectorAll("svg").length ?? 0) >= 2
    || (view?.querySelectorAll("canvas").length ?? 0) >= 2);
  check("a store was asked", shown?.body.textContent.includes("A store in memory made the"));
  const failed = "failed: " + failures.join("; ");
  console.log("driver: " + (failures.length === 0 ? "passed 4 checks" : failed));
})();
