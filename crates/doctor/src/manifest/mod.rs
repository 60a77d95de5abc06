//! The MANIFEST of RocksDB, LevelDB and Pebble: every change of the tree, in order.

mod records;

use crate::{DoctorError, Store};
use records::Records;
use std::collections::BTreeMap;

/// The bytes behind the user's key in an internal key: sequence number and kind.
const TRAILER_BYTES: usize = 8;

/// Tags from here on have a length, so that readers can pass over those they do not know.
const SAFE_IGNORE: u64 = 1 << 13;

/// The greatest tag of LevelDB.
const LEVELDB_LAST: u64 = 9;

/// Tags of tables, the ones of Pebble alone among them: RocksDB has none between 104 and 199.
const TABLE_TAGS: std::ops::RangeInclusive<u64> = 100..=108;

/// Fields of a table that Pebble writes: whether it should be compacted, when it was made, where
/// its bytes lie, and what stands for parts of its keys and values.
const PEBBLE_FIELDS: [u64; 6] = [2, 6, 66, 67, 68, 69];

/// A table has fewer bytes and entries than this, so sums over all tables do not overflow.
pub(crate) const TABLE_MAX: u64 = 1 << 40;

/// A table of RocksDB, LevelDB or Pebble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The level.
    pub level: u32,
    /// The number in the name of the file.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
}

/// One record of a MANIFEST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The number of the column family; 0 is `default`.
    pub family: u64,
    /// The name of the column family that the record adds.
    pub family_added: Option<String>,
    /// True if the record drops its column family.
    pub drops_family: bool,
    /// The name of the order of keys.
    pub comparator: Option<String>,
    /// The last sequence number.
    pub last_sequence: Option<u64>,
    /// The first and the last sequence number of the entries in the tables that are added; LevelDB
    /// does not say it.
    pub sequences: Option<(u64, u64)>,
    /// Tables that the tree has from now on.
    pub added: Vec<File>,
    /// Level and number of tables that the level has no more.
    pub deleted: Vec<(u32, u64)>,
}

/// The edits of a MANIFEST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The edits, in the order in which they were made.
    pub edits: Vec<Edit>,
    /// The offset of a record that the file ends in, as in a copy of a live store.
    pub torn_at: Option<u64>,
    /// Whose it is, as far as its records show.
    pub store: Store,
}

impl Manifest {
    /// Reads a MANIFEST.
    ///
    /// # Errors
    /// Fails if a checksum is wrong or a record has a tag that neither store writes.
    pub fn read(bytes: &[u8]) -> Result<Manifest, DoctorError> {
        let records = Records::read(bytes)?;
        let mut seen = Seen::default();
        let edit = |(offset, record): &(usize, Vec<u8>)| {
            let mut fields = Fields { rest: record };
            read_edit(&mut fields, &mut seen).map_err(|message| {
                let within = record.len() - fields.rest.len();
                let place = format!("offset {offset}, byte {within} of the record");
                DoctorError { file: String::new(), place, message }
            })
        };
        let edits = records.records.iter().map(edit).collect::<Result<_, _>>()?;
        let torn_at = records.torn_at.map(|offset| offset as u64);
        Ok(Manifest { edits, torn_at, store: seen.store() })
    }

    /// Returns the names of the column families that are left, by number.
    #[must_use]
    pub fn families(&self) -> BTreeMap<u64, String> {
        let mut names = BTreeMap::from([(0, "default".to_owned())]);
        for edit in &self.edits {
            if let Some(name) = &edit.family_added {
                names.insert(edit.family, name.clone());
            }
            if edit.drops_family {
                names.remove(&edit.family);
            }
        }
        names
    }

    /// Returns the tables that column family `family` has after the last edit.
    #[must_use]
    pub fn files(&self, family: u64) -> Vec<File> {
        let mut files: BTreeMap<(u32, u64), &File> = BTreeMap::new();
        for edit in self.edits.iter().filter(|edit| edit.family == family) {
            for place in &edit.deleted {
                files.remove(place);
            }
            files.extend(edit.added.iter().map(|file| ((file.level, file.number), file)));
        }
        files.into_values().cloned().collect()
    }
}

/// Which stores the fields of a MANIFEST speak for.
#[derive(Default)]
struct Seen {
    /// A field that LevelDB does not know.
    is_newer: bool,
    /// A field that only RocksDB writes.
    is_rocksdb: bool,
}

impl Seen {
    fn tag(&mut self, tag: u64) {
        self.is_newer |= tag > LEVELDB_LAST;
        self.is_rocksdb |= tag > LEVELDB_LAST && !TABLE_TAGS.contains(&tag);
    }

    fn store(&self) -> Store {
        match (self.is_newer, self.is_rocksdb) {
            (false, _) => Store::LevelDb,
            (true, false) => Store::Pebble,
            (true, true) => Store::RocksDb,
        }
    }
}

/// What is left of a record.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(format!("expected {count} bytes of {what}, found {}", self.rest.len()));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes an integer of 7 bits per byte.
    fn number(&mut self, what: &str) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1, what)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(format!("expected {what}, found an integer of more than 64 bits"))
    }

    fn level(&mut self) -> Result<u32, String> {
        let level = self.number("a level")?;
        let known = u32::try_from(level).ok().filter(|level| *level < 64);
        known.ok_or_else(|| format!("expected a level below 64, found {level}"))
    }

    fn bytes(&mut self, what: &str) -> Result<&'a [u8], String> {
        let length = self.number(what)?;
        self.take(length, what)
    }

    fn text(&mut self, what: &str) -> Result<String, String> {
        Ok(String::from_utf8_lossy(self.bytes(what)?).into_owned())
    }

    /// Takes an internal key, and returns the user's key in it.
    fn key(&mut self) -> Result<Vec<u8>, String> {
        let key = self.bytes("a key")?;
        let Some(length) = key.len().checked_sub(TRAILER_BYTES) else {
            return Err(format!("expected a key of at least 8 bytes, found {}", key.len()));
        };
        Ok(key[..length].to_vec())
    }

    /// Passes over what else is said of a table. Two fields of Pebble have no length.
    fn pass_fields_of_table(&mut self, seen: &mut Seen) -> Result<(), String> {
        loop {
            let tag = self.number("the tag of a field")?;
            seen.is_rocksdb |= tag != 1 && !PEBBLE_FIELDS.contains(&tag);
            match tag {
                1 => return Ok(()),
                66 => {
                    self.number("the number of a file")?;
                }
                69 => {
                    self.number("a depth")?;
                    for _ in 0..self.number("a number of files of values")? {
                        self.number("a file of values")?;
                        self.number("bytes of values")?;
                    }
                }
                _ => {
                    self.bytes("a field")?;
                }
            }
        }
    }

    /// Passes over fields that each have a tag and a length, up to the tag `end`.
    fn pass_customs(&mut self, end: u64) -> Result<(), String> {
        while self.number("the tag of a field")? != end {
            self.bytes("a field")?;
        }
        Ok(())
    }
}

/// Reads a record, and notes in `seen` whose fields it has.
fn read_edit(fields: &mut Fields<'_>, seen: &mut Seen) -> Result<Edit, String> {
    let mut edit = Edit::default();
    while !fields.rest.is_empty() {
        let tag = fields.number("a tag")?;
        seen.tag(tag);
        match tag {
            1 => edit.comparator = Some(fields.text("the name of a comparator")?),
            4 => edit.last_sequence = Some(fields.number("a sequence number")?),
            5 => {
                fields.level()?;
                fields.key()?;
            }
            6 => edit.deleted.push((fields.level()?, fields.number("the number of a file")?)),
            7 | 100 | 102..=104 => {
                let (file, sequences) = file(fields, tag, seen)?;
                edit.added.push(file);
                edit.sequences = match (edit.sequences, sequences) {
                    (Some(all), Some(new)) => Some((all.0.min(new.0), all.1.max(new.1))),
                    (all, new) => all.or(new),
                };
            }
            // Pebble: tables that others show parts of, and files of values.
            105 | 108 => {
                fields.number("a number")?;
                fields.number("a number or bytes")?;
            }
            106 => {
                fields.number("a number")?;
            }
            107 => {
                for what in ["a file", "a number", "bytes", "bytes of values", "a time"] {
                    fields.number(what)?;
                }
            }
            200 => edit.family = fields.number("a column family")?,
            201 => edit.family_added = Some(fields.text("the name of a column family")?),
            202 => edit.drops_family = true,
            2 | 3 | 9 | 10 | 203 | 300 => {
                fields.number("a number")?;
            }
            // A file of values that lie apart: number, values, bytes, checksum.
            400 => {
                for what in ["a number", "a number of values", "a number of bytes"] {
                    fields.number(what)?;
                }
                fields.bytes("the name of a checksum")?;
                fields.bytes("a checksum")?;
                fields.pass_customs(0)?;
            }
            401 => {
                for what in ["a number", "a number of values", "a number of bytes"] {
                    fields.number(what)?;
                }
                fields.pass_customs(0)?;
            }
            _ if tag >= SAFE_IGNORE => {
                fields.bytes("a field that can be left out")?;
            }
            _ => return Err(format!("expected a tag of a version edit, found {tag}")),
        }
    }
    Ok(edit)
}

/// The first and the last sequence number in a table.
type Sequences = Option<(u64, u64)>;

/// Reads a new file in one of its five forms.
fn file(fields: &mut Fields<'_>, tag: u64, seen: &mut Seen) -> Result<(File, Sequences), String> {
    let level = fields.level()?;
    let number = fields.number("the number of a file")?;
    if tag == 102 {
        fields.number("a path")?;
    }
    let bytes = fields.number("the bytes of a file")?;
    if bytes >= TABLE_MAX {
        return Err(format!("expected a file of less than 2^40 bytes, found {bytes}"));
    }
    let (mut smallest, mut largest) = (Vec::new(), Vec::new());
    // With ranges of keys, a table says whether it has keys too, and then where the ranges lie.
    let has_ranges = tag == 104;
    let has_keys = !has_ranges || fields.take(1, "a mark of keys")?[0] & 1 == 1;
    if has_keys {
        (smallest, largest) = (fields.key()?, fields.key()?);
    }
    if has_ranges {
        let (from, end) = (fields.key()?, fields.key()?);
        smallest = if has_keys { smallest.min(from) } else { from };
        largest = largest.max(end);
    }
    let mut sequences = None;
    if tag != 7 {
        let first = fields.number("the first sequence number")?;
        sequences = Some((first, fields.number("the last sequence number")?));
    }
    if matches!(tag, 103 | 104) {
        fields.pass_fields_of_table(seen)?;
    }
    Ok((File { level, number, bytes, smallest, largest }, sequences))
}
