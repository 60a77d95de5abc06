//! Changes append tables below their checksums.

use crate::frame::file_parts::{FOOTER_BYTES, SEAL_BYTES, checksum, word};
use lsmith_fuzz::{Choices, change, write_at};
use std::ops::Range;

/// A part of an append table with a checksum of its own.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// A data block, node, part of a filter or root block, with its seal.
    Block(Range<usize>),
    Footer(Range<usize>),
}

/// Returns true if `file` is an append table.
pub(crate) fn is_append_table(file: &[u8]) -> bool {
    let features = file.len().checked_sub(FOOTER_BYTES).map(|start| file[start + 4]);
    features.is_some_and(|features| features & 1 << 3 != 0)
}

/// Returns the parts of a valid append table in their order.
fn parts(file: &[u8]) -> Vec<Part> {
    let table = word(file, file.len() - FOOTER_BYTES + 8);
    let mut parts = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let is_block = |end: &usize| {
            let sealed = &file[at..*end - 8];
            checksum(table, at, sealed) == word(file, *end - 8)
        };
        let is_footer = file.get(at..at + FOOTER_BYTES).is_some_and(|footer| {
            footer.ends_with(b"lsmtable") && checksum(0, at, &footer[..64]) == word(footer, 64)
        });
        let part = match is_footer {
            true => Part::Footer(at..at + FOOTER_BYTES),
            false => {
                let end = (at + SEAL_BYTES..=file.len()).find(is_block);
                Part::Block(at..end.expect("valid tables consist of blocks and footers"))
            }
        };
        let (Part::Block(range) | Part::Footer(range)) = &part;
        at = range.end;
        parts.push(part);
    }
    parts
}

/// Returns an append table with a change in one part, whose checksum is right.
pub(crate) fn mutant(file: &[u8], dice: &mut Choices<'_>) -> Vec<u8> {
    let table = word(file, file.len() - FOOTER_BYTES + 8);
    let parts = parts(file);
    // What the last batch wrote is read by every store, the rest where it leads there.
    let recent = parts.len().min(6);
    let from_end = if dice.chance(50) { recent } else { parts.len() };
    let mut new = file.to_vec();
    match &parts[parts.len() - 1 - dice.below(from_end)] {
        Part::Block(range) => {
            let mut payload = file[range.start..range.end - SEAL_BYTES].to_vec();
            change(&mut payload, dice, false);
            write_at(&mut new, range.start, &payload);
            if dice.chance(5) {
                new[range.end - SEAL_BYTES] = dice.below(4) as u8;
            }
            let sum = checksum(table, range.start, &new[range.start..range.end - 8]);
            write_at(&mut new, range.end - 8, &sum.to_le_bytes());
        }
        Part::Footer(range) => {
            let number = dice.border();
            write_at(&mut new, range.start + 8 * dice.below(8), &number.to_le_bytes());
            let sum = checksum(0, range.start, &new[range.start..range.start + 64]);
            write_at(&mut new, range.start + 64, &sum.to_le_bytes());
        }
    }
    new
}
