//! What a record of a trace says, whatever its format.

use std::borrow::Cow;

use super::op::TraceOpKind;
use crate::parts::VALUE_BYTES_MAX;

/// What a line, or an entry of a binary trace, says.
pub(super) struct Record<'a> {
    pub(super) kind: TraceOpKind,
    pub(super) key: Cow<'a, [u8]>,
    /// As in a `TraceOp`.
    pub(super) size: u32,
    /// The key behind the range of a range delete.
    pub(super) end: Option<&'a [u8]>,
    /// How often the operation is played.
    pub(super) times: u64,
    /// True if the first record of its key writes a value of `size`, after a look for it.
    pub(super) fills: bool,
    /// When it was, if the format has times to live.
    pub(super) stamp: Option<Stamp>,
}

/// The time of an operation, and how long its value lives: in one unit in one trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    pub(super) time: u64,
    /// 0 if the value stays.
    pub(super) life: u64,
}

impl Stamp {
    /// Parses the fields of a time and of a life, if they are whole.
    pub(super) fn parse(time: &str, life: &str) -> Option<Stamp> {
        Some(Stamp { time: time.trim().parse().ok()?, life: life.trim().parse().ok()? })
    }
}

impl<'a> Record<'a> {
    /// Returns an operation on `key` with a size, which kinds without one leave out.
    pub(super) fn new(kind: TraceOpKind, key: impl Into<Cow<'a, [u8]>>, size: u32) -> Self {
        let has_size = !matches!(kind, TraceOpKind::Get | TraceOpKind::Delete);
        let size = if has_size { size } else { 0 };
        Self { kind, key: key.into(), size, end: None, times: 1, fills: false, stamp: None }
    }

    /// Returns a request of a cache, for an object of `size`.
    pub(super) fn request(key: impl Into<Cow<'a, [u8]>>, size: u32) -> Self {
        Self { size, fills: true, ..Self::new(TraceOpKind::Get, key, 0) }
    }
}

/// Parses a length in bytes, named `name` in the message.
pub(super) fn size(name: &str, text: &str) -> Result<u32, String> {
    let parsed = text.parse::<u32>().ok().filter(|&size| u64::from(size) <= VALUE_BYTES_MAX);
    parsed.ok_or_else(|| format!("{name} `{text}` is not a whole number up to {VALUE_BYTES_MAX}"))
}

/// Checks a length in bytes, named `name` in the message.
pub(super) fn checked_size(name: &str, bytes: u64) -> Result<u32, String> {
    let size = u32::try_from(bytes).ok().filter(|_| bytes <= VALUE_BYTES_MAX);
    size.ok_or_else(|| format!("expected a {name} of at most {VALUE_BYTES_MAX}, found {bytes}"))
}

pub(super) fn not_whole(name: &str, text: &str) -> String {
    format!("{name} `{text}` is not a whole number")
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
