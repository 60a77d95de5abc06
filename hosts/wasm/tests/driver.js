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
  check("its notes say what a store did", shown?.getElementById("content")
    ?.textContent.includes("A store in memory made the"));
  shown?.getElementById("tab-trees")?.click();
  await sleep(500);
  const beside = shown?.getElementById("b");
  if (beside) {
    beside.value = "1";
    beside.dispatchEvent(new Event("change", { bubbles: true }));
  }
  await sleep(500);
  check("two trees are shown", shown?.querySelectorAll(".bars").length === 2);
  const failed = "failed: " + failures.join("; ");
  console.log("driver: " + (failures.length === 0 ? "passed 4 checks" : failed));
})();
