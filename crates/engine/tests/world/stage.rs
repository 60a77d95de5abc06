//! A place with a store, the process that uses it, and what that process has acknowledged.

use crate::child::{CHILD, KEYS};
use crate::system;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// The result of a play: why it cannot be played here, if it cannot.
pub(crate) type Played = Result<(), String>;

/// Returns what an accident has done to files, or why it cannot happen: an earlier one has filled
/// the device, or stopped writes to it. Panics at any other error.
pub(crate) fn can<T>(done: io::Result<T>) -> Result<T, String> {
    done.map_err(|error| {
        use io::ErrorKind::{ReadOnlyFilesystem, StorageFull};
        let is_known = matches!(error.kind(), ReadOnlyFilesystem | StorageFull)
            || error.raw_os_error() == Some(libc::EIO);
        assert!(is_known, "an accident cannot happen: {error}");
        format!("an earlier accident forbids it: {error}")
    })
}

/// The time after which a child counts as hanging. None takes a hundredth of it on an idle machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where temporary files are.
    Plain,
    /// 3 MiB of memory.
    Tmpfs,
    /// Memory, without `fallocate`.
    Ramfs,
    /// A file system of its own on a device, which can fail.
    Ext4,
}

/// The options of the small file system in memory.
pub(crate) const TMPFS: &str = "size=3m,nr_inodes=2000";

/// What the child said of its batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) next: u64,
    pub(crate) tried: BTreeSet<u64>,
    /// Acknowledged: there unless power was lost, or a file was damaged.
    pub(crate) acknowledged: BTreeSet<u64>,
    /// Acknowledged by a sync of its own or a later one: there.
    pub(crate) synced: BTreeSet<u64>,
    /// True if a repair has admitted that batches may be there in part.
    pub(crate) may_be_torn: bool,
}

impl Ledger {
    pub(crate) fn note(&mut self, line: &str) {
        let mut words = line.split(' ');
        let what = words.next().unwrap();
        let Some(number) = words.next().and_then(|word| word.parse().ok()) else { return };
        match what {
            "sync" => {
                self.acknowledged.insert(number);
                let up_to = self.acknowledged.range(..=number);
                self.synced.extend(up_to);
            }
            "buffer" => drop(self.acknowledged.insert(number)),
            "failed" => {}
            _ => return,
        }
        self.tried.insert(number);
        self.next = self.next.max(number + 1);
    }
}

/// An answer of a child.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) lines: Vec<String>,
    /// How the child ended meanwhile, if it did.
    pub(crate) end: Option<String>,
}

impl Answer {
    /// Returns the first line with an error.
    pub(crate) fn error(&self) -> Option<&str> {
        self.lines.iter().find_map(|line| line.strip_prefix("error "))
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.end.is_none() && self.error().is_none()
    }
}

thread_local! {
    /// True if the stores of the play of this thread are encrypted.
    static IS_ENCRYPTED: Cell<bool> = const { Cell::new(false) };
}

/// A process with a store.
pub(crate) struct Process {
    process: Child,
    /// The number of the process that answers: a forked one may have taken the place of the child.
    id: u32,
    hangs: bool,
    input: Option<ChildStdin>,
    told: Receiver<String>,
}

impl Process {
    /// Starts one whose current directory is `dir`.
    pub(crate) fn start(dir: &Path) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child::child", "--nocapture"]).env(CHILD, "1").current_dir(dir);
        command.envs(IS_ENCRYPTED.get().then_some((KEYS, "1")));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (send, told) = channel();
        let output = process.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _nobody_listens = send.send(line);
            }
        });
        let (id, input) = (process.id(), process.stdin.take());
        let mut started = Process { input, id, hangs: false, process, told };
        let answer = started.answer();
        assert!(answer.is_ok(), "{answer:?}");
        started
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Sends a line, and does not wait for the answer.
    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        // If it is dead, the answer says so.
        let _ = input.write_all(format!("{line}\n").as_bytes());
    }

    /// Returns the next line, or `None` if the process has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        match self.told.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(_) => {
                self.hangs = true;
                None
            }
        }
    }

    /// Returns the answer to what was sent.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = Answer::default();
        let mut panics = vec![];
        while let Some(line) = self.line() {
            match line.strip_prefix("> ") {
                Some(".") => {
                    assert!(panics.is_empty(), "the child panicked: {panics:?}");
                    return answer;
                }
                Some(line) => {
                    if let Some(id) = line.strip_prefix("process ") {
                        self.id = id.parse().unwrap();
                    }
                    answer.lines.push(line.to_string());
                }
                None => panics.push(line),
            }
        }
        if self.hangs {
            answer.end = Some("the child hangs".into());
            return answer;
        }
        let status = self.process.wait().unwrap();
        answer.end = Some(format!("the child ended with {status}: {}", panics.join("\n")));
        answer
    }

    pub(crate) fn ask(&mut self, line: &str) -> Answer {
        self.send(line);
        self.answer()
    }

    /// Waits until it has ended by itself, with all that it has forked.
    pub(crate) fn finish(mut self) {
        self.input = None;
        while self.line().is_some() {}
    }

    pub(crate) fn kill(&mut self) {
        system::signal(self.id, libc::SIGKILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        self.kill();
        let _ = self.process.kill();
        // Forked processes end, too, before others look at the store.
        while !self.hangs && self.line().is_some() {}
        let _ = self.process.wait();
    }
}

type Undo = Box<dyn FnOnce(&mut Stage) -> Played>;

pub(crate) struct Stage {
    pub(crate) place: Place,
    /// The file system of the store.
    pub(crate) root: PathBuf,
    pub(crate) child: Option<Process>,
    /// True if the child has the store open.
    pub(crate) is_open: bool,
    pub(crate) ledger: Ledger,
    /// Other stores, and what they hold.
    pub(crate) others: Vec<(PathBuf, Ledger)>,
    /// Files in the directory of the store that are not the store's.
    pub(crate) foreign: BTreeMap<PathBuf, Vec<u8>>,
    /// True if the child may be killed by the system: a file that it has mapped was shortened.
    pub(crate) may_die: bool,
    /// True if a file of the store was harmed, so that an error may say that something is lost.
    pub(crate) is_harmed: bool,
    /// True if writes that were not synced may be lost.
    pub(crate) may_lose_unsynced: bool,
    /// True if the end of what was written may be lost without a trace: see docs/durability.md.
    pub(crate) may_lose_end: bool,
    /// How the accidents showed themselves.
    pub(crate) outcomes: BTreeSet<&'static str>,
    undo: Vec<Undo>,
    /// What was said and done, for the message of a failure.
    pub(crate) history: Vec<String>,
    temp: TempDir,
}

impl Stage {
    /// Makes the stage of this thread. Its stores are encrypted if `is_encrypted`.
    pub(crate) fn new(place: Place, is_encrypted: bool) -> Result<Stage, String> {
        IS_ENCRYPTED.set(is_encrypted);
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        fs::create_dir(&root).unwrap();
        let stage = Stage {
            place,
            root,
            child: None,
            is_open: false,
            ledger: Ledger { next: 1, ..Ledger::default() },
            others: vec![],
            foreign: BTreeMap::new(),
            may_die: false,
            is_harmed: false,
            may_lose_unsynced: false,
            may_lose_end: false,
            outcomes: BTreeSet::new(),
            undo: vec![],
            history: vec![],
            temp,
        };
        if place != Place::Plain {
            system::own_mounts().map_err(|error| format!("no mounts of our own: {error}"))?;
            stage.mount()?;
        }
        for dir in ["home", "elsewhere/data"] {
            fs::create_dir_all(stage.root.join(dir)).unwrap();
        }
        Ok(stage)
    }

    pub(crate) fn mount(&self) -> Played {
        let mount = |kind, options| system::mount("none", &self.root, kind, 0, options);
        let mounted = match self.place {
            Place::Plain => return Ok(()),
            Place::Tmpfs => mount("tmpfs", TMPFS),
            Place::Ramfs => mount("ramfs", ""),
            Place::Ext4 => return self.mount_image(),
        };
        mounted.map_err(|error| format!("no {:?} here: {error}", self.place))
    }

    fn mount_image(&self) -> Played {
        let image = self.temp.path().join("image");
        if !image.exists() {
            fs::File::create(&image).unwrap().set_len(24 << 20).unwrap();
            run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        }
        let options = ["-t", "ext4", "-o", "loop,errors=remount-ro"];
        run(Command::new("mount").args(options).arg(&image).arg(&self.root))
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the directory of the store.
    pub(crate) fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.history.push(what.into());
    }

    /// Fails the play with `what`, and says what led to it.
    pub(crate) fn fail(&self, what: &str) -> ! {
        let history = self.history.iter().map(|line| format!("  {line}\n")).collect::<String>();
        panic!("{what}\nbecause:\n{history}")
    }

    /// Has `undo` done when the life is over.
    pub(crate) fn later(&mut self, undo: impl FnOnce(&mut Stage) -> Played + 'static) {
        self.undo.push(Box::new(undo));
    }

    /// Returns the child, which is started if there is none.
    pub(crate) fn child(&mut self) -> &mut Process {
        let home = self.home();
        self.child.get_or_insert_with(|| Process::start(&home))
    }

    /// Has the child do something, and notes what it says. Returns the answer.
    pub(crate) fn ask(&mut self, line: &str) -> Answer {
        self.child().send(line);
        self.hear(line)
    }

    /// Notes the answer of the child to `line`.
    pub(crate) fn hear(&mut self, line: &str) -> Answer {
        let answer = self.child().answer();
        self.note(format!("{line} -> {}", shorten(&answer.lines)));
        for told in &answer.lines {
            self.ledger.note(told);
            if told.starts_with("error ") || told.starts_with("failed ") {
                self.check_named(told);
                let opens = line.starts_with("open");
                self.outcomes.insert(if opens { "opening fails" } else { "writes fail" });
            }
        }
        if let Some(end) = &answer.end {
            self.note(end.clone());
            self.outcomes.insert("the process dies of SIGBUS");
            self.child = None;
            self.is_open = false;
            // The end of a process that another one has left behind is not told.
            let is_left = self.history.iter().any(|what| what.starts_with("leave "));
            if !self.may_die || !(end.contains("SIGBUS") || is_left) {
                self.fail("the child died");
            }
        }
        answer
    }

    /// Fails if an error of the system does not name its file.
    pub(crate) fn check_named(&self, error: &str) {
        let is_of_a_file = [" Io:", " Full:", " Corruption:", " NotFound:", " Unsupported:"];
        let names_it = error.contains("data") || error.contains(&*self.root.to_string_lossy());
        if is_of_a_file.iter().any(|kind| error.contains(kind)) && !names_it {
            self.fail(&format!("the error names no file: {error}"));
        }
    }

    /// Forgets foreign files that an opening may take for what a crash has left: numbered files
    /// that nothing names.
    pub(crate) fn forget_numbered(&mut self) {
        let is_numbered = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            let number = name.split('.').next().unwrap();
            number.parse::<u64>().is_ok() && !name.ends_with(".bak")
        };
        self.foreign.retain(|path, _| !is_numbered(path));
    }

    /// Opens the store in a child whose current directory is the one above it, unless it has moved:
    /// another store may lie there.
    pub(crate) fn open(&mut self) {
        self.check_foreign();
        self.forget_numbered();
        if self.root.join("moved").exists() {
            return;
        }
        self.is_open = self.ask("open data").is_ok();
    }

    /// Writes some batches, and syncs some of them.
    pub(crate) fn write(&mut self, count: u64) {
        self.write_as(count, "some");
    }

    pub(crate) fn write_synced(&mut self, count: u64) {
        self.write_as(count, "sync");
    }

    fn write_as(&mut self, count: u64, mode: &str) {
        if self.is_open {
            let from = self.ledger.next;
            self.ledger.tried.extend(from..from + count);
            self.ledger.next = from + count;
            self.ask(&format!("write {from} {count} {mode}"));
        }
    }

    pub(crate) fn work(&mut self) {
        if self.is_open {
            self.ask("work");
        }
    }

    /// Kills the child, as `signal` does.
    pub(crate) fn kill(&mut self) {
        self.note("the child is killed");
        self.child = None;
        self.is_open = false;
    }

    /// Closes the store and ends the child.
    pub(crate) fn close(&mut self) {
        if self.child.is_some() {
            self.ask("close");
        }
        self.is_open = false;
        if let Some(child) = self.child.take() {
            child.finish();
        }
    }

    pub(crate) fn undo(&mut self) {
        while let Some(undo) = self.undo.pop() {
            if let Err(error) = undo(self) {
                self.fail(&format!("cannot undo: {error}"));
            }
        }
    }

    /// Makes another store in `dir`, with some batches.
    pub(crate) fn add_store(&mut self, dir: &Path) -> Played {
        let mut child = Process::start(&self.root);
        let mut ledger = Ledger::default();
        let path = dir.display();
        for line in [format!("open {path}"), "write 5000 30 sync".into(), "close".into()] {
            let answer = child.ask(&line);
            if !answer.is_ok() {
                // The device of an earlier accident has no room, or cannot be written to.
                can(fs::write(self.root.join("probe"), [7; 1 << 16]))?;
                panic!("{answer:?}");
            }
            answer.lines.iter().for_each(|line| ledger.note(line));
        }
        child.finish();
        self.others.push((dir.to_path_buf(), ledger));
        Ok(())
    }

    /// Returns true if the directory of the store has gone from its place.
    pub(crate) fn is_moved(&self) -> bool {
        self.root.join("moved").exists() || !self.data().exists()
    }

    /// Puts a file that is not the store's into the directory of the store.
    pub(crate) fn add_foreign(&mut self, name: &str) {
        let bytes = format!("the work of somebody: {name}\n").repeat(40).into_bytes();
        let path = self.data().join(name);
        if self.is_moved() {
            return;
        }
        // The store may make a file of this name at the same time.
        let Ok(mut file) = fs::File::create_new(&path) else { return };
        if file.write_all(&bytes).and_then(|()| file.sync_all()).is_err() {
            return;
        }
        let _fails_later = system::sync_dirs(&path, &path);
        self.note(format!("a foreign file {name}"));
        self.foreign.insert(path, bytes);
    }

    /// Fails if a foreign file is not as it was.
    pub(crate) fn check_foreign(&self) {
        for (path, bytes) in &self.foreign {
            if fs::read(path).ok().as_ref() != Some(bytes) {
                self.fail(&format!("a foreign file was harmed: {}", path.display()));
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.child = None;
        if self.place != Place::Plain {
            let _ = system::unmount(&self.root);
        }
    }
}

/// Runs a command of the system.
pub(crate) fn run(command: &mut Command) -> Played {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Reads the file at `path`; nothing if it cannot be read.
pub(crate) fn bytes_of(path: &Path) -> Vec<u8> {
    let mut bytes = vec![];
    let _cut_short = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    bytes
}

/// Returns lines as one, without the middle of many.
fn shorten(lines: &[String]) -> String {
    let interesting = |line: &&String| !line.starts_with("sync ") && !line.starts_with("buffer ");
    let mut shown: Vec<&str> = lines.iter().filter(interesting).map(String::as_str).collect();
    let written = lines.len() - shown.len();
    if shown.len() > 4 {
        shown.drain(2..shown.len() - 2);
    }
    format!("{written} written; {}", shown.join(" | "))
}
