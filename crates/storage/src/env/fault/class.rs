//! Which operations can fail, and what a failed operation can leave behind.

use std::io;

/// A kind of operations with a count and rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpClass {
    /// [`Env::create`](crate::env::Env::create),
    /// [`Env::create_dir_all`](crate::env::Env::create_dir_all) and
    /// [`Env::append`](crate::env::Env::append).
    Create,
    /// [`Env::create_log`](crate::env::Env::create_log).
    CreateLog,
    /// [`WriteFile::write_all`](crate::env::WriteFile::write_all).
    Write,
    /// [`WriteFile::sync`](crate::env::WriteFile::sync) and
    /// [`Env::sync_file`](crate::env::Env::sync_file).
    Sync,
    /// [`Env::sync_dir`](crate::env::Env::sync_dir).
    SyncDir,
    /// [`Env::rename`](crate::env::Env::rename).
    Rename,
    /// [`Env::link`](crate::env::Env::link).
    Link,
    /// [`Env::remove_file`](crate::env::Env::remove_file) and
    /// [`Env::remove_dir`](crate::env::Env::remove_dir).
    Remove,
    /// [`LogFile::append`](crate::env::LogFile::append).
    Append,
    /// [`LogFile::sync`](crate::env::LogFile::sync).
    LogSync,
    /// [`ReadFile::read_exact_at`](crate::env::ReadFile::read_exact_at).
    Read,
    /// [`Env::punch`](crate::env::Env::punch), for each range.
    Punch,
    /// [`LogFile::cut`](crate::env::LogFile::cut).
    Cut,
    /// [`Env::open`](crate::env::Env::open).
    Open,
    /// [`ReadFile::map`](crate::env::ReadFile::map).
    Map,
    /// [`Env::list`](crate::env::Env::list).
    List,
    /// [`Env::file_bytes`](crate::env::Env::file_bytes),
    /// [`Env::held_bytes`](crate::env::Env::held_bytes),
    /// [`Env::link_count`](crate::env::Env::link_count) and
    /// [`ReadFile::bytes`](crate::env::ReadFile::bytes).
    Measure,
    /// [`Env::free_bytes`](crate::env::Env::free_bytes).
    FreeBytes,
    /// [`Env::lock`](crate::env::Env::lock), [`Env::hold`](crate::env::Env::hold) and
    /// [`Env::lock_file`](crate::env::Env::lock_file).
    Lock,
}

impl OpClass {
    /// Every class.
    pub const ALL: [OpClass; 19] = [
        OpClass::Create,
        OpClass::CreateLog,
        OpClass::Write,
        OpClass::Sync,
        OpClass::SyncDir,
        OpClass::Rename,
        OpClass::Link,
        OpClass::Remove,
        OpClass::Append,
        OpClass::LogSync,
        OpClass::Read,
        OpClass::Punch,
        OpClass::Cut,
        OpClass::Open,
        OpClass::Map,
        OpClass::List,
        OpClass::Measure,
        OpClass::FreeBytes,
        OpClass::Lock,
    ];

    /// Returns the effects that a failure of this class can have, each of them once.
    pub fn effects(self) -> &'static [Effect] {
        use Effect::{Dropped, Nothing, Partly, Wholly};
        match self {
            OpClass::Sync | OpClass::LogSync => &[Nothing, Partly, Wholly, Dropped],
            OpClass::Create
            | OpClass::CreateLog
            | OpClass::Write
            | OpClass::SyncDir
            | OpClass::Append
            | OpClass::Punch => &[Nothing, Partly, Wholly],
            OpClass::Rename | OpClass::Link | OpClass::Remove | OpClass::Cut | OpClass::Lock => {
                &[Nothing, Wholly]
            }
            OpClass::Read => &[Nothing, Partly],
            OpClass::Open
            | OpClass::Map
            | OpClass::List
            | OpClass::Measure
            | OpClass::FreeBytes => &[Nothing],
        }
    }
}

/// What an operation did although it returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing at all.
    Nothing,
    /// A part of what it should have done, or nothing if the operation has no parts.
    ///
    /// A write stores its first half, an append half of the bytes behind the first 8. A file is
    /// created empty, a log shorter than requested; for directories, only the parents are created.
    /// A sync of a file makes the first half durable and drops the rest. A sync of a directory
    /// keeps the older half of the changes. A read fills the buffer with bytes that are not in the
    /// file.
    Partly,
    /// Everything.
    Wholly,
    /// Only for syncs of a file: bytes written since the previous sync can be read while the system
    /// runs, but never reach the device. A later sync succeeds without them. Some systems behave
    /// like this, because they mark a page as clean after a failed write. For other operations the
    /// same as [`Nothing`](Effect::Nothing).
    Dropped,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// One operation fails, the next ones work.
    Once,
    /// All later operations fail too.
    Forever,
}

/// A rule: which operations fail, and how.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The class of the operations that fail, or `None` for all classes.
    pub class: Option<OpClass>,
    /// The number of operations that still work after the rule is set.
    pub after: u64,
    /// Says whether operations work again later.
    pub lasting: Lasting,
    /// The kind of the error that they return.
    pub kind: io::ErrorKind,
}
