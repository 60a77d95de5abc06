//! `record`: has the process that has a store open record what it does.

use crate::args::RecordArgs;
use crate::failure::bad_argument;
use crate::output::{print, print_json};
use anyhow::{Context, bail};
use lsmith::RecordRequest;
use lsmith::env::{Env, RealEnv};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the folder is looked at, and how long between two looks: longer than a store waits
/// until it looks for requests.
const LOOKS: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Serialize)]
struct Asked {
    /// The file of the recording; `None` if no process has begun it yet.
    recording: Option<PathBuf>,
}

#[derive(Serialize)]
struct Stopped {
    stopped: bool,
}

pub(crate) fn record(args: &RecordArgs, json: bool) -> anyhow::Result<()> {
    let env = RealEnv::new();
    let Some(folder) = &args.folder else {
        let stopped = RecordRequest::withdraw(&env, &args.store)?;
        if !stopped {
            bail!("{} is not asked to record", args.store.display());
        }
        return if json {
            print_json(&Stopped { stopped })
        } else {
            Ok(print("The store ends the recording within a second.")?)
        };
    };
    let options = args.options();
    if !(1..=1 << 20).contains(&options.one_in) {
        return Err(bad_argument(format!("--one-in {}: expected 1 to 2^20", options.one_in)));
    }
    let folder = std::path::absolute(folder).context("cannot find the folder")?;
    let before = recordings(&env, &folder);
    RecordRequest { folder: folder.clone(), options }.put(&env, &args.store)?;
    let recording = begun(&env, &folder, &before);
    if json {
        return print_json(&Asked { recording });
    }
    let store = args.store.display();
    Ok(match recording {
        Some(path) => print(format_args!(
            "The store is recorded in {}; `lsmith record {store} --stop` ends that.",
            path.display()
        )),
        None => print(format_args!(
            "No process has {store} open for writing, or it cannot write there: the recording \
             begins when one opens the store. `lsmith record {store} --stop` takes this back."
        )),
    }?)
}

/// Waits for a recording that was not there `before`.
fn begun(env: &RealEnv, folder: &Path, before: &[String]) -> Option<PathBuf> {
    for _ in 0..LOOKS {
        std::thread::sleep(PAUSE);
        let mut now = recordings(env, folder).into_iter();
        if let Some(new) = now.find(|name| !before.contains(name)) {
            return Some(folder.join(new));
        }
    }
    None
}

fn recordings(env: &RealEnv, folder: &Path) -> Vec<String> {
    env.list(folder).unwrap_or_default()
}
