//! The footer: the last bytes of a table file, which locate all other parts.
//!
//! ```text
//! version: u32 | features: u32 | table: u64
//! | filter start, end | index start, end | properties start, end: u64 each | checksum: u64 | magic
//! ```
//!
//! Every version of the format ends with the same three things at the same offsets: version,
//! checksum and magic. So a reader can tell another version from damage. Features are properties
//! that not every table of a version has, one bit each. A table with an unknown feature bit is not
//! read.

use super::FORMAT_VERSION;
use super::codec::{Damage, Reader};
use super::compress::PLAIN_BYTES_PER_BYTE;
use super::seal::SealedPlace;
use std::ops::Range;

/// Bytes of a footer.
pub const FOOTER_BYTES: usize = CHECKED_BYTES + 8 + MAGIC.len();

/// The number of bytes that the checksum covers.
const CHECKED_BYTES: usize = 64;

/// The last bytes of a table.
pub const MAGIC: [u8; 8] = *b"lsmtable";

/// Data blocks of the table are compressed.
pub const FEATURE_COMPRESSED: u32 = 1;

/// The file stores sequence number 0 for all entries; the tree knows their common sequence number.
pub const FEATURE_UNDATED: u32 = 2;

/// The table was written outside of a store, so it has no file id: all seals have 0.
pub const FEATURE_OUTSIDE: u32 = 4;

/// The footer belongs to one root of an append table.
pub const FEATURE_APPEND: u32 = 8;

/// The filter holds prefixes of keys too. The properties end with their length.
pub const FEATURE_PREFIXES: u32 = 16;

/// All entries of the table expire, deletions aside. The properties have the latest of their times.
pub const FEATURE_EXPIRES: u32 = 32;

/// Some entries of the table, which was written outside of a store, expire.
pub const FEATURE_EXPIRING: u32 = 64;

/// The table, which was written outside of a store, has operands. The properties end with the name
/// of their operator.
pub const FEATURE_OPERANDS: u32 = 128;

/// The table, which was written outside of a store, has range deletes. The properties end with
/// them.
pub const FEATURE_RANGE_DELETES: u32 = 256;

/// Values of the table lie in value files. The properties end with the files.
pub const FEATURE_VALUES: u32 = 512;

/// All known features.
const FEATURES: u32 = FEATURE_COMPRESSED
    | FEATURE_UNDATED
    | FEATURE_OUTSIDE
    | FEATURE_APPEND
    | FEATURE_PREFIXES
    | FEATURE_EXPIRES
    | FEATURE_EXPIRING
    | FEATURE_OPERANDS
    | FEATURE_RANGE_DELETES
    | FEATURE_VALUES;

/// The range of a part of the file, in bytes from its start.
pub type Section = Range<u64>;

/// The id of a table and the places of its parts. Data blocks lie in front of the filter. There
/// are no gaps between the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The id of the table; 0 if it was written [outside](FEATURE_OUTSIDE) of a store.
    pub table: u64,
    /// The filter block; empty if the table has no filter.
    pub filter: Section,
    /// The index block.
    pub index: Section,
    /// The properties block, which ends where the footer starts.
    pub properties: Section,
    /// The features of the table, one bit each.
    pub features: u32,
}

/// Why a footer cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FooterFault {
    /// The footer is damaged.
    Damage(Damage),
    /// Another program wrote the table, in this version of the format.
    Other(u32),
    /// The table has these unknown features.
    Features(u32),
}

impl From<Damage> for FooterFault {
    fn from(damage: Damage) -> FooterFault {
        FooterFault::Damage(damage)
    }
}

impl Footer {
    /// Encodes the footer.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(FORMAT_VERSION)
    }

    /// Encodes the footer with another format `version`.
    pub fn encode_as(&self, version: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&self.features.to_le_bytes());
        out.extend_from_slice(&self.table.to_le_bytes());
        for section in [&self.filter, &self.index, &self.properties] {
            out.extend_from_slice(&section.start.to_le_bytes());
            out.extend_from_slice(&section.end.to_le_bytes());
        }
        let checksum = checksum(&out, self.properties.end);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        out
    }

    /// Decodes the footer `bytes` that starts at `offset` of the file.
    pub fn decode(bytes: &[u8; FOOTER_BYTES], offset: u64) -> Result<Footer, FooterFault> {
        let mut reader = Reader::new(bytes, 0);
        let checked = reader.take(CHECKED_BYTES)?;
        let sum = reader.u64()?;
        if reader.array()? != MAGIC {
            return Err(Damage::whole("expected `lsmtable` at the end of a table").into());
        }
        if sum != checksum(checked, offset) {
            return Err(Damage::whole("the checksum of the footer does not match").into());
        }
        let mut fields = Reader::new(checked, 0);
        let version = fields.u32()?;
        if version > 0 && version != FORMAT_VERSION {
            return Err(FooterFault::Other(version));
        }
        let features = fields.u32()?;
        // Value files belong to one store.
        let is_outside = features & FEATURE_OUTSIDE != 0;
        let known = if is_outside { FEATURES & !FEATURE_VALUES } else { FEATURES };
        let unknown = features & !known;
        if version > 0 && unknown > 0 {
            return Err(FooterFault::Features(unknown));
        }
        let table = fields.u64()?;
        let mut section = || Ok::<_, Damage>(fields.u64()?..fields.u64()?);
        let filter = section()?;
        let index = section()?;
        let properties = section()?;
        let footer = Footer { table, filter, index, properties, features };
        if version == 0 || !footer.fits(offset) {
            return Err(Damage::whole(
                "a footer has version 0, or parts that do not fill the file",
            )
            .into());
        }
        Ok(footer)
    }

    /// Returns true if the properties end with the length of prefixes.
    pub fn has_prefixes(&self) -> bool {
        self.features & FEATURE_PREFIXES != 0
    }

    /// Returns true if the properties have the time at which the last entry expires.
    pub fn has_expires(&self) -> bool {
        self.features & FEATURE_EXPIRES != 0
    }

    /// Returns true if the table was written outside of a store.
    pub fn is_outside(&self) -> bool {
        self.features & FEATURE_OUTSIDE != 0
    }

    /// Returns true if this can be the footer of `table`.
    pub fn is_of(&self, table: u64) -> bool {
        if self.is_outside() { self.table == 0 } else { self.table == table }
    }

    /// Returns the most bytes that the data blocks can have when they are uncompressed.
    pub fn plain_bytes_max(&self) -> u64 {
        match self.features & FEATURE_COMPRESSED {
            0 => self.filter.start,
            _ => self.filter.start.saturating_mul(PLAIN_BYTES_PER_BYTE),
        }
    }

    /// Returns true if the parts fill the file up to the footer at `offset`.
    fn fits(&self, offset: u64) -> bool {
        self.filter.start <= self.filter.end
            && self.filter.end == self.index.start
            && self.index.start <= self.index.end
            && self.index.end == self.properties.start
            && self.properties.start <= self.properties.end
            && self.properties.end == offset
    }
}

/// Returns the checksum of a footer. It uses table number 0, because the footer itself contains the
/// id of its table.
fn checksum(bytes: &[u8], offset: u64) -> u64 {
    SealedPlace { table: 0, offset }.checksum(bytes)
}
