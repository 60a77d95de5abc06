//! Recordings of stores of ours: lines of text in checked parts, as `docs/recording.md` says.

use std::collections::BTreeMap;

use super::op::TraceOpKind;
use super::reader::{Reader, hash, hash_on};
use super::record::{Record, Stamp, not_whole, size};

/// The first line of a recording, with the version of the format.
pub(super) const HEADER: &str = "lsmith recording 2";

/// The version before, whose puts that expire have no life.
const HEADER_1: &str = "lsmith recording 1";

/// The first word of the header in any version.
const ANY_HEADER: &str = "lsmith recording ";

/// Most bytes of a part, far more than there are.
const PART_BYTES_MAX: usize = 64 << 20;

/// What a recording of a store says of one keyspace, beside its operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The name of the keyspace. Bytes that are no visible letters of ASCII are escaped.
    pub keyspace: String,
    /// Of as many keys one was recorded.
    pub one_in: u64,
    /// The logical bytes of a memtable of the store.
    pub memtable_bytes: u64,
    /// The merge policy when the first operation was recorded.
    pub policy: String,
    /// True if the keys that were there at the beginning are in the recording, all of them.
    pub has_base: bool,
    /// True if values expire whose lives are in the recording.
    pub has_lives: bool,
    /// What the store counted meanwhile, in all its keyspaces and for all keys.
    pub counts: RecordedCounts,
}

/// What a store counted while it was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedCounts {
    /// Entries written.
    pub entries_written: u64,
    /// Bytes of the keys and values of those entries.
    pub user_bytes: u64,
    /// Physical bytes of tables that flushes wrote.
    pub flush_bytes: u64,
    /// Physical bytes of tables that merges wrote.
    pub merge_bytes: u64,
    /// Lookups.
    pub gets: u64,
    /// Range reads.
    pub scans: u64,
}

impl Recorded {
    /// The logical bytes of a memtable that holds as many of the recorded keys as one of the store
    /// held of all; at least 1.
    #[must_use]
    pub fn memtable_share_bytes(&self) -> u64 {
        (self.memtable_bytes / self.one_in.max(1)).max(1)
    }
}

/// Reads the lines of a recording.
#[derive(Debug, Default)]
pub(super) struct RecordingReader {
    /// The keyspace that is played, escaped; the only one if not given.
    wanted: Option<String>,
    one_in: u64,
    keyspaces: BTreeMap<u32, Recorded>,
    /// The number of the keyspace that is played, once it is known.
    played: Option<u32>,
    /// Other keyspaces that have operations.
    others: Vec<u32>,
    /// The lines since the last check, each with its number.
    part: Vec<(u64, String)>,
    part_bytes: usize,
    part_hash: u64,
    has_base: bool,
    has_lives: bool,
    counts: RecordedCounts,
}

/// Returns true if `first` is the first line of a recording, of any version.
pub(super) fn starts(first: &str) -> bool {
    first.starts_with(ANY_HEADER)
}

impl RecordingReader {
    pub(super) fn new(wanted: Option<&str>) -> Self {
        let wanted = wanted.map(ToOwned::to_owned);
        Self { wanted, part_hash: hash(b""), ..Self::default() }
    }

    /// Checks the first line.
    pub(super) fn begin(&self, first: &str) -> Result<(), String> {
        if first == HEADER || first == HEADER_1 {
            return Ok(());
        }
        let found: String = first.chars().take(60).collect();
        Err(format!("expected `{HEADER}`, found `{found}`: a newer version may read it"))
    }

    /// Takes line `number`. What a part says counts once its check has passed. Fails with the
    /// number of the line that is wrong, and a message.
    pub(super) fn take(
        &mut self,
        number: u64,
        line: &str,
        reader: &mut Reader,
    ) -> Result<(), (u64, String)> {
        let Some(check) = line.strip_prefix("check,") else {
            self.part_bytes += line.len() + 1;
            self.part_hash = hash_on(hash_on(self.part_hash, line.as_bytes()), b"\n");
            self.part.push((number, line.to_owned()));
            if self.part_bytes > PART_BYTES_MAX {
                let message = format!("expected a check within {PART_BYTES_MAX} bytes of lines");
                return Err((number, message));
            }
            return Ok(());
        };
        let found = format!("{},{:016x}", self.part_bytes, self.part_hash);
        if check != found {
            let message = format!("expected `check,{found}` for the lines before it");
            return Err((number, format!("{message}, found `{line}`")));
        }
        let part = std::mem::take(&mut self.part);
        (self.part_bytes, self.part_hash) = (0, hash(b""));
        for (number, line) in part {
            self.line(&line, reader).map_err(|message| (number, message))?;
        }
        Ok(())
    }

    /// Returns what the recording says of the keyspace that is played. Fails if it is not clear
    /// which one is.
    pub(super) fn finish(mut self) -> Result<Recorded, String> {
        let name = |number: &u32| self.keyspaces.get(number).map(|known| known.keyspace.as_str());
        if self.wanted.is_none() && !self.others.is_empty() {
            let names: Vec<&str> =
                self.played.iter().chain(&self.others).filter_map(name).collect();
            return Err(format!(
                "the recording has several keyspaces: say `keyspace=`, with one of {}",
                names.join(", ")
            ));
        }
        let Some(played) = self.played else {
            let names: Vec<&str> = self.keyspaces.keys().filter_map(name).collect();
            return Err(match &self.wanted {
                Some(wanted) if !names.is_empty() => format!(
                    "no operation on keyspace `{wanted}`; the recording has {}",
                    names.join(", ")
                ),
                _ => "the recording has no operations".to_owned(),
            });
        };
        let found = self.keyspaces.remove(&played).expect("a keyspace that is played is known");
        let Self { one_in, has_base, has_lives, counts, .. } = self;
        Ok(Recorded { one_in, has_base, has_lives, counts, ..found })
    }

    fn line(&mut self, line: &str, reader: &mut Reader) -> Result<(), String> {
        let (first, rest) = line.split_once(',').unwrap_or((line, ""));
        match first {
            "sample" => self.one_in = whole("sample", rest)?,
            "base" => self.has_base = true,
            "keyspace" => self.keyspace(rest)?,
            "counts" => self.counts = counts(rest)?,
            _ => self.operation(line, reader)?,
        }
        Ok(())
    }

    fn keyspace(&mut self, rest: &str) -> Result<(), String> {
        let fields: Vec<&str> = rest.splitn(4, ',').collect();
        let [number, memtable_bytes, name, policy] = fields[..] else {
            return Err("expected a keyspace's number, memtable, name and policy".to_owned());
        };
        let known = Recorded {
            keyspace: name.to_owned(),
            memtable_bytes: whole("memtable", memtable_bytes)?,
            policy: policy.to_owned(),
            ..Recorded::default()
        };
        let number = number.parse().map_err(|_| not_whole("number", number))?;
        self.keyspaces.insert(number, known);
        Ok(())
    }

    fn operation(&mut self, line: &str, reader: &mut Reader) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').collect();
        let (kind, count) = match fields.get(1).copied().unwrap_or_default() {
            "load" => (TraceOpKind::Load, 5..=5),
            "load_until" => (TraceOpKind::Load, 6..=6),
            "put" => (TraceOpKind::Put, 5..=5),
            // Without a life in version 1, and by a clock that does not say how long a tick is.
            "put_until" => (TraceOpKind::Put, 5..=6),
            "get" => (TraceOpKind::Get, 5..=5),
            "delete" => (TraceOpKind::Delete, 5..=5),
            "combine" => (TraceOpKind::Combine, 5..=5),
            "scan" => (TraceOpKind::Scan, 5..=5),
            "delete_range" => (TraceOpKind::DeleteRange, 6..=6),
            op => return Err(format!("unknown op `{op}`")),
        };
        if !count.contains(&fields.len()) {
            return Err(format!("expected {} fields, found {}", count.end(), fields.len()));
        }
        let time = whole("time", fields[0])?;
        let number = fields[2].parse::<u32>().map_err(|_| not_whole("keyspace", fields[2]))?;
        if !self.plays(number)? {
            return Ok(());
        }
        let key = key(fields[3])?;
        let is_range = kind == TraceOpKind::DeleteRange;
        let end = fields.get(5).filter(|_| is_range).map(|end| self::key(end)).transpose()?;
        let life =
            fields.get(5).filter(|_| !is_range).map(|life| whole("life", life)).transpose()?;
        let is_known = life.is_some() || fields[1] != "put_until";
        self.has_lives |= life.is_some();
        // Micros. A value that is about to expire has one.
        let life = life.map_or(0, |life| life.max(1));
        let stamp = is_known.then_some(Stamp { time, life });
        let record = Record::new(kind, key, size("size", fields[4])?);
        reader.take(Record { end: end.as_deref(), stamp, ..record })
    }

    /// Returns true if operations on keyspace `number` are played.
    fn plays(&mut self, number: u32) -> Result<bool, String> {
        if self.played == Some(number) {
            return Ok(true);
        }
        let known = self.keyspaces.get(&number);
        let known = known.ok_or_else(|| format!("no line has named keyspace {number} before"))?;
        let is_wanted = self.wanted.as_ref().is_none_or(|wanted| *wanted == known.keyspace);
        if is_wanted && self.played.is_none() {
            self.played = Some(number);
            return Ok(true);
        }
        if !self.others.contains(&number) {
            self.others.push(number);
        }
        Ok(false)
    }
}

fn counts(text: &str) -> Result<RecordedCounts, String> {
    let fields: Vec<u64> =
        text.split(',').map(|field| whole("count", field)).collect::<Result<_, _>>()?;
    let [entries_written, user_bytes, flush_bytes, merge_bytes, gets, scans] = fields[..] else {
        return Err(format!("expected 6 counts, found {}", fields.len()));
    };
    Ok(RecordedCounts { entries_written, user_bytes, flush_bytes, merge_bytes, gets, scans })
}

fn whole(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| not_whole(name, text))
}

/// Returns the bytes of a key whose escapes are `\xNN`.
fn key(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let digits = escaped.strip_prefix('x').and_then(|escaped| escaped.get(..2));
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let byte = byte.ok_or_else(|| format!("expected `\\x` and two digits in key `{text}`"))?;
        bytes.push(byte);
        rest = &escaped[3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}
