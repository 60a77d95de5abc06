//! Readers and writers in processes of their own, which are killed.
//!
//! Promised: a reader sees every batch that a writer in another process acknowledged, and reads on
//! when that writer is killed and the next one recovers. A reader that is killed keeps nothing from
//! being freed.
//!
//! The child process is this test binary, with its orders in environment variables.

use crate::dice::Dice;
use crate::frame::batches::{Batches, Progress, last, now_and_then, restless};
use lsmith::{PersistMode, Store};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The environment variables of the child: the directory, and what it is, `reader` or `writer`.
const DIR: &str = "LSMITH_BESIDE_DIR";
const ROLE: &str = "LSMITH_BESIDE_ROLE";

const BATCHES: u64 = 3000;

fn batches() -> Batches {
    Batches { keys: 100, ..Batches::new(1) }
}

fn open(dir: &Path, dice: &mut Dice) -> Store {
    restless(Store::builder(dir), dice).memtable_bytes(20_000).open().unwrap()
}

fn read(dir: &Path) -> Store {
    Store::builder(dir).read_only(true).open().unwrap()
}

#[test]
fn child() {
    let Some(dir) = env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let mut pipe = std::io::stderr();
    if env::var(ROLE).unwrap() == "reader" {
        let store = read(dir);
        writeln!(pipe, "{}", batches().check(&store)).unwrap();
        loop {
            std::thread::park();
        }
    }
    let mut dice = Dice::new(7);
    let store = open(dir, &mut dice);
    let found = last(&store);
    let mut progress = Progress { tried: found, acknowledged: found, synced: found };
    while progress.acknowledged < found + BATCHES {
        batches().go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        writeln!(pipe, "{}", progress.acknowledged).unwrap();
        now_and_then(&store, &mut dice).unwrap();
    }
}

/// A child, and what it tells.
struct Other {
    child: Child,
    told: BufReader<std::process::ChildStderr>,
}

impl Other {
    fn start(dir: &Path, role: &str) -> Other {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "readers::killed::child", "--nocapture"]).env(DIR, dir);
        command.env(ROLE, role).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let told = BufReader::new(child.stderr.take().unwrap());
        Other { child, told }
    }

    /// Returns the next number that it tells.
    fn next(&mut self) -> u64 {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        line.trim_end().parse().unwrap_or_else(|_| panic!("the child failed: {line}"))
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_reader_survives_writers_that_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("store");
    let mut writer = Other::start(&dir, "writer");
    writer.next();
    let reader = read(&dir);
    let mut dice = Dice::new(3);
    for _ in 0..4 {
        for _ in 0..8 {
            let mut told = 0;
            for _ in 0..1 + dice.below(60) {
                told = writer.next();
            }
            reader.refresh().unwrap();
            let found = batches().check(&reader);
            assert!(found >= told, "batch {told} was acknowledged, found {found}");
        }
        writer.kill();
        let seen = batches().check(&reader);
        // The next writer recovers beside the reader.
        writer = Other::start(&dir, "writer");
        let told = writer.next();
        assert!(told > seen, "batch {seen} was seen, and {told} is the next");
        assert_eq!(batches().check(&reader), seen, "the reader reads on as before");
    }
    writer.kill();
    drop(reader);
    let store = open(&dir, &mut dice);
    batches().check(&store);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn a_reader_that_is_killed_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("store");
    let mut dice = Dice::new(5);
    let store = open(&dir, &mut dice);
    let mut progress = Progress::default();
    let mut go_on = || {
        for _ in 0..200 {
            batches().go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        store.keyspace("left").unwrap().merge().unwrap();
        progress.acknowledged
    };
    let written = go_on();
    let tables = || -> Vec<String> {
        let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| name.ends_with(".table")).collect()
    };
    let before = tables();
    let mut reader = Other::start(&dir, "reader");
    assert_eq!(reader.next(), written);
    go_on();
    let kept = tables();
    assert!(before.iter().all(|name| kept.contains(name)), "{before:?} {kept:?}");
    reader.kill();
    go_on();
    store.settle().unwrap();
    let left = tables();
    assert!(before.iter().any(|name| !left.contains(name)), "{before:?} {left:?}");
    assert_eq!(std::fs::read_dir(dir.join("readers")).unwrap().count(), 0);
    batches().check(&store);
}
