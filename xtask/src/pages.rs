//! Opens pages in a browser, and uses them as a person does.

use crate::chores::cargo;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What clicks, steps, switches, and checks what is shown.
pub(crate) const DRIVER: &str = include_str!("pages/driver.js");

/// The browsers that are looked for.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The name of a trace, which a page must show as it is.
const TRACE: &str = "<b>&amp;.csv";

/// Seconds after which a browser counts as hanging.
const SECONDS_MAX: u64 = 300;

/// The pages: their names, and the arguments of `lsmith` that write them.
const PAGES: [(&str, &[&str]); 4] = [
    (
        "compare",
        &[
            "compare",
            "--memtable=64KiB",
            "--policies=tiered(ratio=3); leveled(ratio=4); minlatency(k=3); choose_best(ratio=4)",
            "--workload=load(keys=10k, value=100B)",
            "--workload",
            "TRACE",
        ],
    ),
    (
        "simulate",
        &[
            "simulate",
            "--policy=leveled(ratio=4)",
            "--flushes=40",
            "--content=keyed",
            "--memtable=64KiB",
        ],
    ),
    ("tune", &["tune", "--workload=churn(keys=100k, ops=1M, value=100B)"]),
    ("store", &["db", "STORE", "report"]),
];

/// Writes pages with `binary`, or with a build of its own, and uses each in a browser. Leaves the
/// pages in `target/pages`.
pub(crate) fn run(root: &Path, binary: Option<&Path>) -> Result<()> {
    let Some(browser) = browser() else {
        eprintln!("pages are not opened: there is no chromium");
        return Ok(());
    };
    let dir = root.join("target/pages");
    std::fs::create_dir_all(&dir).context("no directory for pages")?;
    let store = dir.join("store");
    if store.exists() {
        std::fs::remove_dir_all(&store).context("an old store is in the way")?;
    }
    let lsmith = || match binary {
        Some(path) => Command::new(path),
        None => {
            let mut command = cargo(root);
            command.args(["run", "--quiet", "-p", "lsmith-cli", "--"]);
            command
        }
    };
    let load = ["run", "--policy=leveled(ratio=4)", "--workload=load(keys=20k, value=100B)"];
    finished(
        lsmith().args(load).args(["--memtable=64KiB", "--dir"]).arg(&store).stdout(Stdio::null()),
    )?;
    let operations: String = (0..2000).map(|n| format!("{n},put,key{n:04},100\n")).collect();
    let trace = format!("timestamp,op,key,value_size\n{operations}");
    std::fs::write(dir.join(TRACE), trace).context("no place for a trace")?;
    for (name, arguments) in PAGES {
        let page = dir.join(format!("{name}.html"));
        let mut command = lsmith();
        for argument in arguments {
            match *argument {
                "STORE" => command.arg(&store),
                "TRACE" => command.arg(format!("trace({})", dir.join(TRACE).display())),
                argument => command.arg(argument),
            };
        }
        finished(command.arg("--html").arg(&page).stdout(Stdio::null()))?;
        eprintln!("{name}: {}", used(&browser, &dir, &page, DRIVER)?);
    }
    Ok(())
}

/// Returns the first browser on the path.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = BROWSERS.iter().flat_map(|name| folders.iter().map(move |dir| dir.join(name)));
    found.into_iter().find(|path| path.is_file())
}

/// Runs a command that must succeed.
pub(crate) fn finished(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} did not start"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

/// Uses a page with the script `driver`, and returns what that reports. The browser makes time pass
/// as fast as it can.
pub(crate) fn used(browser: &Path, dir: &Path, page: &Path, driver: &str) -> Result<String> {
    let shown = shown(browser, dir, &driven(page, driver)?)?;
    let told = shown.rsplit_once("<pre id=\"driver\">").context("the driver did not finish")?.1;
    let report = told.split("</pre>").next().unwrap_or_default();
    ensure!(report.starts_with("passed "), "{}: {report}", page.display());
    Ok(report.to_owned())
}

/// Uses a page with workers, which need real time, with the script `driver`. Returns what that
/// tells the console.
pub(crate) fn told(browser: &Path, dir: &Path, page: &Path, driver: &str) -> Result<String> {
    let driven = driven(page, driver)?;
    let log = page.with_extension("log");
    let file = std::fs::File::create(&log).context("no place for the console")?;
    let profile = dir.join(format!("profile-{}", std::process::id()));
    let mut child = headless(browser, &profile, &driven)
        .arg("--enable-logging=stderr")
        .stdout(Stdio::null())
        .stderr(file)
        .spawn()
        .context("the browser did not start")?;
    let began = Instant::now();
    let console = loop {
        let console = std::fs::read(&log).context("the console is lost")?;
        let console = String::from_utf8_lossy(&console).into_owned();
        let is_late = began.elapsed() > Duration::from_secs(SECONDS_MAX);
        if is_late || report_in(&console).is_some() || child.try_wait()?.is_some() {
            break console;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    child.kill().and_then(|()| child.wait()).context("the browser does not end")?;
    std::fs::remove_dir_all(&profile).ok();
    let report = report_in(&console).with_context(|| format!("no report in {}", log.display()))?;
    let broken = console.lines().find(|line| line.contains("Uncaught"));
    ensure!(broken.is_none(), "{}: {}", page.display(), broken.unwrap_or_default());
    ensure!(report.starts_with("passed "), "{}: {report}", page.display());
    Ok(report.to_owned())
}

/// Returns what a driver has told the console, once that is there as a whole.
fn report_in(console: &str) -> Option<&str> {
    let (_, told) = console.split_once("\"driver: ")?;
    told.split_once('"').map(|(report, _)| report)
}

/// Writes the page with the script `driver` at its end beside it, and returns its path.
fn driven(page: &Path, driver: &str) -> Result<PathBuf> {
    let html = std::fs::read_to_string(page).context("no page was written")?;
    let driven = page.with_extension("driven.html");
    let (head, tail) = html.rsplit_once("</body>").context("a page without an end")?;
    let html = format!("{head}<script>\n{driver}</script>\n</body>{tail}");
    std::fs::write(&driven, html).context("the driver has no place")?;
    Ok(driven)
}

/// Returns a browser that shows `page` to nobody.
fn headless(browser: &Path, profile: &Path, page: &Path) -> Command {
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()));
    command
}

/// Returns the document as a browser shows it when its scripts have run.
fn shown(browser: &Path, dir: &Path, page: &Path) -> Result<String> {
    let profile = dir.join(format!("profile-{}", std::process::id()));
    let output = page.with_extension("dom");
    let file = std::fs::File::create(&output).context("no place for the document")?;
    let mut child = headless(browser, &profile, page)
        .args(["--virtual-time-budget=120000", "--dump-dom"])
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .context("the browser did not start")?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().context("the browser is lost")? {
            break status;
        }
        if began.elapsed() > Duration::from_secs(SECONDS_MAX) {
            child.kill().context("the browser hangs")?;
            child.wait().context("the browser hangs")?;
            bail!("{}: the browser hangs", page.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    // What it leaves behind is of no use; it may still be writing.
    std::fs::remove_dir_all(&profile).ok();
    ensure!(status.success(), "{}: the browser failed", page.display());
    std::fs::read_to_string(&output).context("the browser showed no text")
}
