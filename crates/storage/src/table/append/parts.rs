//! Reads the parts of a root that are neither nodes nor values.

use crate::error::Result;
use crate::format::{AppendRoot, Damage, Filter, Footer, SEAL_BYTES, SealedPlace, Span, unseal};
use crate::table::table_file::TableFile;

/// Two blocks never start within the same piece of a file of this many bytes, because blocks are
/// longer.
pub(super) const PIECE_BYTES: u64 = 32;

const _: () = assert!(PIECE_BYTES < 18 + 4 + 2 + SEAL_BYTES as u64, "blocks are longer");

/// The footer and the properties of a root.
pub(super) struct RootParts {
    pub(super) footer: Footer,
    pub(super) root: AppendRoot,
}

/// Reads the root that ends at `end` of `file`.
pub(super) fn read_root(file: &TableFile, end: u64) -> Result<RootParts> {
    let footer = file.append_footer(end)?;
    let section = footer.properties.clone();
    let span = Span { offset: section.start, bytes: section.end - section.start };
    let root = read_part(file, span, |payload| AppendRoot::parse(payload, section.start))?;
    if footer.has_prefixes() != (root.prefix_bytes > 0) {
        let damage = Damage::whole("footer and root do not agree on prefixes");
        return Err(file.damaged(damage, section.start));
    }
    if footer.has_expires() != (root.expires > 0) {
        let damage = Damage::whole("footer and root do not agree on expiry");
        return Err(file.damaged(damage, section.start));
    }
    Ok(RootParts { footer, root })
}

/// Reads the block at `span`, which is neither node nor value, and parses its payload.
pub(super) fn read_part<T>(
    file: &TableFile,
    span: Span,
    parse: impl FnOnce(&[u8]) -> std::result::Result<T, Damage>,
) -> Result<T> {
    // A valid checksum does not limit this length, so a lack of memory must be an error.
    let enough = Vec::<u8>::new().try_reserve_exact(span.bytes as usize);
    enough.map_err(|error| file.failed("read", error.into()))?;
    let sealed = file.read(span.offset..span.end())?;
    let payload = unseal(&sealed, SealedPlace { table: file.sealed_as, offset: span.offset });
    payload.and_then(parse).map_err(|damage| file.damaged(damage, span.offset))
}

/// The filter of a root, complete.
#[derive(Clone, Debug)]
pub(super) struct RootFilter(Filter);

impl RootFilter {
    /// Reads the filter of `root`, if it has one.
    pub(super) fn read(file: &TableFile, root: &AppendRoot) -> Result<Option<RootFilter>> {
        let Some((first, lists)) = root.filter.split_first() else { return Ok(None) };
        let mut filter = read_part(file, *first, Filter::parse)?;
        for list in lists {
            read_part(file, *list, parse_hashes)?.into_iter().for_each(|hash| filter.insert(hash));
        }
        Ok(Some(RootFilter(filter)))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes() as u64
    }

    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u64 {
        self.0.touch(hash)
    }

    #[inline]
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        self.0.may_hold(hash)
    }
}

/// Decodes a list of hashes.
pub(super) fn parse_hashes(payload: &[u8]) -> std::result::Result<Vec<u64>, Damage> {
    let (words, rest) = payload.as_chunks::<8>();
    match rest {
        [] => Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect()),
        _ => Err(Damage::whole("a list of hashes has a part of a hash")),
    }
}
