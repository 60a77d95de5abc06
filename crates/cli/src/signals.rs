//! Signals that end a command: Ctrl-C, `kill`, a terminal that is closed. Windows has Ctrl-C and
//! Ctrl-Break.

use crate::args::Command;
use crate::bars;
use crate::failure::print_line;
use anyhow::Context;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// True once a signal is ending the command.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The signals that end a command, with their names.
#[cfg(not(windows))]
const SIGNALS: [(i32, &str); 3] = {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    [(SIGHUP, "SIGHUP"), (SIGINT, "SIGINT"), (SIGTERM, "SIGTERM")]
};

/// The signals that end a command, with their names.
#[cfg(windows)]
const SIGNALS: [(i32, &str); 2] = {
    use signal_hook::consts::{SIGBREAK, SIGINT};
    [(SIGINT, "SIGINT"), (SIGBREAK, "SIGBREAK")]
};

/// Begins to wait for signals, if `command` makes what must be removed. The exit code of a command
/// that signal N ends is 128 + N, as shells have it.
pub(crate) fn begin(command: &Command) -> anyhow::Result<()> {
    let stays = match command {
        Command::Run(args) => Some(args.dir.clone()),
        Command::Compare(_) | Command::Reproduce(_) | Command::Tune(_) => None,
        _ => return Ok(()),
    };
    on_first(|signal| end(signal, stays)).context("cannot wait for signals")
}

/// Has a thread call `then` with the first of [`SIGNALS`] that comes.
#[cfg(not(windows))]
fn on_first(then: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(SIGNALS.map(|(signal, _)| signal))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            then(signal);
        }
    });
    Ok(())
}

/// Has a thread call `then` with the first of [`SIGNALS`] that comes. A handler on Windows can wake
/// no thread without unsafe code, so the thread looks ten times a second.
#[cfg(windows)]
fn on_first(then: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    use std::sync::atomic::AtomicUsize;
    let come = std::sync::Arc::new(AtomicUsize::new(0));
    for (signal, _) in SIGNALS {
        signal_hook::flag::register_usize(signal, come.clone(), signal as usize)?;
    }
    std::thread::spawn(move || {
        while come.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        then(come.load(Ordering::SeqCst) as i32);
    });
    Ok(())
}

/// Removes what the command has made, says so, and ends the process.
fn end(signal: i32, stays: Option<PathBuf>) {
    ENDING.store(true, Ordering::SeqCst);
    let removed = lsmith_lab::remove_scratch();
    bars::end();
    let known = SIGNALS.iter().find(|(number, _)| *number == signal);
    let name = known.map_or("a signal", |(_, name)| name);
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
