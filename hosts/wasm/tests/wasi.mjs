// Runs a program of WASI. Arguments: the program, a directory that it sees as `/dir`, and its own.
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const [file, dir, ...rest] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [file, ...rest], preopens: { "/dir": dir } });
const module = new WebAssembly.Module(readFileSync(file));
process.exitCode = wasi.start(new WebAssembly.Instance(module, wasi.getImportObject()));
