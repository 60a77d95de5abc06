//! What opening a store leaves out of its files, and files that are not the store's.
//!
//! None of this is damage. Power loss, or the death of the process in the middle of an append,
//! tears the end of a log; what is behind a batch that is missing must not be seen, so that the
//! store opens on a prefix of the batches. Nothing that a sync had returned for is among it, but
//! whoever looks after an accident wants to know.

use crate::manifest::{self, Account};
use crate::shared::Shared;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::log::{LogEnd, LogId, LogKind, LogRemains};
use lsmith_storage::names::{self, CURRENT, FileKind, LOCK, LOST, numbered};
use lsmith_tree::TableId;
use std::fmt;
use std::path::PathBuf;

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
    // Who writes has set it aside.
    search.found.extend(shared.left_out.iter().filter(|_| options.read_only).cloned());
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
            return match name.ends_with(LOST) {
                true => Some(LeftOutReason::SetAside),
                false => (!is_ours).then_some(LeftOutReason::Stranger),
            };
        };
        // A store that writes has files of which nobody else knows yet.
        let is_named = !self.shared.options.read_only
            || match kind {
                FileKind::Wal => true,
                FileKind::Manifest => number == manifest,
                FileKind::NewWal => false,
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

    fn manifest(&mut self, number: u64) -> Result<()> {
        let options = &self.shared.options;
        let path = numbered(&options.dir, FileKind::Manifest, number);
        let id = LogId { kind: LogKind::Manifest, number };
        let remains = LogRemains::read(&*options.env, &path, id)?;
        if let Ok(LogEnd::Torn { offset, bytes_dropped }) = remains.end
            && bytes_dropped > 0
        {
            let (bytes, reason) = (bytes_dropped, LeftOutReason::TornEnd);
            self.found.push(LeftOut { path, offset, bytes, reason });
        }
        Ok(())
    }
}
