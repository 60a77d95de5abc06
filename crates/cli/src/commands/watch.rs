//! `watch`: the trees of a live store, again and again, without its lock.

use super::picture::{runs_fields, short_count};
use crate::args::WatchArgs;
use crate::output::{Output, print_json};
use crate::table::Importance::{Least, Rank};
use crate::table::{ranked, short, short_bytes};
use anyhow::bail;
use console::Term;
use lsmith::env::{Env, RealEnv};
use lsmith::inspect::{FileType, KeyspaceTree, trees};
use lsmith_spec::format_bytes;
use lsmith_tree::{Level, LevelId};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// The most runs of a level whose sizes are printed.
const SIZES_MAX: usize = 8;

/// The files and trees of a store at one moment.
struct Picture {
    at: Instant,
    keyspaces: Vec<KeyspaceTree>,
    tables: Files,
    /// Tables that no tree names: outputs of merges under way, and old tables that readers hold.
    others: Files,
    logs: Files,
}

/// A number of files, and their bytes.
#[derive(Clone, Copy, Default)]
struct Files {
    count: u64,
    bytes: u64,
}

pub(crate) fn watch(args: &WatchArgs, json: bool) -> anyhow::Result<()> {
    let term = Term::stdout();
    let mut before: Option<Picture> = None;
    loop {
        let picture = Picture::take(&args.dir)?;
        if json {
            return print_json(&picture.fields());
        }
        let text = picture.shown(&args.dir, before.as_ref());
        if term.is_term() && !args.once {
            term.clear_screen()?;
        }
        let mut output = Output::new();
        output.line(text)?;
        output.finish()?;
        if args.once {
            return Ok(());
        }
        before = Some(picture);
        std::thread::sleep(args.interval);
    }
}

impl Picture {
    fn take(dir: &Path) -> anyhow::Result<Picture> {
        let env = RealEnv::new();
        let keyspaces = trees(&env, dir)?;
        let named: BTreeSet<u64> = keyspaces
            .iter()
            .flat_map(|keyspace| keyspace.tree.disk_runs())
            .flat_map(|run| run.slices())
            .map(|slice| slice.table().id.0)
            .collect();
        let mut picture = Picture {
            at: Instant::now(),
            keyspaces,
            tables: Files::default(),
            others: Files::default(),
            logs: Files::default(),
        };
        let Ok(names) = env.list(dir) else { bail!("cannot list {}", dir.display()) };
        for name in names {
            let path = dir.join(name);
            // A file that has gone since counts nowhere.
            let (Some(kind), Ok(bytes)) = (FileType::of(&path), env.file_bytes(&path)) else {
                continue;
            };
            let files = match kind {
                (FileType::Table, number) if named.contains(&number) => &mut picture.tables,
                (FileType::Table, _) => &mut picture.others,
                (FileType::Log, _) => &mut picture.logs,
                _ => continue,
            };
            files.count += 1;
            files.bytes += bytes;
        }
        Ok(picture)
    }

    fn shown(&self, dir: &Path, before: Option<&Picture>) -> String {
        let mut parts = vec![format!(
            "{}: tables {}, not yet or no longer in a tree {}, logs {}",
            dir.display(),
            self.tables.shown(),
            self.others.shown(),
            self.logs.shown(),
        )];
        for keyspace in &self.keyspaces {
            let earlier = before.and_then(|before| {
                let same = before.keyspaces.iter().find(|other| other.id == keyspace.id)?;
                Some((same, (self.at - before.at).as_secs_f64()))
            });
            parts.push(shown_keyspace(keyspace, earlier));
        }
        parts.push(if before.is_some() { KEY_WITH_RATES } else { KEY }.to_owned());
        parts.join("\n\n")
    }

    fn fields(&self) -> Value {
        let level = |(index, level): (usize, &Level)| {
            let counters = level.counters();
            json!({
                "level": LevelId::Disk(index).to_string(),
                "runs": level.runs().len(),
                "bytes": level.bytes(),
                "flushes": counters.flushes,
                "merges": counters.merges,
                "moves": counters.moves,
                "bytes_in": counters.bytes_in,
                "bytes_from_memory": counters.bytes_from_memory,
                "bytes_written": counters.bytes_written,
            })
        };
        let keyspace = |keyspace: &KeyspaceTree| {
            json!({
                "id": keyspace.id,
                "name": keyspace.name,
                "members": keyspace.members,
                "policy": keyspace.policy,
                "compression": keyspace.compression,
                "memtable_bytes": keyspace.memtable_bytes,
                "flushes": keyspace.tree.flushes(),
                "levels": keyspace.tree.levels().iter().enumerate().map(level).collect::<Value>(),
                "runs": runs_fields(&keyspace.tree),
            })
        };
        json!({
            "keyspaces": self.keyspaces.iter().map(keyspace).collect::<Value>(),
            "tables": self.tables.fields(),
            "other_tables": self.others.fields(),
            "logs": self.logs.fields(),
        })
    }
}

impl Files {
    fn shown(self) -> String {
        format!("{} of {}", self.count, short_bytes(self.bytes))
    }

    fn fields(self) -> Value {
        json!({ "files": self.count, "bytes": self.bytes })
    }
}

const KEY: &str = "\
Sizes are keys, values and 8 bytes per entry. flushes, merges, moves, written: into this level since
the store was made. Memory is not shown: it is known only to the process that has the store open.";

const KEY_WITH_RATES: &str = "\
Sizes are keys, values and 8 bytes per entry. flushes, merges, moves, written: into this level per
second, since the last picture. Memory is not shown: it is known only to the process that writes.";

/// Returns a table with a row per level. `earlier` is the same keyspace and the seconds since.
fn shown_keyspace(keyspace: &KeyspaceTree, earlier: Option<(&KeyspaceTree, f64)>) -> String {
    let KeyspaceTree { name, members, policy, tree, memtable_bytes, .. } = keyspace;
    let row = |(index, level): (usize, &Level)| {
        let now = level.counters();
        let before = earlier.and_then(|(earlier, _)| earlier.tree.levels().get(index));
        let was = before.map(|level| *level.counters()).unwrap_or_default();
        let count = |now: u64, was: u64| match earlier {
            Some((_, seconds)) => format!("{:.1}", now.saturating_sub(was) as f64 / seconds),
            None => short_count(now),
        };
        let written = match earlier {
            Some((_, seconds)) => {
                (now.bytes_written.saturating_sub(was.bytes_written) as f64 / seconds) as u64
            }
            None => now.bytes_written,
        };
        vec![
            LevelId::Disk(index).to_string(),
            level.runs().len().to_string(),
            short_bytes(level.bytes()),
            count(now.flushes, was.flushes),
            count(now.merges, was.merges),
            count(now.moves, was.moves),
            short_bytes(written),
            sizes(level),
        ]
    };
    let [flushes, merges, moves, written] = match earlier {
        None => ["flushes", "merges", "moves", "written"],
        Some(_) => ["flushes/s", "merges/s", "moves/s", "written/s"],
    };
    let header = [
        ("level", Rank(0)),
        ("runs", Rank(1)),
        ("size", Rank(2)),
        (flushes, Rank(5)),
        (merges, Rank(4)),
        (moves, Least),
        (written, Rank(3)),
        ("runs, newest first", Least),
    ];
    let rows: Vec<_> = tree.levels().iter().enumerate().map(row).collect();
    let flushes = short_count(tree.flushes());
    let memtable = format_bytes(*memtable_bytes);
    let what = match members {
        Some(members) => format!("group {name} of {}", members.join(", ")),
        None => format!("keyspace {name}"),
    };
    let title = format!("{what}: {policy}; {flushes} flushes of memtables of {memtable}");
    match rows.is_empty() {
        true => format!("{title}\nnothing on storage yet"),
        false => format!("{title}\n{}", ranked(&header, 1, rows)),
    }
}

/// Returns the sizes of the newest runs of a level.
fn sizes(level: &Level) -> String {
    let runs = level.runs();
    let shown = runs.iter().take(SIZES_MAX).map(|run| short(run.bytes() as f64).replace(' ', ""));
    let mut sizes: Vec<String> = shown.collect();
    if runs.len() > SIZES_MAX {
        sizes.push(format!("and {} more", runs.len() - SIZES_MAX));
    }
    sizes.join(" ")
}
