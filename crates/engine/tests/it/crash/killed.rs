//! Death of a real process.
//!
//! Promised: a process that is killed (SIGKILL) at any moment, while it opens the store, writes,
//! flushes, merges or closes, leaves a store that opens, finds no damage in itself, and holds every
//! acknowledged batch whatever its persist mode, and no batch in part.
//!
//! The child process is this test binary, with its orders in environment variables. It reports each
//! acknowledged batch through a pipe.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, Progress, last, now_and_then, restless};
use lsmith::{PersistMode, Store};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The environment variable of the child: the directory, a seed, and the persist mode.
const DIR: &str = "LSMITH_CRASH_DIR";
const SEED: &str = "LSMITH_CRASH_SEED";
const SYNC: &str = "LSMITH_CRASH_SYNC";

fn batches() -> Batches {
    // Long keys make long edits, so that the manifest rolls over.
    Batches { key_bytes: 600, keys: 100, ..Batches::new(1) }
}

fn open(dir: &Path, dice: &mut Dice) -> Store {
    let memtable_bytes = *dice.pick(&[20_000, 60_000, 400_000]);
    restless(Store::builder(dir), dice).memtable_bytes(memtable_bytes).open().unwrap()
}

/// The child: writes until it is killed, or for so long that the parent must be gone.
#[test]
fn child() {
    let Some(dir) = env::var_os(DIR) else { return };
    let seed: u64 = env::var(SEED).unwrap().parse().unwrap();
    let mode = match env::var_os(SYNC) {
        Some(_) => PersistMode::SyncData,
        None => PersistMode::Buffer,
    };
    let mut dice = Dice::new(seed);
    let mut pipe = std::io::stderr();
    writeln!(pipe, "opening").unwrap();
    for _ in 0..50 {
        let store = open(Path::new(&dir), &mut dice);
        let found = last(&store);
        let mut progress = Progress { tried: found, acknowledged: found, synced: found };
        for _ in 0..1 + dice.below(1000) {
            batches().go_on(&store, &mut progress, mode).unwrap();
            writeln!(pipe, "{}", progress.acknowledged).unwrap();
            now_and_then(&store, &mut dice).unwrap();
        }
    }
}

/// Starts a child and kills it after it has written `lines` lines. Returns the last batch that it
/// reported.
fn kill_after(dir: &Path, seed: u64, sync: bool, lines: usize) -> Option<u64> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "crash::killed::child", "--nocapture"]).env(DIR, dir);
    command.env(SEED, seed.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
    if sync {
        command.env(SYNC, "1");
    }
    let mut child = command.spawn().unwrap();
    let mut pipe = BufReader::new(child.stderr.take().unwrap());
    let mut told = None;
    let mut line = String::new();
    let mut count = 0;
    loop {
        if count == lines {
            child.kill().unwrap();
        }
        line.clear();
        // What was told before the kill is still in the pipe.
        if pipe.read_line(&mut line).unwrap() == 0 {
            break;
        }
        count += 1;
        match line.trim_end() {
            "opening" => {}
            number if line.ends_with('\n') => match number.parse() {
                Ok(number) => told = Some(number),
                Err(_) => panic!("the child failed: {line}"),
            },
            // Killed in the middle of telling, so it had been acknowledged; what number, the
            // digits may not say.
            _ => {}
        }
    }
    let status = child.wait().unwrap();
    assert!(!status.success(), "the child was killed in time");
    told
}

fn kill_again_and_again(sync: bool) {
    with_seeds(1, |seed| {
        let mut dice = Dice::new(seed + u64::from(sync));
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("store");
        let mut known = 0;
        for _ in 0..10 {
            // None at all: wherever it may be. One: while it opens the store.
            let lines = match dice.below(6) {
                choice @ (0 | 1) => choice,
                2 => dice.below(20),
                _ => dice.below(250),
            };
            let told = kill_after(&dir, dice.number(), sync, lines);
            known = told.unwrap_or(0).max(known);
            let store = open(&dir, &mut dice);
            let found = batches().check(&store);
            assert!(found >= known, "batch {known} was acknowledged, found {found}");
            let damage = store.verify().unwrap();
            assert!(damage.is_empty(), "{damage:?}");
            known = found;
        }
        assert!(known > 100, "the child got somewhere: {known}");
    });
}

#[test]
fn killed_while_it_writes_with_sync() {
    kill_again_and_again(true);
}

#[test]
fn killed_while_it_writes_without_sync() {
    kill_again_and_again(false);
}
