//! The child: a process with a store that obeys lines of text.
//!
//! It is this test binary, started for the test `child::child` only. It reads a line from its
//! standard input, does what it says, and writes lines that begin with `> ` to its standard error;
//! the last one is `> .`. Whatever else appears there is a panic.
//!
//! Batch number n puts n into both keyspaces, with a value that follows from n. So a reader of the
//! store needs no memory of what was written.

use crate::system;
use lsmith::cipher::{Keys, MasterKey};
use lsmith::env::CipherEnv;
use lsmith::{Batch, Builder, Keyspace, PersistMode, RepairOptions, Store};
use std::env;
use std::io::{BufRead, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// The environment variable that makes a process a child.
pub(crate) const CHILD: &str = "LSMITH_WORLD_CHILD";

/// The environment variable that has a child encrypt its stores.
pub(crate) const KEYS: &str = "LSMITH_WORLD_KEYS";

const SPACES: [&str; 2] = ["left", "right"];

#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let (send, lines) = channel();
    std::thread::spawn(move || input().for_each(|line| send.send(line).unwrap()));
    let mut child = Child { store: None };
    tell(".");
    while let Ok(line) = lines.recv() {
        child.obey(&line, &lines);
        tell(".");
    }
}

/// Returns the lines of the standard input, past the lock that the standard library has for it: who
/// forks while a thread waits for a line takes that lock along.
fn input() -> impl Iterator<Item = String> {
    let input = std::fs::File::open("/proc/self/fd/0").unwrap();
    std::io::BufReader::new(input).lines().map_while(Result::ok)
}

/// Writes one line of an answer.
fn tell(line: &str) {
    // In one call, so that lines of a forked process do not mix with it.
    std::io::stderr().write_all(format!("> {}\n", line.replace('\n', " ")).as_bytes()).unwrap();
}

fn tell_result<T>(result: lsmith::Result<T>) -> Option<T> {
    match result {
        Ok(value) => {
            tell("ok");
            Some(value)
        }
        Err(error) => {
            tell(&format!("error {:?}: {error}", error.kind()));
            None
        }
    }
}

/// Returns the value of `number` in keyspace `space`.
fn value(number: u64, space: usize) -> Vec<u8> {
    let length = 10 + (number * 131 + space as u64 * 17) % 900;
    let byte = |at: u64| (number.wrapping_mul(31) + at * 7 + space as u64) as u8 | 1;
    (0..length).map(byte).collect()
}

struct Child {
    store: Option<Store>,
}

impl Child {
    fn obey(&mut self, line: &str, lines: &Receiver<String>) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["open", dir] => self.store = tell_result(open(Path::new(dir), false)),
            ["look", dir] => self.store = tell_result(open(Path::new(dir), true)),
            ["write", from, count, mode] => self.write(number(from), number(count), mode),
            ["run", from, mode] => self.run(number(from), mode, lines),
            ["work"] => self.with(|store| {
                store.flush()?;
                store.keyspace(SPACES[0])?.merge()
            }),
            ["refresh"] => self.with(|store| store.refresh().map(drop)),
            ["verify"] => self.with(|store| match store.verify()?.into_iter().next() {
                Some(damage) => Err(damage),
                None => Ok(()),
            }),
            ["checkpoint", dir] => self.with(|store| store.checkpoint(dir).map(drop)),
            ["read"] => self.read(),
            ["close"] => self.store = None,
            ["repair", from, to] => repair(from, to),
            ["chdir", dir] => env::set_current_dir(dir).unwrap(),
            ["files", more] => system::limit_files(number(more)),
            ["size", bytes] => system::limit_size(number(bytes)),
            ["deny", call, code] => {
                tell(if system::deny(call, code) { "ok" } else { "unknown" });
            }
            ["signals"] => system::signal_all_threads_for_ever(),
            ["fork", ref words @ ..] => self.fork(&words.join(" "), lines),
            ["leave", ref words @ ..] => self.leave(&words.join(" "), lines),
            ["exec"] => system::exec_self(),
            _ => panic!("unknown: {line}"),
        }
    }

    fn with(&self, work: impl FnOnce(&Store) -> lsmith::Result<()>) {
        if let Some(store) = &self.store {
            tell_result(work(store));
        }
    }

    fn spaces(store: &Store) -> lsmith::Result<[Keyspace; 2]> {
        Ok([store.keyspace(SPACES[0])?, store.keyspace(SPACES[1])?])
    }

    fn write_one(&self, number: u64, mode: &str) -> bool {
        let Some(store) = &self.store else { return false };
        let write = || {
            let spaces = Self::spaces(store)?;
            let mut batch = Batch::new();
            for (at, space) in spaces.iter().enumerate() {
                batch.put(space, number.to_be_bytes(), value(number, at));
            }
            let mode = if mode == "sync" { PersistMode::SyncAll } else { PersistMode::Buffer };
            store.write(batch, mode)
        };
        match write() {
            Ok(()) => tell(&format!("{mode} {number}")),
            Err(error) => tell(&format!("failed {number} {:?}: {error}", error.kind())),
        }
        true
    }

    fn write(&self, from: u64, count: u64, mode: &str) {
        for number in from..from + count {
            // Most batches are synced in their own call, some by the one after them.
            let mode = if mode == "some" && number % 3 == 0 { "buffer" } else { "sync" };
            self.write_one(number, mode);
        }
    }

    /// Writes until the next line comes.
    fn run(&self, from: u64, mode: &str, lines: &Receiver<String>) {
        for number in from.. {
            if lines.try_recv().is_ok() || !self.write_one(number, mode) {
                return;
            }
            if number % 40 == 0 {
                let _may_fail = self.store.as_ref().map(Store::flush);
            }
        }
    }

    /// Tells the numbers of all batches that are there as a whole.
    fn read(&self) {
        let Some(store) = &self.store else { return };
        let read = || {
            let mut found = vec![];
            for (at, name) in SPACES.iter().enumerate() {
                let mut numbers = vec![];
                // Each write makes its keyspaces first. So a store without them has no batch.
                if store.keyspaces().iter().all(|known| known != name) {
                    found.push(numbers);
                    continue;
                }
                let space = store.existing_keyspace(name)?;
                for entry in space.iter() {
                    let (key, found) = entry?;
                    let number = u64::from_be_bytes(key[..].try_into().unwrap());
                    if found[..] != value(number, at) || space.get(&key)? != Some(found) {
                        tell(&format!("wrong {number}"));
                    }
                    numbers.push(number);
                }
                found.push(numbers);
            }
            Ok(found)
        };
        if let Some(found) = tell_result(read()) {
            if found[0] != found[1] {
                tell(&format!("torn {found:?}"));
            }
            let numbers = found[0].iter().map(u64::to_string).collect::<Vec<_>>();
            tell(&format!("has {}", numbers.join(" ")));
        }
    }

    /// A forked process obeys `line`, then ends. This one waits for it.
    fn fork(&mut self, line: &str, lines: &Receiver<String>) {
        match system::fork() {
            0 => {
                self.obey(line, lines);
                system::end_now();
            }
            process => system::wait_for(process),
        }
    }

    /// A forked process goes on instead of this one, obeys `line`, and then what else comes.
    fn leave(&mut self, line: &str, lines: &Receiver<String>) {
        let parent = std::process::id();
        if system::fork() > 0 {
            system::end_now();
        }
        system::wait_for_the_end_of(parent);
        tell(&format!("process {}", std::process::id()));
        self.obey(line, lines);
        tell(".");
        // The thread that reads lines stayed behind.
        for line in input() {
            self.obey(&line, lines);
            tell(".");
        }
        system::end_now();
    }
}

fn open(dir: &Path, read_only: bool) -> lsmith::Result<Store> {
    let builder = Store::builder(dir).read_only(read_only).policy("tiered(ratio=3)");
    // Some values lie in tables, some in value files.
    let builder = builder.large_values(400).value_space(1.2);
    let builder = builder.memtable_bytes(9000).log_bytes(24 << 10).block_bytes(500).threads(1);
    keys().into_iter().fold(builder, Builder::keys).open()
}

/// Returns the keys of encrypted stores, `None` if the stores are not encrypted.
fn keys() -> Option<Keys> {
    env::var_os(KEYS).map(|_| Keys::new(MasterKey::aes_256_gcm([9; 32])))
}

fn repair(from: &str, to: &str) {
    let mut options = RepairOptions::default();
    if let Some(keys) = keys() {
        options.env = Arc::new(CipherEnv::new(options.env, keys));
    }
    if let Some(report) = tell_result(lsmith::repair(&options, from, to)) {
        for finding in &report.findings {
            tell(&format!("finding {finding}"));
        }
        tell(if report.is_exact() { "exact" } else { "inexact" });
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}
