//! Leases: what readers in other processes still read is not freed.
//!
//! A store has one writer and any number of readers beside it. A reader sees what the manifest said
//! at one [position](Position). The writer goes on: it removes files, and punches holes into
//! tables. So a reader holds a *lease*: a file in the folder `readers`, whose name is a position
//! and which the reader keeps locked. The system gives the lock back however the reader ends.
//!
//! * A reader looks at the manifest, takes the lease of that position, and then reads the manifest.
//!   So what it reads is as of that position or a later one.
//! * A writer that frees something has written to the manifest before that nobody needs it. It
//!   frees it at once if no lease is older than the manifest is now. Otherwise it waits.
//!
//! In every order of these steps, either the writer sees the lease, or the reader sees in the
//! manifest that it does not need what goes.
//!
//! Such a lease also keeps files that came after it, since the reader may have read the manifest
//! later. So once a reader has read all, it changes to a lease that is *settled*: its name also
//! says below which id all files are that the manifest named. File ids only grow, so an old
//! snapshot of a reader keeps what it may look at, and nothing that was made since.
//!
//! Writes never look for leases. Only what frees something does, and it finds no folder if there
//! never was a reader.
//!
//! A copy of the store that this process makes is made of the files of one moment. It [holds
//! up](Hold) everything that would be freed meanwhile.

use lsmith_storage::directory;
use lsmith_storage::env::Env;
use lsmith_storage::names::READERS;
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::fmt::{self, Debug};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most leases of a kind at one position. The last part of a lease's name is an integer below
/// this one, and this one times the bound of a settled lease. Versions that know no settled leases
/// take one for a lease without a bound.
const SAME_MAX: u64 = 1 << 20;

/// A moment of the manifest: its file id, and the bytes of the records in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) manifest: u64,
    pub(crate) bytes: u64,
}

impl Position {
    /// Behind all positions.
    const MAX: Position = Position { manifest: u64::MAX, bytes: u64::MAX };
}

/// The lease of a reader. Dropping it gives it back.
pub(crate) struct Lease {
    env: Arc<dyn Env>,
    path: PathBuf,
    _lock: Box<dyn Debug + Send + Sync>,
}

impl Lease {
    /// Takes a lease at `position` of the store in `dir`. With `below` it is settled: the manifest
    /// was read at `position`, and its reader needs no file with this id or a greater one.
    ///
    /// # Errors
    /// Fails with `Unsupported` if the environment cannot lock files.
    pub(crate) fn take(
        env: &Arc<dyn Env>,
        dir: &Path,
        position: Position,
        below: Option<u64>,
    ) -> io::Result<Lease> {
        let folder = dir.join(READERS);
        env.create_dir_all(&folder)?;
        let Position { manifest, bytes } = position;
        // Without room for the bound in the name, the lease keeps more.
        let bound = below.filter(|below| *below < u64::MAX / SAME_MAX).unwrap_or(0) * SAME_MAX;
        for last in bound..bound + SAME_MAX {
            let path = folder.join(format!("{manifest:06}.{bytes}.{last}"));
            match env.lock_file(&path) {
                // Another reader has it, or the writer looks whether one has.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(lock) => return Ok(Lease { env: Arc::clone(env), path, _lock: lock }),
            }
        }
        Err(io::ErrorKind::QuotaExceeded.into())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Removed while it is locked, so that this removes no file of another reader.
        directory::remove(&*self.env, &self.path, "a lease");
    }
}

impl Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.path).finish()
    }
}

/// Returns true if a living reader has a lease of the store in `dir`, or if that cannot be found
/// out. Removes leases of readers that died.
pub(crate) fn has_readers(env: &Arc<dyn Env>, dir: &Path) -> bool {
    Leases::new(env, dir).look(Position::MAX).is_needed(u64::MIN, Position::MAX)
}

/// Something to be done when no reader needs a part of a file any more.
struct Waiting {
    /// Where the manifest was when it could have been done, if there had been no reader.
    since: Position,
    /// The id of the file.
    file: u64,
    free: Box<dyn FnOnce() + Send>,
}

/// The writer's side: what waits for readers.
pub(crate) struct Leases {
    env: Arc<dyn Env>,
    folder: PathBuf,
    /// Where the manifest is now.
    now: Mutex<Position>,
    /// What waits for readers, oldest first.
    waiting: Mutex<Vec<Waiting>>,
    /// False if nothing waits.
    waits: AtomicBool,
    /// The number of live holds.
    holds: AtomicU64,
}

/// What a look for readers has found.
#[derive(Clone, Debug)]
struct Look {
    /// Where the manifest was before the look.
    at: Position,
    /// The positions of the leases of living readers below that one, and the ids below which the
    /// files are that they need.
    leases: Vec<(Position, u64)>,
}

impl Look {
    /// Returns true if a reader needs what is in file id `file` and could go from `since` on.
    fn is_needed(&self, file: u64, since: Position) -> bool {
        self.leases.iter().any(|(position, below)| *position < since && file < *below)
    }

    /// Returns true if what is in file id `file` and could go from `since` on can go now. Of
    /// what could go only after the look, it says nothing: a reader may have come in between.
    fn frees(&self, file: u64, since: Position) -> bool {
        since <= self.at && !self.is_needed(file, since)
    }
}

/// Keeps everything from being freed as long as it lives.
#[derive(Debug)]
pub(crate) struct Hold(Arc<Leases>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::AcqRel);
        panics::logged("the environment", || self.0.free_waiting());
    }
}

impl Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Leases {
    /// Returns the leases on the store in `dir`, whose manifest is not written yet.
    pub(crate) fn new(env: &Arc<dyn Env>, dir: &Path) -> Leases {
        Leases {
            env: Arc::clone(env),
            folder: dir.join(READERS),
            now: Mutex::default(),
            waiting: Mutex::default(),
            waits: AtomicBool::new(false),
            holds: AtomicU64::new(0),
        }
    }

    /// Keeps everything that would be freed from now on, until the hold is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.holds.fetch_add(1, Ordering::AcqRel);
        Hold(Arc::clone(self))
    }

    fn is_held(&self) -> bool {
        self.holds.load(Ordering::Acquire) > 0
    }

    /// Records that the manifest has come to `position`.
    pub(crate) fn note(&self, position: Position) {
        *self.now.lock() = position;
    }

    /// Calls `free` as soon as no reader can need what it frees of file id `file`: now, or
    /// later on a thread that frees something or merges. The manifest says already that the store
    /// does not need it.
    pub(crate) fn free(&self, file: u64, free: impl FnOnce() + Send + 'static) {
        let look = self.look_now();
        if self.is_held() || !look.frees(file, look.at) {
            self.waiting.lock().push(Waiting { since: look.at, file, free: Box::new(free) });
            self.waits.store(true, Ordering::Release);
        } else {
            free();
        }
        self.free_up_to(&look);
    }

    /// Removes the file at `path`, which has the id `file` and which `what` describes, as
    /// [`free`](Leases::free) does.
    pub(crate) fn remove(&self, file: u64, path: PathBuf, what: &'static str) {
        let env = Arc::clone(&self.env);
        self.free(file, move || directory::remove(&*env, &path, what));
    }

    /// Frees what has waited for leases that were given back.
    pub(crate) fn free_waiting(&self) {
        if self.waits.load(Ordering::Acquire) {
            self.free_up_to(&self.look_now());
        }
    }

    /// Looks for readers that may need what the store does not need now.
    fn look_now(&self) -> Look {
        let now = *self.now.lock();
        self.look(now)
    }

    /// Frees what has waited, as far as that is possible, and forgets the rest. The next opening of
    /// the store finds it.
    pub(crate) fn close(&self) {
        self.free_waiting();
        let rest = std::mem::take(&mut *self.waiting.lock());
        drop(rest);
    }

    /// Frees what no lease keeps that `look` has found.
    fn free_up_to(&self, look: &Look) {
        let mut waiting = self.waiting.lock();
        if self.is_held() || waiting.is_empty() {
            return;
        }
        let (free, rest) = std::mem::take(&mut *waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|waiting| look.frees(waiting.file, waiting.since));
        self.waits.store(!rest.is_empty(), Ordering::Release);
        *waiting = rest;
        drop(waiting);
        for waiting in free {
            // It may be the work of another thread, which a panic must not stop.
            panics::logged("the environment", waiting.free);
        }
    }

    /// Looks for readers below the position `at`. If it cannot be found out, one may need anything.
    /// Removes leases of readers that died.
    fn look(&self, at: Position) -> Look {
        let names = match self.env.list(&self.folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::warn!(path = %self.folder.display(), %error, "cannot look for readers");
                return Look { at, leases: vec![(Position::default(), u64::MAX)] };
            }
        };
        let living = |name: &str| {
            let path = self.folder.join(name);
            match self.env.lock_file(&path) {
                Ok(_lock) => {
                    directory::remove(&*self.env, &path, "the lease of a dead reader");
                    false
                }
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            }
        };
        let named = names.iter().filter_map(|name| Some((parse(name)?, name)));
        let older = named.filter(|((position, _), _)| *position < at);
        let leases = older.filter(|(_, name)| living(name)).map(|(lease, _)| lease).collect();
        Look { at, leases }
    }
}

/// Returns the position in the name of a lease, and the id below which its files are. Returns
/// `None` if it is no such name.
fn parse(name: &str) -> Option<(Position, u64)> {
    let mut parts = name.split('.');
    let mut integer = || parts.next()?.parse::<u64>().ok();
    let (manifest, bytes, last) = (integer()?, integer()?, integer()?);
    let below = Some(last / SAME_MAX).filter(|below| *below > 0).unwrap_or(u64::MAX);
    parts.next().is_none().then_some((Position { manifest, bytes }, below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_storage::env::MemEnv;

    const DIR: &str = "/store";

    fn at(manifest: u64, bytes: u64) -> Position {
        Position { manifest, bytes }
    }

    fn made() -> (Arc<dyn Env>, Leases) {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        env.create_dir_all(Path::new(DIR)).unwrap();
        let leases = Leases::new(&env, Path::new(DIR));
        (env, leases)
    }

    fn has(env: &Arc<dyn Env>, name: &str) -> bool {
        env.file_bytes(&Path::new(DIR).join(name)).is_ok()
    }

    fn take(env: &Arc<dyn Env>, position: Position) -> Lease {
        Lease::take(env, Path::new(DIR), position, None).unwrap()
    }

    fn remove(env: &Arc<dyn Env>, leases: &Leases, name: &str) {
        remove_file(env, leases, name, 7);
    }

    fn remove_file(env: &Arc<dyn Env>, leases: &Leases, name: &str, file_id: u64) {
        let path = Path::new(DIR).join(name);
        env.create(&path).unwrap();
        leases.remove(file_id, path, "a file");
    }

    #[test]
    fn a_settled_lease_keeps_no_file_that_came_after_it() {
        let (env, leases) = made();
        leases.note(at(3, 100));
        let open = take(&env, at(3, 100));
        let settled = Lease::take(&env, Path::new(DIR), at(3, 100), Some(20)).unwrap();
        let twin = Lease::take(&env, Path::new(DIR), at(3, 100), Some(20)).unwrap();
        leases.note(at(4, 50));
        for (name, file_id) in [("old", 19), ("new", 20), ("newer", 21)] {
            remove_file(&env, &leases, name, file_id);
            assert!(has(&env, name), "the reader may have read the manifest later");
        }
        drop(open);
        leases.free_waiting();
        assert!(has(&env, "old") && !has(&env, "new") && !has(&env, "newer"));
        remove_file(&env, &leases, "newest", 22);
        assert!(!has(&env, "newest"));
        drop(settled);
        leases.free_waiting();
        assert!(has(&env, "old"), "the twin reads on");
        drop(twin);
        leases.free_waiting();
        assert!(!has(&env, "old"));
    }

    #[test]
    fn what_is_freed_waits_for_older_leases_only() {
        let (env, leases) = made();
        leases.note(at(3, 100));
        remove(&env, &leases, "unread");
        assert!(!has(&env, "unread"), "there is no reader");
        let old = take(&env, at(3, 100));
        let twin = take(&env, at(3, 100));
        remove(&env, &leases, "known");
        assert!(!has(&env, "known"), "the readers read that it was not needed");
        leases.note(at(3, 200));
        remove(&env, &leases, "first");
        leases.note(at(12, 50));
        let new = take(&env, at(3, 200));
        remove(&env, &leases, "second");
        drop(old);
        leases.free_waiting();
        assert!(has(&env, "first") && has(&env, "second"), "the twin reads on");
        drop(twin);
        leases.free_waiting();
        assert!(!has(&env, "first") && has(&env, "second"));
        drop(new);
        leases.free_waiting();
        assert!(!has(&env, "second"));
        assert_eq!(env.list(&Path::new(DIR).join(READERS)).unwrap(), Vec::<String>::new());
    }

    /// What broke: a thread that had found no reader freed what another thread had left to wait for
    /// one that came meanwhile. Reads in that reader then met holes.
    #[test]
    fn a_look_says_nothing_of_what_goes_after_it() {
        let (env, leases) = made();
        leases.note(at(3, 100));
        let look = leases.look_now();
        let lease = take(&env, at(3, 100));
        leases.note(at(3, 200));
        remove(&env, &leases, "read");
        leases.free_up_to(&look);
        assert!(has(&env, "read"), "a reader needs it");
        drop(lease);
        leases.free_waiting();
        assert!(!has(&env, "read"));
    }

    #[test]
    fn what_is_freed_waits_for_copies_too() {
        let (env, leases) = made();
        let leases = Arc::new(leases);
        leases.note(at(3, 100));
        let [one, two] = [leases.hold(), leases.hold()];
        remove(&env, &leases, "copied");
        drop(one);
        assert!(has(&env, "copied"));
        let lease = take(&env, at(3, 50));
        drop(two);
        assert!(has(&env, "copied"), "a reader needs it");
        drop(lease);
        leases.free_waiting();
        assert!(!has(&env, "copied"));
    }

    #[test]
    fn dead_readers_and_strangers_hold_nothing() {
        let (env, leases) = made();
        drop(take(&env, at(1, 1)));
        for name in ["readers/000001.32.0", "readers/other", "readers/1.2", "readers/1.2.3.4"] {
            env.create(&Path::new(DIR).join(name)).unwrap();
        }
        leases.note(at(3, 100));
        remove(&env, &leases, "unread");
        assert!(!has(&env, "unread") && !has(&env, "readers/000001.32.0"));
        assert!(has(&env, "readers/other"));
    }

    #[test]
    fn what_still_waits_is_forgotten_when_the_store_closes() {
        let (env, leases) = made();
        let _lease = take(&env, at(1, 1));
        leases.note(at(3, 100));
        remove(&env, &leases, "read");
        leases.close();
        assert!(has(&env, "read"));
    }
}
