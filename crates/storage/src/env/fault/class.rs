//! What can fail, and what failing can leave behind.

use std::io;

/// Kinds of operations, counted and failed apart from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpClass {
    /// [`Env::create`](crate::env::Env::create) and
    /// [`Env::create_dir_all`](crate::env::Env::create_dir_all).
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
    /// [`Env::remove_file`](crate::env::Env::remove_file).
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
    /// [`Env::held_bytes`](crate::env::Env::held_bytes) and
    /// [`ReadFile::bytes`](crate::env::ReadFile::bytes).
    Measure,
    /// [`Env::free_bytes`](crate::env::Env::free_bytes).
    FreeBytes,
    /// [`Env::lock`](crate::env::Env::lock).
    Lock,
}

impl OpClass {
    /// Every class.
    pub const ALL: [OpClass; 18] = [
        OpClass::Create,
        OpClass::CreateLog,
        OpClass::Write,
        OpClass::Sync,
        OpClass::SyncDir,
        OpClass::Rename,
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

    /// The effects that a failure of this class can have, no two of them the same.
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
            OpClass::Rename | OpClass::Remove | OpClass::Cut | OpClass::Lock => &[Nothing, Wholly],
            OpClass::Read => &[Nothing, Partly],
            OpClass::Open
            | OpClass::Map
            | OpClass::List
            | OpClass::Measure
            | OpClass::FreeBytes => &[Nothing],
        }
    }
}

/// What an operation that returns an error has done nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing at all.
    Nothing,
    /// A part of what it should have done; nothing where that has no parts.
    ///
    /// Of a write the first half is stored, of an append half of what lies behind the head. A file
    /// is created but empty, or a log shorter than asked for; of directories only the parents. A
    /// sync of a file makes the first half durable and drops the rest, one of a directory keeps the
    /// older half of the changes. A read has filled the buffer with what is not in the file.
    Partly,
    /// Everything.
    Wholly,
    /// Of a sync of a file: what was written since the sync before can be read as long as the
    /// system runs, but never gets to the device, also not by a later sync, which succeeds. So do
    /// systems that take a page that could not be written for clean. Else as
    /// [`Nothing`](Effect::Nothing).
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
    /// The operations concerned; all of them where `None`.
    pub class: Option<OpClass>,
    /// How many of them still work, counted from the moment the rule is set.
    pub after: u64,
    /// Whether they work again later.
    pub lasting: Lasting,
    /// The error they return.
    pub kind: io::ErrorKind,
}
