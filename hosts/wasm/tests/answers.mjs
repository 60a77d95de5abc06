// Asks the module outside of a browser. Arguments: the module, and where the page goes.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

const [file, target] = process.argv.slice(2);
const glue = readFileSync(new URL("../page/glue.js", import.meta.url), "utf8");
const lsmithOf = new Function(glue + "; return lsmithOf;")();
const module = new WebAssembly.Module(readFileSync(file));
assert.deepEqual(WebAssembly.Module.imports(module), [], "the module needs nothing from outside");
const ask = lsmithOf(module);

const good = {
  policies: "leveled(ratio=4); minlatency(k=4); jungle",
  workload: "churn(keys=5k, ops=60k, value=100B)",
  memtable: "64KiB",
};
const { page, error } = ask(good);
assert.equal(error, undefined);
const content = JSON.parse(/id="content">(.*?)<\/script>/s.exec(page)[1]);
const [group] = content.groups;
assert.equal(group.costs.length, 3);
assert.equal(group.trees.length, 3);
const checked = group.notes.filter((note) => /^A store in memory made the \d+ merges of/.test(note));
assert.equal(checked.length, 3, group.notes.join("\n"));
writeFileSync(target, page);

// What is wrong is said, with the way out, and the module goes on.
const told = (change, expected) => assert.match(ask({ ...good, ...change }).error, expected);
told({ policies: "leveld" }, /leveled/);
told({ workload: "trace(/etc/passwd)" }, /file/);
told({ workload: "load(keys=1G)" }, /at most/);
told({ memtable: "none" }, /none/);
told({ wrong: 1 }, /wrong/);
assert.equal(ask(good).page, page, "the same request, the same page");
console.log("7 answers are right; the page has", page.length, "letters");
