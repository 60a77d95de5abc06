//! The footer: the last bytes of a table file, from which everything else is found.
//!
//! ```text
//! version: u32 | features: u32 | table: u64
//! | filter start, end | index start, end | properties start, end: u64 each | checksum: u64 | magic
//! ```
//!
//! All versions of the format end in the same three things at the same place: version, checksum
//! and magic. So another version is told from damage. Features are what not every table of a
//! version has: each a bit, and a table with a bit that is not known here is not read.

use super::FORMAT_VERSION;
use super::codec::{Damage, Reader};
use super::compress::PLAIN_BYTES_PER_BYTE;
use super::seal::Place;
use std::ops::Range;

/// Bytes of a footer.
pub const FOOTER_BYTES: usize = CHECKED_BYTES + 8 + MAGIC.len();

/// What the checksum covers.
const CHECKED_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"lsmtable";

/// Data blocks of the table are compressed.
pub const FEATURE_COMPRESSED: u32 = 1;

/// The number of all entries is 0 in the file; the tree says what it is.
pub const FEATURE_UNDATED: u32 = 2;

/// All features that are known.
const FEATURES: u32 = FEATURE_COMPRESSED | FEATURE_UNDATED;

/// Where a part of the file lies, in bytes from its start.
pub type Section = Range<u64>;

/// Which table this is, and where its parts are. Data blocks lie in front of the filter; between
/// the parts there is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The number of the table.
    pub table: u64,
    /// The filter block; empty where the table has no filter.
    pub filter: Section,
    /// The index block.
    pub index: Section,
    /// The properties block, which ends where the footer starts.
    pub properties: Section,
    /// What the table has that not every table has, a bit for each.
    pub features: u32,
}

/// Why a footer cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FooterFault {
    /// It is not what was written.
    Damage(Damage),
    /// It was written by a program of another format: this version of it.
    Other(u32),
    /// The table has these features, which are not known.
    Features(u32),
}

impl From<Damage> for FooterFault {
    fn from(damage: Damage) -> FooterFault {
        FooterFault::Damage(damage)
    }
}

impl Footer {
    /// The bytes of the footer.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(FORMAT_VERSION)
    }

    /// The same, said to be of format `version`.
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
            return Err(Damage::whole("a table does not end as tables do").into());
        }
        if sum != checksum(checked, offset) {
            return Err(Damage::whole("the checksum of a footer does not match").into());
        }
        let mut reader = Reader::new(checked, 0);
        let version = reader.u32()?;
        if version > 0 && version != FORMAT_VERSION {
            return Err(FooterFault::Other(version));
        }
        let features = reader.u32()?;
        let unknown = features & !FEATURES;
        if version > 0 && unknown > 0 {
            return Err(FooterFault::Features(unknown));
        }
        let table = reader.u64()?;
        let mut section = || Ok::<_, Damage>(reader.u64()?..reader.u64()?);
        let (filter, index, properties) = (section()?, section()?, section()?);
        let footer = Footer { table, filter, index, properties, features };
        if version == 0 || !footer.fits(offset) {
            return Err(Damage::whole("a footer contradicts itself").into());
        }
        Ok(footer)
    }

    /// What the data blocks come to, at most, when nothing of them is compressed.
    pub fn plain_bytes_max(&self) -> u64 {
        match self.features & FEATURE_COMPRESSED {
            0 => self.filter.start,
            _ => self.filter.start.saturating_mul(PLAIN_BYTES_PER_BYTE),
        }
    }

    /// Whether the parts fill the file up to the footer at `offset`.
    fn fits(&self, offset: u64) -> bool {
        self.filter.start <= self.filter.end
            && self.filter.end == self.index.start
            && self.index.start <= self.index.end
            && self.index.end == self.properties.start
            && self.properties.start <= self.properties.end
            && self.properties.end == offset
    }
}

/// The footer says which table this is, so its checksum covers its offset only: table number 0.
fn checksum(bytes: &[u8], offset: u64) -> u64 {
    Place { table: 0, offset }.checksum(bytes)
}
