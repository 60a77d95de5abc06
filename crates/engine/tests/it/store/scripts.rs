//! Golden scripts: the life of a small store, in `tests/scripts/`.
//!
//! [`golden`] says what a script looks like. The store lies on a disk in memory and runs in
//! lockstep, so that a script always prints the same. Its memtables hold 1,000 logical bytes, its
//! data blocks 100. The commands:
//!
//! | command | does |
//! |---|---|
//! | `open POLICY` | opens the store, with this policy for keyspaces that are made |
//! | `close`, `killed`, `power lost` | ends the store: in order, by the death of the process, by the loss of all that was not synced |
//! | `in KEYSPACE` | goes on with this keyspace; the first is `default` |
//! | `put KEY=VALUE ...`, `insert KEY=VALUE ...`, `delete KEY ...`, `remove KEY ...` | writes entries, each by itself |
//! | `batch put KEY=VALUE, delete KEY, ...` | writes entries together |
//! | `fill KEY..KEY` | puts 50-byte values at the numbers from the first to below the last |
//! | `load KEY=VALUE ...` | loads sorted entries in bulk |
//! | `sync`, `flush`, `merge` | makes everything survive power loss; flushes; merges all into one run |
//! | `policy POLICY` | gives the keyspace another policy |
//! | `get KEY ...`, `scan` | prints values, or all entries |
//! | `snapshot NAME`, `scan NAME`, `release NAME` | takes a snapshot, prints what it shows, drops it |
//! | `tree` | prints the runs, without sizes: `entries` in each table |
//! | `damage KIND OFFSET` | flips a bit of the newest file of that kind |
//! | `verify` | prints the damage that the store finds |
//!
//! A command that fails prints the kind of its error.

use lsmith::env::{Env, Loss, MemEnv};
use lsmith::{Batch, DEFAULT_KEYSPACE, Keyspace, PersistMode, Snapshot, Store};
use lsmith_fuzz::golden;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// The directory of the store.
const DIR: &str = "/store";

#[derive(Default)]
struct StoreStage {
    env: Option<MemEnv>,
    keyspace: Option<Keyspace>,
    name: Option<String>,
    snapshots: BTreeMap<String, Snapshot>,
}

impl StoreStage {
    fn env(&mut self) -> &MemEnv {
        self.env.get_or_insert_with(MemEnv::new)
    }

    fn keyspace(&self) -> &Keyspace {
        self.keyspace.as_ref().expect("the store is open")
    }

    fn store(&self) -> &Store {
        self.keyspace().store()
    }

    fn open(&mut self, policy: &str) -> lsmith::Result<()> {
        let env = Arc::new(self.env().clone());
        let builder = Store::builder(DIR).env(env).lockstep(true).memtable_bytes(1000);
        let store = builder.block_bytes(100).policy(policy).open()?;
        let name = self.name.get_or_insert_with(|| DEFAULT_KEYSPACE.to_string());
        self.keyspace = Some(store.keyspace(name)?);
        Ok(())
    }

    fn close(&mut self) {
        self.snapshots.clear();
        self.keyspace = None;
    }

    /// Ends the store by an accident that leaves `env`.
    fn crash(&mut self, env: MemEnv) {
        // What the store writes while it is closed goes to the disk before the accident.
        self.close();
        self.env = Some(env);
    }

    /// Carries out a command that changes the store.
    fn change(&mut self, verb: &str, rest: &str) -> lsmith::Result<()> {
        let keyspace = self.keyspace();
        let mut words = rest.split(' ').filter(|word| !word.is_empty());
        match verb {
            "put" => words.map(pair).try_for_each(|(key, value)| keyspace.put(key, value)),
            "insert" => {
                words.map(pair).try_for_each(|(key, value)| keyspace.put_new_unchecked(key, value))
            }
            "delete" => words.try_for_each(|key| keyspace.delete(key)),
            "remove" => words.try_for_each(|key| keyspace.delete_single_unchecked(key)),
            "batch" => {
                let mut batch = Batch::new();
                for op in rest.split(", ") {
                    match op.split_once(' ') {
                        Some(("put", entry)) => {
                            let (key, value) = pair(entry);
                            batch.put(keyspace, key, value);
                        }
                        Some(("delete", key)) => batch.delete(keyspace, key),
                        _ => panic!("expected `put KEY=VALUE` or `delete KEY`, found `{op}`"),
                    }
                }
                self.store().write(batch, PersistMode::Buffer)
            }
            "fill" => {
                let (start, end) = rest.split_once("..").expect("a range of numbers");
                let [start, end] = [start, end].map(|word| word.parse::<u32>().expect("a number"));
                (start..end).try_for_each(|key| keyspace.put(format!("{key:03}"), [b'v'; 50]))
            }
            "load" => {
                let mut load = keyspace.bulk_load()?;
                words.map(pair).try_for_each(|(key, value)| load.put(key, value))?;
                load.finish().map(drop)
            }
            "sync" => self.store().persist(PersistMode::SyncData),
            "flush" => keyspace.flush(),
            "merge" => keyspace.merge(),
            "policy" => keyspace.set_merge_policy(rest),
            _ => panic!("no command is called `{verb}`"),
        }
    }

    /// Prints what a command asks for; returns whether `verb` is such a command.
    fn answer(&mut self, verb: &str, rest: &str, out: &mut String) -> lsmith::Result<bool> {
        match verb {
            "get" => {
                for key in rest.split(' ') {
                    let value = self.keyspace().get(key)?;
                    let value = value.as_deref().map(text);
                    say(out, &format!("{key}: {}", value.as_deref().unwrap_or("absent")));
                }
            }
            "scan" => {
                let keyspace = self.keyspace();
                let entries = match self.snapshots.get(rest) {
                    Some(snapshot) => snapshot.range::<&[u8]>(keyspace, ..),
                    None => keyspace.iter(),
                };
                let entries: Vec<String> = entries
                    .map(|entry| {
                        entry.map(|(key, value)| format!("{}={}", text(&key), text(&value)))
                    })
                    .collect::<lsmith::Result<_>>()?;
                let all = entries.join(" ");
                say(out, if all.is_empty() { "nothing" } else { &all });
            }
            "tree" => {
                let tree = self.keyspace().tree();
                if tree.runs().next().is_none() {
                    say(out, "no runs");
                }
                for (level, run) in tree.runs() {
                    let slices = run.slices().iter().map(|slice| slice.size().entries.to_string());
                    let entries = slices.collect::<Vec<_>>().join(" + ");
                    say(out, &format!("{level} {}: {entries} entries", run.id()));
                }
            }
            "verify" => {
                let damage = self.store().verify()?;
                if damage.is_empty() {
                    say(out, "no damage");
                }
                for error in damage {
                    say(out, &format!("{:?}", error.kind()));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Flips a bit of the newest file whose name ends with `kind`.
    fn damage(&mut self, kind: &str, offset: u64) {
        let env = self.env();
        let names = env.list(Path::new(DIR)).expect("a directory");
        let newest = names.iter().rfind(|name| name.ends_with(kind)).expect("a file of that kind");
        let path = Path::new(DIR).join(newest);
        env.flip(&path, offset, 1).expect("a file that is so long");
    }
}

impl golden::Stage for StoreStage {
    fn run(&mut self, command: &str, out: &mut String) {
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        let done = match verb {
            "open" => self.open(rest),
            "close" => {
                self.close();
                Ok(())
            }
            "killed" => {
                let env = self.env().process_crash_clone();
                self.crash(env);
                Ok(())
            }
            "power" => {
                let env = self.env().power_loss(0, Loss::Everything);
                self.crash(env);
                Ok(())
            }
            "in" => self.store().keyspace(rest).map(|keyspace| {
                self.keyspace = Some(keyspace);
                self.name = Some(rest.to_string());
            }),
            "snapshot" => {
                self.snapshots.insert(rest.to_string(), self.store().snapshot());
                Ok(())
            }
            "release" => {
                self.snapshots.remove(rest).expect("a snapshot of that name");
                Ok(())
            }
            "damage" => {
                let (kind, offset) = rest.split_once(' ').expect("a kind and an offset");
                self.damage(kind, offset.parse().expect("a number of bytes"));
                Ok(())
            }
            _ => self
                .answer(verb, rest, out)
                .and_then(|answered| if answered { Ok(()) } else { self.change(verb, rest) }),
        };
        if let Err(error) = done {
            say(out, &format!("{:?}", error.kind()));
        }
    }

    fn continues(_: &str, _: &str) -> bool {
        false
    }
}

fn say(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("a string takes anything");
}

fn pair(entry: &str) -> (&str, &str) {
    entry.split_once('=').expect("KEY=VALUE")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn scripts_print_what_they_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    golden::check::<StoreStage>(&dir, 12);
}
