//! What opening a store leaves out of its files, and files that are not the store's.
//!
//! None of this is damage. Power loss, or the death of the process in the middle of an append,
//! tears the end of a log; what is behind a batch that is missing must not be seen, so that the
//! store opens on a prefix of the batches. Nothing that a sync had returned for is among it, but
//! whoever looks after an accident wants to know.

use crate::db::decode_batch;
use crate::error::{Error, Result};
use crate::manifest::{self, Account};
use crate::names::{self, CURRENT, FileKind, LOCK, numbered};
use crate::shared::Shared;
use crate::wal::{LogEnd, LogId, LogKind, LogRemains};
use lsmith_tree::TableId;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a file is called that was set aside by an opening ends so.
pub(crate) const SET_ASIDE: &str = ".lost";

/// A part of the directory that is not part of what the store shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The file.
    pub path: PathBuf,
    /// Where in the file it starts, in bytes.
    pub offset: u64,
    /// Bytes of it: of a log up to the last one that is not zero.
    pub bytes: u64,
    /// Why it is left out.
    pub reason: LeftOutReason,
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The end of a log or of the manifest is not complete: it had not been synced.
    TornEnd,
    /// Batches in front of it are missing: they had not been synced, nor had this.
    BehindGap,
    /// An earlier opening set it aside.
    SetAside,
    /// It is called like a file of the store, and nothing names it: the next opening for writing
    /// removes it.
    Unnamed,
    /// It is not called like a file of a store.
    Stranger,
}

impl LeftOutReason {
    /// The reason as a word: `torn_end`, `behind_gap`, `set_aside`, `unnamed` or `stranger`.
    pub fn name(self) -> &'static str {
        match self {
            LeftOutReason::TornEnd => "torn_end",
            LeftOutReason::BehindGap => "behind_gap",
            LeftOutReason::SetAside => "set_aside",
            LeftOutReason::Unnamed => "unnamed",
            LeftOutReason::Stranger => "stranger",
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { path, offset, bytes, reason } = self;
        let path = path.display();
        match reason {
            LeftOutReason::TornEnd => {
                write!(f, "the end of {path} is torn at offset {offset}: {bytes} bytes left out")
            }
            LeftOutReason::BehindGap => {
                write!(f, "{bytes} bytes of {path} from offset {offset} on lie behind a gap")
            }
            LeftOutReason::SetAside => write!(f, "{path} was set aside, {bytes} bytes"),
            LeftOutReason::Unnamed => write!(f, "nothing names {path}, {bytes} bytes"),
            LeftOutReason::Stranger => write!(f, "{path} is no file of a store, {bytes} bytes"),
        }
    }
}

/// All that is left out of the directory of `shared`.
pub(crate) fn left_out(shared: &Shared) -> Result<Vec<LeftOut>> {
    // With these held, no log is in the middle of a record.
    let _writer = shared.writer.lock();
    let _manifest = shared.manifest.lock();
    let options = &shared.options;
    let (env, dir) = (&*options.env, &*options.dir);
    let Some((manifest, account)) = manifest::read(env, dir)? else { return Ok(Vec::new()) };
    let mut names = env.list(dir).map_err(|error| Error::io("list", dir, error))?;
    names.sort_by_key(|name| names::parse(name).map_or(u64::MAX, |(_, number)| number));
    let mut search = Search { shared, account: &account, found: Vec::new() };
    search.manifest(manifest)?;
    search.logs(&names)?;
    for name in names {
        if let Some(reason) = search.reason(&name, manifest) {
            search.add_file(dir.join(name), reason);
        }
    }
    Ok(search.found)
}

struct Search<'a> {
    shared: &'a Shared,
    account: &'a Account,
    found: Vec<LeftOut>,
}

impl Search<'_> {
    /// Why the file called `name` is left out, if it is.
    fn reason(&self, name: &str, manifest: u64) -> Option<LeftOutReason> {
        let Some((kind, number)) = names::parse(name) else {
            let is_ours = [CURRENT, LOCK].contains(&name);
            return match name.ends_with(SET_ASIDE) {
                true => Some(LeftOutReason::SetAside),
                false => (!is_ours).then_some(LeftOutReason::Stranger),
            };
        };
        // A store that writes has files of which nobody else knows yet.
        let is_named = !self.shared.options.read_only
            || match kind {
                FileKind::Wal => true,
                FileKind::Manifest => number == manifest,
                FileKind::Spill => {
                    let mut spills = self.account.spaces.values().filter_map(|space| space.spill);
                    spills.any(|spill| spill.file == number)
                }
                FileKind::Table => {
                    let spaces = self.shared.all_spaces();
                    let has =
                        |table| spaces.iter().any(|s| s.core.lock().tables.contains_key(&table));
                    has(TableId(number))
                }
            };
        (!is_named).then_some(LeftOutReason::Unnamed)
    }

    fn add_file(&mut self, path: PathBuf, reason: LeftOutReason) {
        let bytes = self.shared.options.env.file_bytes(&path).unwrap_or(0);
        self.found.push(LeftOut { path, offset: 0, bytes, reason });
    }

    /// Adds a torn end, unless nothing is in it.
    fn add_end(&mut self, path: &Path, remains: &LogRemains) {
        if let Ok(LogEnd::Torn { offset, bytes_dropped }) = remains.end
            && bytes_dropped > 0
        {
            let (path, bytes) = (path.to_path_buf(), bytes_dropped);
            self.found.push(LeftOut { path, offset, bytes, reason: LeftOutReason::TornEnd });
        }
    }

    fn manifest(&mut self, number: u64) -> Result<()> {
        let options = &self.shared.options;
        let path = numbered(&options.dir, FileKind::Manifest, number);
        let id = LogId { kind: LogKind::Manifest, number };
        let remains = LogRemains::read(&*options.env, &path, id)?;
        self.add_end(&path, &remains);
        Ok(())
    }

    /// Looks at the logs as an opening does: their batches follow each other, and where one is
    /// missing nothing behind it is read.
    fn logs(&mut self, names: &[String]) -> Result<()> {
        let durable = self.account.spaces.values().map(|space| space.durable_seq().0).max();
        let mut numbers = Numbers { next: durable.unwrap_or(0) + 1, is_over: false };
        for name in names {
            let Some((FileKind::Wal, number)) = names::parse(name) else { continue };
            let path = numbered(&self.shared.options.dir, FileKind::Wal, number);
            let id = LogId { kind: LogKind::Wal, number };
            let remains = LogRemains::read(&*self.shared.options.env, &path, id)?;
            let mut behind_gap = None;
            // What lies behind a torn end is told with that.
            for record in remains.records().take_while(|record| record.skipped == 0) {
                let Ok((first, ops)) = decode_batch(&record.payload) else { break };
                if numbers.leaves_out(first.0, ops.len()) {
                    behind_gap.get_or_insert(record.offset..0).end = record.offset + record.bytes;
                }
            }
            if let Some(place) = behind_gap {
                let (path, bytes) = (path.clone(), place.end - place.start);
                let reason = LeftOutReason::BehindGap;
                self.found.push(LeftOut { path, offset: place.start, bytes, reason });
            }
            self.add_end(&path, &remains);
        }
        Ok(())
    }
}

/// The numbers of batches on the way through the logs.
struct Numbers {
    /// The number that the next batch has at most.
    next: u64,
    /// Whether one was missing.
    is_over: bool,
}

impl Numbers {
    /// Whether the batch of `count` writes from number `first` on is left out.
    fn leaves_out(&mut self, first: u64, count: usize) -> bool {
        self.is_over |= first > self.next;
        // An empty batch stands for a bulk load, whose entries have one number together.
        self.next = self.next.max(first + count.max(1) as u64);
        self.is_over
    }
}
