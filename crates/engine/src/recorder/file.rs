//! The file of a recording: lines of text in checked parts. `docs/recording.md` has the format.

use super::Recording;
use crate::options::RecordOptions;
use crate::stats::{Counts, StoreStats};
use lsmith_storage::env::{Env, WriteFile};
use lsmith_storage::error::{Error, Result};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first line of a recording, with the version of the format.
const HEADER: &str = "lsmith recording 2\n";

/// The bytes of lines that are written at once, with a check behind them.
const PART_BYTES: usize = 64 << 10;

/// Lines wait no longer than this to be written, if more come.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The start of a range without a start: no shorter key is before it, and no write has it.
const FIRST_KEY: &[u8] = &[0];

/// The end of a range without an end: few keys are behind it.
const LAST_KEY: &[u8] = &[0xff; 64];

/// A keyspace as the recording names it.
pub(crate) struct KeyspaceLine<'a> {
    /// The id of the tree, and of the member of a group.
    pub(crate) id: (u32, Option<u8>),
    pub(crate) memtable_bytes: u64,
    /// Returns its name, and its merge policy. Called for the first operation on it.
    pub(crate) describe: &'a dyn Fn() -> (String, String),
}

/// An operation that is recorded. Keys have no id of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Picked<'a> {
    /// An entry that was there at the beginning, with the length of its value.
    Base(&'a [u8], usize),
    /// An entry that was there and expires, with the microseconds that it has left.
    BaseUntil(&'a [u8], usize, u64),
    /// A put, with the length of the value.
    Put(&'a [u8], usize),
    /// A put that expires, with the microseconds that the value lives, if they are known.
    PutUntil(&'a [u8], usize, Option<u64>),
    Delete(&'a [u8]),
    Combine(&'a [u8], usize),
    /// A range delete. An empty start or end stands for none.
    DeleteRange(&'a [u8], &'a [u8]),
    Get(&'a [u8]),
    /// A scan from a key on, with its steps. An empty key stands for none.
    Scan(&'a [u8], u64),
}

/// An open recording.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    one_in: u32,
    bytes_max: u64,
    /// The time at which it ends.
    end: Option<Duration>,
    begun: Duration,
    /// What the store had counted before.
    before: StoreStats,
    /// Lines that are not written yet: bytes, because a string checks every character.
    part: Vec<u8>,
    part_begun: Duration,
    written: u64,
    ops: u64,
    base_keys: u64,
    has_base: bool,
    /// The numbers that the recording gives to keyspaces, by their ids.
    keyspaces: BTreeMap<(u32, Option<u8>), usize>,
    ended: Option<String>,
}

impl RecordFile {
    /// Creates the file. `before` is what the store has counted so far.
    pub(super) fn create(
        env: &dyn Env,
        path: &Path,
        options: &RecordOptions,
        before: StoreStats,
    ) -> Result<RecordFile> {
        let mut file = env.create(path).map_err(|error| Error::io("create", path, error))?;
        file.write_all(HEADER.as_bytes()).map_err(|error| Error::io("write", path, error))?;
        let begun = env.now();
        Ok(RecordFile {
            file,
            path: path.to_path_buf(),
            one_in: options.one_in,
            bytes_max: options.bytes_max,
            end: options.time_max.map(|time| begun.saturating_add(time)),
            begun,
            before,
            part: format!("sample,{}\n", options.one_in).into_bytes(),
            part_begun: begun,
            written: HEADER.len() as u64,
            ops: 0,
            base_keys: 0,
            has_base: !options.base,
            keyspaces: BTreeMap::new(),
            ended: None,
        })
    }

    /// Returns true if nothing more can be recorded.
    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn tell(&self) -> Recording {
        Recording {
            path: self.path.clone(),
            one_in: self.one_in,
            ops: self.ops,
            base_keys: self.base_keys,
            has_base: self.has_base,
            bytes: self.written + self.part.len() as u64,
            ended: self.ended.clone(),
        }
    }

    /// Adds the line of `picked`, at the time `now`.
    pub(super) fn note(&mut self, keyspace: &KeyspaceLine<'_>, picked: &Picked<'_>, now: Duration) {
        let next = self.keyspaces.len();
        let part = &mut self.part;
        let number = *self.keyspaces.entry(keyspace.id).or_insert_with(|| {
            let (name, policy) = (keyspace.describe)();
            let bytes = keyspace.memtable_bytes;
            put(part, format_args!("keyspace,{next},{bytes},"));
            put_key(part, name.as_bytes());
            put(part, format_args!(",{policy}\n"));
            next
        });
        let (op, key, size) = match *picked {
            Picked::Base(key, bytes) => ("load", key, bytes as u64),
            Picked::Put(key, bytes) => ("put", key, bytes as u64),
            Picked::BaseUntil(key, bytes, _) => ("load_until", key, bytes as u64),
            Picked::PutUntil(key, bytes, _) => ("put_until", key, bytes as u64),
            Picked::Delete(key) => ("delete", key, 0),
            Picked::Combine(key, bytes) => ("combine", key, bytes as u64),
            Picked::DeleteRange(start, _) => ("delete_range", start, 0),
            Picked::Get(key) => ("get", key, 0),
            Picked::Scan(key, entries) => ("scan", key, entries.clamp(1, u64::from(u32::MAX))),
        };
        if matches!(picked, Picked::Base(..) | Picked::BaseUntil(..)) {
            self.base_keys += 1;
        } else {
            self.ops += 1;
        }
        let micros = now.saturating_sub(self.begun).as_micros();
        put_number(part, u64::try_from(micros).unwrap_or(u64::MAX));
        part.push(b',');
        part.extend_from_slice(op.as_bytes());
        part.push(b',');
        put_number(part, number as u64);
        part.push(b',');
        put_key(part, if key.is_empty() { FIRST_KEY } else { key });
        part.push(b',');
        put_number(part, size);
        match picked {
            Picked::DeleteRange(_, end) => {
                part.push(b',');
                put_key(part, if end.is_empty() { LAST_KEY } else { end });
            }
            Picked::PutUntil(_, _, Some(life)) | Picked::BaseUntil(_, _, life) => {
                part.push(b',');
                put_number(part, *life);
            }
            _ => {}
        }
        part.push(b'\n');
    }

    /// Adds the line that says that the base is whole.
    pub(super) fn note_base(&mut self) {
        self.has_base = true;
        self.part.extend_from_slice(b"base\n");
    }

    /// Writes the lines that wait, if they are many or have waited for long.
    pub(super) fn write_if_due(&mut self, now: Duration, counts: &Counts) {
        let is_over = self.end.is_some_and(|end| now >= end);
        let is_due = now.saturating_sub(self.part_begun) >= WAIT_MAX;
        if self.part.len() < PART_BYTES && !is_due && !is_over {
            return;
        }
        self.part_begun = now;
        if let Err(error) = self.write_part(&counts.read()) {
            self.give_up(Error::io("write", &self.path, error).to_string());
        } else if self.written >= self.bytes_max {
            self.ended = Some(format!("it has reached {} bytes", self.bytes_max));
        } else if is_over {
            self.ended = Some("its time is over".to_owned());
        }
    }

    /// Ends the recording, because of what `message` says.
    pub(super) fn give_up(&mut self, message: String) {
        let path = self.path.display();
        tracing::error!(%path, message, "a recording has ended: its file cannot be written");
        self.ended = Some(message);
    }

    /// Writes what waits. `counts` is what the store has counted.
    pub(super) fn close(&mut self, counts: &StoreStats) -> Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let written = self.write_part(counts).and_then(|()| self.file.sync());
        written.map_err(|error| Error::io("write", &self.path, error))
    }

    fn write_part(&mut self, counts: &StoreStats) -> io::Result<()> {
        let before = &self.before;
        let since = [
            counts.entries_written - before.entries_written,
            counts.user_bytes - before.user_bytes,
            counts.flush_bytes - before.flush_bytes,
            counts.merge_bytes_written - before.merge_bytes_written,
            counts.gets - before.gets,
            counts.scans - before.scans,
        ];
        let since = since.map(|count: u64| count.to_string()).join(",");
        put(&mut self.part, format_args!("counts,{since}\n"));
        let (bytes, check) = (self.part.len(), fnv(&self.part));
        put(&mut self.part, format_args!("check,{bytes},{check:016x}\n"));
        self.file.write_all(&self.part)?;
        self.file.flush()?;
        self.written += self.part.len() as u64;
        self.part.clear();
        Ok(())
    }
}

fn put(part: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    part.write_fmt(text).expect("memory takes all text");
}

/// Appends `number`. Formatting by the standard library takes ten times as long.
fn put_number(part: &mut Vec<u8>, mut number: u64) {
    // As many digits as the largest number has.
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    part.extend_from_slice(&digits[from..]);
}

/// Appends `key` with an escape in place of each byte that is no visible letter of ASCII, a comma
/// or a backslash.
fn put_key(part: &mut Vec<u8>, key: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS[usize::from(nibble)];
    part.reserve(4 * key.len());
    for &byte in key {
        if matches!(byte, b'!'..=b'~') && !matches!(byte, b',' | b'\\') {
            part.push(byte);
        } else {
            part.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Returns the 64-bit FNV-1a hash of `bytes`.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
