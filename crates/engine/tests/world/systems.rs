//! Accidents of file systems, and of calls of the system.

use crate::accidents::{Accident, Moment, accident};
use crate::stage::{Place, Played, Process, Stage, TMPFS, can, run};
use crate::system;
use std::fs;
use std::process::Command;

/// Calls that fail with a code of the system, in the process that has the store.
const DENIED: [(&str, &str); 12] = [
    ("fallocate", "EOPNOTSUPP"),
    ("link", "EPERM"),
    ("flock", "ENOLCK"),
    ("sync", "EIO"),
    ("write", "EIO"),
    ("write", "ENOSPC"),
    ("read", "EIO"),
    ("rename", "EIO"),
    ("unlink", "EPERM"),
    ("truncate", "EIO"),
    ("list", "EIO"),
    ("copy", "ENOSYS"),
];

fn on(place: Place, accident: Accident) -> Accident {
    Accident { place: Some(place), ..accident }
}

/// Fills the file system, until the life is over.
fn fill(stage: &mut Stage, left: usize) -> Played {
    use std::io::Write;
    let path = stage.root.join("filler");
    let mut file = fs::File::create(&path).map_err(|error| error.to_string())?;
    while file.write_all(&[7; 4096]).is_ok() {}
    drop(file);
    let bytes = can(fs::metadata(&path))?.len();
    let file = can(fs::OpenOptions::new().write(true).open(&path))?;
    can(file.set_len(bytes.saturating_sub(left as u64)))?;
    stage.note(format!("{left} bytes are left"));
    stage.later(move |_| {
        let _gone = fs::remove_file(&path);
        Ok(())
    });
    Ok(())
}

/// Unmounts and mounts again, after the child is gone.
fn remount(stage: &mut Stage) -> Played {
    stage.kill();
    system::unmount(&stage.root).map_err(|error| error.to_string())?;
    stage.mount()
}

/// Lets a process read what is there; it must not fail, unless an earlier accident has harmed a
/// file or moved the directory.
fn can_be_read(stage: &mut Stage) {
    let mut reader = Process::start(&stage.root);
    let looked = reader.ask(&format!("look {}", stage.data().display()));
    let read = reader.ask("read");
    let is_whole = !stage.is_harmed && !stage.is_moved();
    if is_whole && !(looked.is_ok() && read.is_ok()) {
        stage.fail(&format!("a reader cannot read: {looked:?} {:?}", read.error()));
    }
}

pub(crate) fn all() -> Vec<Accident> {
    let mut all = vec![];
    for moment in [Moment::Open, Moment::Closed] {
        for (call, code) in DENIED {
            let name = format!("{call} fails with {code} from {moment:?} on");
            all.push(accident(moment, name, move |stage| {
                if moment == Moment::Open && !stage.is_open {
                    return Ok(());
                }
                // What the child said of a sync that failed is not what the device has. Here the
                // file system still has it.
                let answer = stage.ask(&format!("deny {call} {code}"));
                match answer.lines.iter().any(|line| line == "ok") {
                    true => Ok(()),
                    false => Err("no filter of system calls here".into()),
                }
            }));
        }
        for left in [0, 5000, 60_000] {
            let name = format!("{left} bytes are left on the device while {moment:?}");
            all.push(on(Place::Tmpfs, accident(moment, name, move |stage| fill(stage, left))));
        }
    }
    all.extend(mounts());
    all
}

fn mounts() -> Vec<Accident> {
    let tmpfs = |stage: &Stage, flags, options: &str| {
        let flags = flags | libc::MS_REMOUNT;
        let mounted = system::mount("none", &stage.root, "tmpfs", flags, options);
        mounted.map_err(|error| error.to_string())
    };
    vec![
        on(Place::Ramfs, accident(Moment::Closed, "a file system without fallocate", |_| Ok(()))),
        on(
            Place::Tmpfs,
            accident(Moment::Closed, "the file system is read-only", move |stage| {
                tmpfs(stage, libc::MS_RDONLY, TMPFS)?;
                can_be_read(stage);
                stage.later(move |stage| tmpfs(stage, 0, TMPFS));
                Ok(())
            }),
        ),
        on(
            Place::Tmpfs,
            accident(Moment::Open, "no more files can be made", move |stage| {
                tmpfs(stage, 0, "size=3m,nr_inodes=12")
                    .or_else(|_| tmpfs(stage, 0, "size=3m,nr_inodes=30"))?;
                stage.later(move |stage| tmpfs(stage, 0, TMPFS));
                Ok(())
            }),
        ),
        on(Place::Ext4, accident(Moment::Open, "the file system goes read-only", go_read_only)),
        on(Place::Ext4, accident(Moment::Open, "the device fails", |stage| shut_down(stage, 1))),
        on(Place::Ext4, accident(Moment::Open, "power fails", |stage| shut_down(stage, 2))),
        on(Place::Ext4, accident(Moment::Closed, "names fold case", fold_case)),
    ]
}

/// The system finds an error in its file system, and makes it read-only.
fn go_read_only(stage: &mut Stage) -> Played {
    let mut findmnt = Command::new("findmnt");
    let output = findmnt.args(["-n", "-o", "SOURCE"]).arg(&stage.root).output();
    let device = String::from_utf8(output.map_err(|error| error.to_string())?.stdout).unwrap();
    let device = device.trim().trim_start_matches("/dev/");
    let path = format!("/sys/fs/ext4/{device}/trigger_fs_error");
    fs::write(&path, "1").map_err(|error| format!("{path}: {error}"))?;
    stage.note("the file system has gone read-only");
    can_be_read(stage);
    // What was not synced may never have reached the device.
    stage.may_lose_unsynced = true;
    stage.later(remount);
    Ok(())
}

/// Makes another store, in a directory in which `LOCK` and `lock` are one name.
fn fold_case(stage: &mut Stage) -> Played {
    let folded = stage.root.join("folded");
    if !folded.exists() {
        can(fs::create_dir(&folded))?;
        let image = stage.root.join("image");
        can(fs::File::create(&image).and_then(|file| file.set_len(12 << 20)))?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-O", "casefold"]).arg(&image))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&folded))?;
        run(Command::new("chattr").arg("+F").arg(&folded))?;
    }
    stage.add_store(&folded.join("data"))
}

/// From now on every call fails with EIO. With `flags` 2 what was not synced is gone afterwards.
fn shut_down(stage: &mut Stage, flags: u32) -> Played {
    system::shut_down(&stage.root, flags).map_err(|error| format!("no shutdown: {error}"))?;
    stage.note(format!("the file system is shut down with {flags}"));
    stage.may_lose_unsynced = true;
    // A page that cannot be written to is a signal to who has it mapped.
    stage.may_die = true;
    stage.later(remount);
    Ok(())
}
