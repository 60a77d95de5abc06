//! Signals that end a command: Ctrl-C, `kill`, a terminal that is closed.

use crate::args::Command;
use crate::bars;
use crate::failure::print_line;
use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// True once a signal is ending the command.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Begins to wait for signals, if `command` makes what must be removed. The exit code of a command
/// that signal N ends is 128 + N, as shells have it.
pub(crate) fn begin(command: &Command) -> anyhow::Result<()> {
    let stays = match command {
        Command::Run(args) => Some(args.dir.clone()),
        Command::Compare(_) | Command::Reproduce(_) | Command::Tune(_) => None,
        _ => return Ok(()),
    };
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot wait for signals")?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            end(signal, stays);
        }
    });
    Ok(())
}

/// Removes what the command has made, says so, and ends the process.
fn end(signal: i32, stays: Option<PathBuf>) {
    ENDING.store(true, Ordering::SeqCst);
    let removed = lsmith_lab::remove_scratch();
    bars::end();
    let name = match signal {
        SIGHUP => "SIGHUP",
        SIGINT => "SIGINT",
        _ => "SIGTERM",
    };
    let mut message = format!("ended by {name}");
    for dir in removed {
        message += &format!("; removed {}", dir.display());
    }
    if let Some(dir) = stays {
        message += &format!("; {} keeps the writes so far", dir.display());
    }
    print_line(&message);
    signal_hook::low_level::exit(128 + signal);
}

/// Never returns if a signal is ending the process. A command whose directories were removed fails,
/// and must not report that.
pub(crate) fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}
