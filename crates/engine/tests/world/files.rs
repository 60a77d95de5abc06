//! Accidents of single files.

use crate::accidents::{Accident, Moment, accident};
use crate::stage::{Played, Stage, bytes_of, can};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a store.
const FILES: [&str; 8] = [
    "LOCK",
    "CURRENT",
    "the manifest",
    "the oldest log",
    "the newest log",
    "the oldest table",
    "the newest table",
    "readers",
];

/// What can happen to a file.
const HARMS: [&str; 5] =
    ["is removed", "becomes another file", "is overwritten", "loses its end", "becomes empty"];

/// Returns the file that the words `which` stand for, if there is one.
fn find(dir: &Path, which: &str) -> Option<PathBuf> {
    let with = |end: &str, newest: bool| {
        let names = fs::read_dir(dir).ok()?.map(|entry| entry.unwrap().path());
        let mut names: Vec<_> =
            names.filter(|path| path.extension().is_some_and(|found| found == end)).collect();
        names.sort();
        if newest { names.pop() } else { names.into_iter().next() }
    };
    match which {
        "the manifest" => with("manifest", true),
        "the oldest log" => with("wal", false),
        "the newest log" => with("wal", true),
        "the oldest table" => with("table", false),
        "the newest table" => with("table", true),
        name => Some(dir.join(name)).filter(|path| path.exists()),
    }
}

fn harm(stage: &mut Stage, which: &str, how: &str) -> Played {
    let Some(path) = find(&stage.data(), which) else { return Ok(()) };
    stage.note(format!("{} {how}", path.display()));
    let is_open = stage.is_open;
    // The newest file of a kind may be one that another accident has put there.
    stage.foreign.remove(&path);
    (stage.is_harmed, stage.may_lose_unsynced) = (true, true);
    // If nothing was written after the last sync, nothing proves that there was more.
    let is_cut = ["loses its end", "becomes empty"].contains(&how);
    let is_newest_log = find(&stage.data(), "the newest log").as_ref() == Some(&path);
    stage.may_lose_end |= is_newest_log && is_cut;
    let bytes = bytes_of(&path);
    match how {
        "is removed" if path.is_dir() => can(fs::remove_dir_all(&path))?,
        "is removed" => can(fs::remove_file(&path))?,
        "becomes another file" => {
            if path.is_dir() {
                can(fs::remove_dir_all(&path))?;
            } else {
                let new = stage.root.join("new file");
                can(fs::write(&new, b"a file of somebody\n".repeat(20)))?;
                return can(fs::rename(new, &path));
            }
            can(fs::write(&path, "a file of somebody"))?;
        }
        _ if path.is_dir() => {}
        "is overwritten" => overwrite(&path, &bytes),
        "loses its end" | "becomes empty" => {
            let left = if how == "becomes empty" { 0 } else { used(&bytes) / 2 };
            stage.may_die = is_open;
            let file = can(fs::OpenOptions::new().write(true).open(&path))?;
            file.set_len(left as u64).map_err(|error| error.to_string())?;
        }
        _ => unreachable!("{how}"),
    }
    Ok(())
}

/// Returns the bytes of a file that are in front of zeros at its end.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)
}

/// Changes bytes in the middle of what a file has.
fn overwrite(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let middle = used(bytes) / 2;
    let Ok(file) = fs::OpenOptions::new().write(true).open(path) else { return };
    let there = bytes.len().saturating_sub(middle).min(8);
    let _full = file.write_all_at(&[0xab; 8][..there], middle as u64);
}

/// Names that the store will want.
fn coming(dir: &Path, end: &str) -> Vec<String> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten();
    let numbers = names
        .filter_map(|entry| entry.file_name().to_str()?.split('.').next()?.parse::<u64>().ok());
    let last = numbers.max().unwrap_or(0);
    (last + 1..last + 9).map(|number| format!("{number:06}.{end}")).collect()
}

pub(crate) fn all() -> Vec<Accident> {
    let mut all = vec![];
    for moment in [Moment::Open, Moment::Closed] {
        for which in FILES {
            for how in HARMS {
                // What a log says of others is said by the next log.
                let name = format!("{which} {how} while {moment:?}").to_lowercase();
                all.push(accident(moment, name, move |stage| harm(stage, which, how)));
            }
        }
        for end in ["table", "wal", "manifest", "spill"] {
            let name = format!("foreign files under coming names of a {end} while {moment:?}");
            all.push(accident(moment, name.to_lowercase(), move |stage| {
                let names = coming(&stage.data(), end);
                // An opening cannot know that a log is none of its own. It says which file it is.
                stage.is_harmed |= end == "wal";
                names.iter().for_each(|name| stage.add_foreign(name));
                Ok(())
            }));
        }
        if moment == Moment::Closed {
            for how in ["loses its end", "becomes empty"] {
                let name = format!("the oldest log {how} after three lives of one synced write");
                let early = accident(moment, name, move |stage| {
                    for _ in 0..3 {
                        stage.open();
                        stage.write_synced(1);
                        stage.close();
                    }
                    harm(stage, "the oldest log", how)
                });
                all.push(Accident { is_early: true, ..early });
            }
        }
        let name = format!("foreign files under other names while {moment:?}");
        all.push(accident(moment, name.to_lowercase(), |stage| {
            ["notes.txt", "000001.table.bak", "lock", "table"].iter().for_each(|name| {
                stage.add_foreign(name);
            });
            Ok(())
        }));
    }
    all
}
