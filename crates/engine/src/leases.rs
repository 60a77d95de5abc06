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
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most leases at one position.
const SAME_MAX: u32 = 1 << 20;

/// A moment of the manifest: its number, and the bytes of the records in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) manifest: u64,
    pub(crate) bytes: u64,
}

/// The lease of a reader. Dropping it gives it back.
pub(crate) struct Lease {
    env: Arc<dyn Env>,
    path: PathBuf,
    _lock: Box<dyn Debug + Send + Sync>,
}

impl Lease {
    /// Takes a lease at `position` of the store in `dir`.
    ///
    /// # Errors
    /// Fails with `Unsupported` if the environment cannot lock files.
    pub(crate) fn take(env: &Arc<dyn Env>, dir: &Path, position: Position) -> io::Result<Lease> {
        let folder = dir.join(READERS);
        env.create_dir_all(&folder)?;
        let Position { manifest, bytes } = position;
        for number in 0..SAME_MAX {
            let path = folder.join(format!("{manifest:06}.{bytes}.{number}"));
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
    Leases::new(env, dir).oldest().is_some()
}

/// Something to be done when no reader needs a part of a file any more.
type Free = Box<dyn FnOnce() + Send>;

/// The writer's side: what waits for readers.
pub(crate) struct Leases {
    env: Arc<dyn Env>,
    folder: PathBuf,
    /// Where the manifest is now.
    now: Mutex<Position>,
    /// What waits for leases that are older than the position beside it, oldest first.
    waiting: Mutex<VecDeque<(Position, Free)>>,
    /// False if nothing waits.
    waits: AtomicBool,
    /// The number of live holds.
    holds: AtomicU64,
}

/// What a look for readers has found.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// Where the manifest was before the look.
    at: Position,
    /// The position of the oldest lease.
    oldest: Option<Position>,
}

impl Look {
    /// Returns true if no reader needs what could go from `since` on. Of what could go only after
    /// the look, it says nothing: a reader may have come in between.
    fn frees(self, since: Position) -> bool {
        since <= self.at && self.oldest.is_none_or(|oldest| since <= oldest)
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

    /// Calls `free` as soon as no reader can need what it frees: now, or later on a thread that
    /// frees something or merges. The manifest says already that the store does not need it.
    pub(crate) fn free(&self, free: impl FnOnce() + Send + 'static) {
        let look = self.look();
        if self.is_held() || !look.frees(look.at) {
            self.waiting.lock().push_back((look.at, Box::new(free)));
            self.waits.store(true, Ordering::Release);
        } else {
            free();
        }
        self.free_up_to(look);
    }

    /// Removes the file at `path`, which `what` describes, as [`free`](Leases::free) does.
    pub(crate) fn remove(&self, path: PathBuf, what: &'static str) {
        let env = Arc::clone(&self.env);
        self.free(move || directory::remove(&*env, &path, what));
    }

    /// Frees what has waited for leases that were given back.
    pub(crate) fn free_waiting(&self) {
        if self.waits.load(Ordering::Acquire) {
            self.free_up_to(self.look());
        }
    }

    /// Looks for readers.
    fn look(&self) -> Look {
        let at = *self.now.lock();
        Look { at, oldest: self.oldest() }
    }

    /// Frees what has waited, as far as that is possible, and forgets the rest. The next opening of
    /// the store finds it.
    pub(crate) fn close(&self) {
        self.free_waiting();
        let rest = std::mem::take(&mut *self.waiting.lock());
        drop(rest);
    }

    /// Frees what no lease keeps that `look` has found.
    fn free_up_to(&self, look: Look) {
        loop {
            let mut waiting = self.waiting.lock();
            if self.is_held() {
                return;
            }
            let next = waiting.pop_front_if(|(since, _)| look.frees(*since));
            self.waits.store(!waiting.is_empty(), Ordering::Release);
            drop(waiting);
            match next {
                // It may be the work of another thread, which a panic must not stop.
                Some((_, free)) => panics::logged("the environment", free),
                None => return,
            }
        }
    }

    /// Returns the position of the oldest lease of a living reader, or an older one if it cannot be
    /// found out. Removes leases of readers that died.
    fn oldest(&self) -> Option<Position> {
        let names = match self.env.list(&self.folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %self.folder.display(), %error, "cannot look for readers");
                return Some(Position::default());
            }
        };
        let mut leases: Vec<_> =
            names.iter().filter_map(|name| Some((parse(name)?, name))).collect();
        leases.sort_unstable();
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
        leases.into_iter().find(|(_, name)| living(name)).map(|(position, _)| position)
    }
}

/// Returns the position in the name of a lease, or `None` if it is no such name.
fn parse(name: &str) -> Option<Position> {
    let mut parts = name.split('.');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (manifest, bytes, _) = (number()?, number()?, number()?);
    parts.next().is_none().then_some(Position { manifest, bytes })
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

    fn remove(env: &Arc<dyn Env>, leases: &Leases, name: &str) {
        let path = Path::new(DIR).join(name);
        env.create(&path).unwrap();
        leases.remove(path, "a file");
    }

    #[test]
    fn what_is_freed_waits_for_older_leases_only() {
        let (env, leases) = made();
        leases.note(at(3, 100));
        remove(&env, &leases, "unread");
        assert!(!has(&env, "unread"), "there is no reader");
        let old = Lease::take(&env, Path::new(DIR), at(3, 100)).unwrap();
        let twin = Lease::take(&env, Path::new(DIR), at(3, 100)).unwrap();
        remove(&env, &leases, "known");
        assert!(!has(&env, "known"), "the readers read that it was not needed");
        leases.note(at(3, 200));
        remove(&env, &leases, "first");
        leases.note(at(12, 50));
        let new = Lease::take(&env, Path::new(DIR), at(3, 200)).unwrap();
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
        let look = leases.look();
        let lease = Lease::take(&env, Path::new(DIR), at(3, 100)).unwrap();
        leases.note(at(3, 200));
        remove(&env, &leases, "read");
        leases.free_up_to(look);
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
        let lease = Lease::take(&env, Path::new(DIR), at(3, 50)).unwrap();
        drop(two);
        assert!(has(&env, "copied"), "a reader needs it");
        drop(lease);
        leases.free_waiting();
        assert!(!has(&env, "copied"));
    }

    #[test]
    fn dead_readers_and_strangers_hold_nothing() {
        let (env, leases) = made();
        drop(Lease::take(&env, Path::new(DIR), at(1, 1)).unwrap());
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
        let _lease = Lease::take(&env, Path::new(DIR), at(1, 1)).unwrap();
        leases.note(at(3, 100));
        remove(&env, &leases, "read");
        leases.close();
        assert!(has(&env, "read"));
    }
}
