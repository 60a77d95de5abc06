//! Builds lsmith for WebAssembly, and runs it: outside of a browser, in one, and on files of WASI.

use crate::chores::{answers, cargo, run};
use crate::{pages, platforms};
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "hosts/wasm";

/// What a browser runs, and what has files.
const BROWSER: &str = "wasm32-unknown-unknown";
const WASI: &str = "wasm32-wasip1";

/// Writes the page to `target/wasm/lsmith.html`. Tests need node, and chromium for the page. Says
/// what is left out.
pub(crate) fn wasm(root: &Path) -> Result<()> {
    let installed = platforms::installed().unwrap_or_default();
    if ![BROWSER, WASI].iter().all(|target| installed.lines().any(|line| line == *target)) {
        eprintln!(
            "{FOLDER} is not built: `rustup target add {BROWSER} {WASI}` installs what it needs"
        );
        return Ok(());
    }
    let module = built(root, BROWSER, &["--lib"], "lsmith_wasm.wasm")?;
    let dir = root.join("target/wasm");
    fs::create_dir_all(&dir)?;
    let page = dir.join("lsmith.html");
    fs::write(&page, page_of(root, &module)?)?;
    eprintln!("the page is {}", page.display());
    if !answers("node") {
        eprintln!("it is not tested: there is no node");
        return Ok(());
    }
    let tests = root.join(FOLDER).join("tests");
    let answer = dir.join("answer.html");
    pages::finished(Command::new("node").arg(tests.join("answers.mjs")).arg(&module).arg(&answer))?;
    on_files(root, &tests, &dir)?;
    let driver = fs::read_to_string(tests.join("driver.js")).context("no driver")?;
    let Some(browser) = pages::browser() else {
        eprintln!("the page is not opened: there is no chromium");
        return Ok(());
    };
    eprintln!("the answer: {}", pages::used(&browser, &dir, &answer, pages::DRIVER)?);
    eprintln!("the page: {}", pages::told(&browser, &dir, &page, &driver)?);
    Ok(())
}

/// Writes a store in files of WASI, and reads it in processes that come after it.
fn on_files(root: &Path, tests: &Path, dir: &Path) -> Result<()> {
    let program = built(root, WASI, &["--bin", "wasi"], "wasi.wasm")?;
    let files = dir.join("files");
    if files.exists() {
        fs::remove_dir_all(&files)?;
    }
    fs::create_dir_all(&files)?;
    for task in ["write", "read", "read"] {
        let mut node = Command::new("node");
        // Node says at each start that its WASI is new.
        node.args(["--no-warnings"]).arg(tests.join("wasi.mjs"));
        pages::finished(node.arg(&program).arg(&files).args([task, "/dir/store"]))?;
    }
    Ok(())
}

/// Builds a part of the workspace, and returns its file.
fn built(root: &Path, target: &str, part: &[&str], file: &str) -> Result<PathBuf> {
    let manifest = format!("{FOLDER}/Cargo.toml");
    let mut build = cargo(root);
    build.args(["build", "--release", "--manifest-path", &manifest, "--target-dir", "target"]);
    run(build.args(["--target", target]).args(part))?;
    Ok(root.join("target").join(target).join("release").join(file))
}

/// Returns the page with all that it needs.
fn page_of(root: &Path, module: &Path) -> Result<String> {
    let part = |name: &str| {
        let path = root.join(FOLDER).join("page").join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let module = STANDARD.encode(fs::read(module).context("no module was built")?);
    Ok(part("index.html")?.replace("{{GLUE}}", &part("glue.js")?).replace("{{MODULE}}", &module))
}
