//! The table of accidents. This file has accidents of directories, and of other processes beside;
//! `files.rs`, `processes.rs` and `systems.rs` have more.

use crate::stage::{Place, Played, Process, Stage, can};
use crate::{files, processes, system, systems};
use std::fs;
use std::path::Path;

/// When an accident happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the store is opened.
    Closed,
    /// Between two writes of a process that has the store open.
    Open,
}

/// What can happen to a store.
pub(crate) struct Accident {
    pub(crate) name: String,
    /// The only place where it can happen, if there is one.
    pub(crate) place: Option<Place>,
    pub(crate) moment: Moment,
    /// True if it happens to a new store: what a longer life leaves behind would hide the harm.
    pub(crate) is_early: bool,
    pub(crate) play: Box<dyn Fn(&mut Stage) -> Played + Sync>,
}

/// Returns an accident that can happen anywhere.
pub(crate) fn accident(
    moment: Moment,
    name: impl Into<String>,
    play: impl Fn(&mut Stage) -> Played + Sync + 'static,
) -> Accident {
    Accident { name: name.into(), place: None, moment, is_early: false, play: Box::new(play) }
}

/// Returns all accidents.
pub(crate) fn all() -> Vec<Accident> {
    [directories(), processes::all(), others(), files::all(), systems::all()]
        .into_iter()
        .flatten()
        .collect()
}

/// Changes a name, now and back when the life is over.
fn rename(stage: &mut Stage, from: &Path, to: &Path) -> Played {
    can(fs::rename(from, to))?;
    // A device that fails later must not undo it.
    can(system::sync_dirs(from, to))?;
    let (from, to) = (from.to_path_buf(), to.to_path_buf());
    stage.note(format!("{} becomes {}", from.display(), to.display()));
    stage.later(move |_| {
        fs::rename(&to, &from).unwrap();
        Ok(())
    });
    Ok(())
}

/// Puts another store, or an empty directory, where the directory of the store was.
fn replace(stage: &mut Stage, by_a_store: bool) -> Played {
    let (data, moved, place) = (stage.data(), stage.root.join("moved"), stage.root.join("other"));
    if by_a_store {
        let _none = fs::remove_dir_all(&place);
        stage.add_store(&place)?;
    } else {
        can(fs::create_dir_all(&place))?;
    }
    if moved.exists() || !data.exists() {
        return Err("it has already gone".into());
    }
    rename(stage, &data, &moved)?;
    rename(stage, &place, &data)
}

fn directories() -> Vec<Accident> {
    vec![
        accident(Moment::Open, "chdir to a place with an empty directory of the name", |stage| {
            let place = stage.root.join("elsewhere");
            if stage.is_open {
                stage.ask(&format!("chdir {}", place.display()));
            }
            Ok(())
        }),
        accident(Moment::Open, "chdir to a place with another store of the name", |stage| {
            let place = stage.root.join("elsewhere");
            if !stage.others.iter().any(|(dir, _)| *dir == place.join("data")) {
                stage.add_store(&place.join("data"))?;
            }
            if stage.is_open {
                stage.ask(&format!("chdir {}", place.display()));
            }
            Ok(())
        }),
        accident(Moment::Open, "the directory is renamed", |stage| {
            let (data, moved) = (stage.data(), stage.root.join("moved"));
            if moved.exists() {
                return Err("it has already gone".into());
            }
            rename(stage, &data, &moved)
        }),
        accident(
            Moment::Open,
            "the directory is renamed, and an empty one takes its place",
            |stage| replace(stage, false),
        ),
        accident(Moment::Open, "the directory is renamed, and a store takes its place", |stage| {
            replace(stage, true)
        }),
        accident(Moment::Open, "an older copy of the directory takes its place", |stage| {
            let (data, moved, copy) =
                (stage.data(), stage.root.join("moved"), stage.root.join("copy"));
            if moved.exists() || !data.exists() {
                return Err("it has already gone".into());
            }
            let _none = fs::remove_dir_all(&copy);
            stage.others.retain(|(dir, _)| *dir != copy);
            copy_beside(stage, &data, &copy, 0)?;
            stage.write(5);
            rename(stage, &data, &moved)?;
            rename(stage, &copy, &data)
        }),
    ]
}

/// Copies a directory file by file, in the order of names, as `cp -r` does. Between two files the
/// child writes `writes` batches.
fn copy_beside(stage: &mut Stage, from: &Path, to: &Path, writes: u64) -> Played {
    stage.note(format!("{} is copied to {}", from.display(), to.display()));
    can(fs::create_dir_all(to))?;
    let mut names: Vec<_> =
        fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        // What the store has removed meanwhile is not copied.
        if path.is_file() {
            let _gone_or_full = fs::copy(&path, to.join(path.file_name().unwrap()));
        }
        stage.write(writes);
    }
    Ok(())
}

/// Opens the copy of a directory beside its original, reads and writes there. What the copy holds
/// must be a prefix of what was acknowledged, with all that was synced before it was begun; or an
/// error says what is wrong.
fn copy_and_open(stage: &mut Stage, writes: u64) -> Played {
    let (data, copy) = (stage.data(), stage.root.join("copy"));
    if stage.is_moved() || stage.is_harmed {
        return Err("the directory has gone, or a file there is harmed".into());
    }
    let _none = fs::remove_dir_all(&copy);
    let mut ledger = stage.ledger.clone();
    copy_beside(stage, &data, &copy, writes)?;
    ledger.tried = stage.ledger.tried.clone();
    // Judged with the others, when the life is over. What the original writes is not its own.
    let mut child = Process::start(&stage.root);
    if child.ask(&format!("open {}", copy.display())).is_ok() {
        let answer = child.ask("write 9000 10 sync");
        stage.note(format!("in the copy: {} lines", answer.lines.len()));
        ledger.tried.extend(9000..9010);
    }
    ledger.acknowledged = ledger.synced.clone();
    drop(child);
    // A second copy replaces the first.
    stage.others.retain(|(dir, _)| *dir != copy);
    stage.others.push((copy, ledger));
    Ok(())
}

/// Another process opens the store, and writes if it can: whatever either of the two acknowledges
/// is there.
fn another_opens(stage: &mut Stage) -> Played {
    let data = stage.data();
    if stage.is_moved() {
        return Err("the directory has gone".into());
    }
    stage.check_foreign();
    stage.forget_numbered();
    let mut other = Process::start(&stage.root);
    let opened = other.ask(&format!("open {}", data.display()));
    stage.note(format!("the other: {opened:?}"));
    if opened.is_ok() {
        let from = stage.ledger.next;
        stage.ledger.tried.extend(from..from + 10);
        stage.ledger.next = from + 10;
        let answer = other.ask(&format!("write {from} 10 sync"));
        answer.lines.iter().for_each(|line| stage.ledger.note(line));
        // The first one goes on beside it.
        stage.write(10);
        other.ask("close");
    }
    Ok(())
}

fn others() -> Vec<Accident> {
    vec![
        accident(Moment::Open, "another process opens the store", another_opens),
        accident(Moment::Open, "lock is removed and another process opens the store", |stage| {
            let _gone = fs::remove_file(stage.data().join("LOCK"));
            another_opens(stage)
        }),
        accident(Moment::Open, "lock is replaced and another process opens the store", |stage| {
            let (new, lock) = (stage.root.join("lock"), stage.data().join("LOCK"));
            if stage.data().exists() && fs::write(&new, "").is_ok() {
                can(fs::rename(new, lock))?;
            }
            another_opens(stage)
        }),
        accident(Moment::Open, "readers beside the writer", |stage| {
            let data = stage.data();
            let mut reader = Process::start(&stage.root);
            let looked = reader.ask(&format!("look {}", data.display()));
            if looked.is_ok() {
                stage.write(8);
                stage.work();
                let refreshed = reader.ask("refresh");
                let read = reader.ask("read");
                stage.note(format!("the reader: {refreshed:?} {} lines", read.lines.len()));
                assert!(refreshed.end.is_none() && read.end.is_none(), "{refreshed:?} {read:?}");
            }
            Ok(())
        }),
        accident(Moment::Open, "the directory is copied file by file", |stage| {
            copy_and_open(stage, 0)
        }),
        accident(Moment::Open, "the directory is copied while it is written", |stage| {
            copy_and_open(stage, 4)
        }),
        accident(Moment::Open, "a checkpoint is opened beside its original", |stage| {
            let to = stage.root.join("checkpoint");
            let _none = fs::remove_dir_all(&to);
            if !stage.is_open || !stage.ask(&format!("checkpoint {}", to.display())).is_ok() {
                let _a_part = fs::remove_dir_all(&to);
                return Ok(());
            }
            let mut ledger = stage.ledger.clone();
            ledger.synced = ledger.acknowledged.clone();
            let mut child = Process::start(&stage.root);
            for line in [format!("open {}", to.display()), "write 9100 10 sync".into()] {
                let answer = child.ask(&line);
                stage.note(format!("in the checkpoint: {line} -> {:?}", answer.error()));
            }
            ledger.tried.extend(9100..9110);
            stage.write(5);
            // A second checkpoint replaces the first.
            stage.others.retain(|(dir, _)| *dir != to);
            stage.others.push((to, ledger));
            Ok(())
        }),
    ]
}
