//! Records what callers do, for keys that a hash picks.
//!
//! A key is recorded with all that is done to it, or not at all (Waldspurger, Park, Garthwaite,
//! Ahmad: "Efficient MRC construction with SHARDS", FAST 2015). So the recorded part is a store of
//! its own: its memtables fill at the same moments if they are as much smaller. Scans are picked by
//! their count, because they begin anywhere. Range deletes are all recorded.

mod file;

pub(crate) use file::{KeyspaceLine, Picked};

use crate::options::RecordOptions;
use crate::stats::Counts;
use file::RecordFile;
use lsmith_storage::env::Env;
use lsmith_storage::error::Result;
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::Ordering::Relaxed;
use lsmith_storage::sync::unscheduled::AtomicU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of the hash that picks keys. Filters have another one: the hashes of the keys that are
/// picked must look random to the filters of a store that replays them.
const SEED: u64 = 0x7265_636f_7264_6564;

/// A recording, as [`Store::recording`](crate::Store::recording) and
/// [`Store::stop_recording`](crate::Store::stop_recording) tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// Its file.
    pub path: PathBuf,
    /// Of as many keys one is recorded.
    pub one_in: u32,
    /// The operations recorded so far, without the keys that were there at its beginning.
    pub ops: u64,
    /// The keys recorded that were there at its beginning.
    pub base_keys: u64,
    /// True once all keys that were there at its beginning have been looked at, or if none were to
    /// be.
    pub has_base: bool,
    /// The bytes of the file, and of lines that wait to be written.
    pub bytes: u64,
    /// Why the recording has ended by itself, if it has: it is full, its time is over, or a write
    /// failed.
    pub ended: Option<String>,
}

/// Records operations while it is on.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Keys with a hash up to this are recorded. 0 while nothing is.
    bar: AtomicU64,
    one_in: AtomicU64,
    /// Scans since the recording began.
    scans: AtomicU64,
    file: Mutex<Option<RecordFile>>,
    env: Arc<dyn Env>,
    counts: Arc<Counts>,
}

impl Recorder {
    /// Returns a recorder that is off. It writes by `env`, also outside of the directory of the
    /// store, and adds what `counts` has counted to the recording.
    pub(crate) fn new(env: &Arc<dyn Env>, counts: &Arc<Counts>) -> Recorder {
        Recorder {
            bar: AtomicU64::new(0),
            one_in: AtomicU64::new(1),
            scans: AtomicU64::new(0),
            file: Mutex::new(None),
            env: Arc::clone(env),
            counts: Arc::clone(counts),
        }
    }

    /// Returns true if operations on `key`, without the id of a member, are recorded now.
    #[inline(always)]
    pub(crate) fn wants(&self, key: &[u8]) -> bool {
        let bar = self.bar.load(Relaxed);
        bar != 0 && is_below(key, bar)
    }

    /// Returns true while operations are recorded.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.bar.load(Relaxed) != 0
    }

    /// Counts a scan. Returns true if it is recorded.
    #[inline]
    pub(crate) fn wants_scan(&self) -> bool {
        self.is_on() && self.scans.fetch_add(1, Relaxed).is_multiple_of(self.one_in.load(Relaxed))
    }

    /// Begins the recording in a new file at `path`. The caller keeps writers out.
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub(crate) fn begin(&self, path: &Path, options: &RecordOptions) -> Result<()> {
        let mut file = self.file.lock();
        let counts = self.counts.read();
        *file = Some(RecordFile::create(&*self.env, path, options, counts)?);
        self.one_in.store(u64::from(options.one_in), Relaxed);
        self.scans.store(0, Relaxed);
        self.bar.store(u64::MAX / u64::from(options.one_in), Relaxed);
        Ok(())
    }

    /// Ends the recording, and tells of it; `None` if there was none.
    ///
    /// # Errors
    /// `Full`, `Io`: the file lacks its last part then.
    pub(crate) fn end(&self) -> Result<Option<Recording>> {
        self.bar.store(0, Relaxed);
        let Some(mut file) = self.file.lock().take() else { return Ok(None) };
        file.close(&self.counts.read())?;
        Ok(Some(file.tell()))
    }

    /// Tells of the recording under way, or of the one that has ended by itself.
    pub(crate) fn tell(&self) -> Option<Recording> {
        self.file.lock().as_ref().map(RecordFile::tell)
    }

    /// Records `picked` of the keyspace that `keyspace` describes. Never fails: if the recording
    /// cannot go on, it ends.
    #[cold]
    pub(crate) fn note(&self, keyspace: &KeyspaceLine<'_>, picked: &Picked<'_>) {
        self.change(|file, now| file.note(keyspace, picked, now));
    }

    /// Records that all keys that were there at the beginning have been recorded.
    pub(crate) fn note_base(&self) {
        self.change(|file, _| file.note_base());
    }

    fn change(&self, change: impl FnOnce(&mut RecordFile, Duration)) {
        let now = self.env.now();
        let mut guard = self.file.lock();
        let Some(file) = guard.as_mut().filter(|file| !file.is_over()) else { return };
        // A panic of the environment ends the recording, and no operation of a caller.
        let done = panics::catch(|| {
            change(file, now);
            file.write_if_due(now, &self.counts);
        });
        if let Err(panic) = done {
            file.give_up(panic.to_string());
        }
        if file.is_over() {
            self.bar.store(0, Relaxed);
        }
    }
}

/// Returns true if the hash of `key` is at most `bar`.
#[inline]
fn is_below(key: &[u8], bar: u64) -> bool {
    xxh3_64_with_seed(key, SEED) <= bar
}
