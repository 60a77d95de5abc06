//! Valid bytes with random changes.

use crate::Choices;

/// Appends `number` as a varint: seven bits per byte, the lowest first.
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends `bytes` behind their length, which is a varint.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Returns `number` as a varint.
#[must_use]
pub fn varint(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, number);
    out
}

/// Changes some of `bytes`. If `may_grow`, also changes their number.
pub fn change(bytes: &mut Vec<u8>, choices: &mut Choices<'_>, may_grow: bool) {
    for _ in 0..choices.pick(&[1, 1, 1, 2, 5]) {
        // Many formats have their important fields at the start or the end.
        let span = if choices.chance(30) { bytes.len().min(24) } else { bytes.len() };
        let from_end = choices.chance(50) && span < bytes.len();
        let at = choices.below(span) + if from_end { bytes.len() - span } else { 0 };
        let number = choices.border();
        let end = |length: usize, bytes: &[u8]| (at + length).min(bytes.len());
        match choices.below(if may_grow { 10 } else { 5 }) {
            0 => write_at(bytes, at, &[number as u8]),
            1 => {
                let bit = 1 << choices.below(8);
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
            }
            2 => write_at(bytes, at, &(number as u32).to_le_bytes()),
            3 => write_at(bytes, at, &number.to_le_bytes()),
            4 => write_at(bytes, at, &varint(number)),
            5 => drop(bytes.splice(at..end(1, bytes), varint(number))),
            6 => drop(bytes.splice(at..at, varint(number))),
            7 => drop(bytes.drain(at..end(1 + choices.below(8), bytes))),
            8 => bytes.truncate(at),
            _ => {
                let copied = bytes[at..end(choices.below(40), bytes)].to_vec();
                let to = choices.below(bytes.len() + 1);
                drop(bytes.splice(to..to, copied));
            }
        }
    }
}

/// Overwrites `bytes` at `at` with `new`, but not beyond their end.
pub fn write_at(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes.iter_mut().skip(at).zip(new).for_each(|(old, new)| *old = *new);
}
