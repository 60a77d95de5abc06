//! Takes files of a store apart, changes them, and puts them together with right checksums, so that
//! the changes reach the decoders.

use lsmith_fuzz::{Choices, change, put_varint, varint, write_at};
use std::ops::Range;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const SEAL_BYTES: usize = 9;
pub(crate) const FOOTER_BYTES: usize = 80;

/// Appends the length of `bytes`, then `bytes`.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Returns the varint at `at`, and moves `at` behind it.
fn take_varint(bytes: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
    }
    unreachable!("the ninth byte ends")
}

pub(crate) fn checksum(table: u64, offset: usize, bytes: &[u8]) -> u64 {
    let place = [table.to_le_bytes(), (offset as u64).to_le_bytes()].concat();
    xxh3_64_with_seed(bytes, xxh3_64(&place))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// The entry of a block in an index.
#[derive(Clone, Debug)]
struct Fence {
    continued: u64,
    key: Vec<u8>,
    shared: usize,
}

/// A table file in parts.
#[derive(Clone, Debug)]
pub(crate) struct TableParts {
    footer: Vec<u8>,
    /// The stored bytes of each data block, with the tag behind and without the checksum.
    pub(crate) blocks: Vec<Vec<u8>>,
    fences: Vec<Fence>,
    filter: Option<Vec<u8>>,
    /// The payload of the properties block.
    pub(crate) properties: Vec<u8>,
}

/// The change that was made to a table.
pub(crate) enum Changed {
    /// Only this data block: keys outside of this range, if there is one, are not affected.
    Block(Vec<u8>, Option<Vec<u8>>),
    Other,
}

impl TableParts {
    /// Takes a valid sorted table apart.
    pub(crate) fn new(file: &[u8]) -> TableParts {
        let footer = file[file.len() - FOOTER_BYTES..].to_vec();
        let section = |at: usize| word(&footer, at) as usize..word(&footer, at + 8) as usize;
        let payload =
            |section: Range<usize>| file[section.start..section.end - SEAL_BYTES].to_vec();
        let index = payload(section(32));
        let mut at = 0;
        let mut offset = 0;
        let (mut fences, mut blocks): (Vec<Fence>, _) = (Vec::new(), Vec::new());
        while at < index.len() {
            let tagged = take_varint(&index, &mut at);
            let shared = take_varint(&index, &mut at) as usize;
            let suffix = take_varint(&index, &mut at) as usize;
            let before = fences.last().map_or(&[][..], |fence| &fence.key[..shared]);
            let key = [before, &index[at..at + suffix]].concat();
            at += suffix;
            fences.push(Fence { continued: tagged & 1, key, shared });
            let bytes = (tagged >> 1) as usize;
            blocks.push(file[offset..offset + bytes - 8].to_vec());
            offset += bytes;
        }
        let filter = (!section(16).is_empty()).then(|| payload(section(16)));
        TableParts { properties: payload(section(48)), footer, blocks, fences, filter }
    }

    /// Returns the file with these parts, after `last` was applied to its footer.
    fn build(&self, index: &[u8], last: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let table = word(&self.footer, 8);
        let mut file = Vec::new();
        let seal = |file: &mut Vec<u8>, stored: &[u8]| {
            let sum = checksum(table, file.len(), stored);
            file.extend_from_slice(stored);
            file.extend_from_slice(&sum.to_le_bytes());
        };
        self.blocks.iter().for_each(|block| seal(&mut file, block));
        let mut footer = self.footer.clone();
        let parts = [self.filter.as_deref(), Some(index), Some(&self.properties)];
        for (part, at) in parts.into_iter().zip([16, 32, 48]) {
            write_at(&mut footer, at, &(file.len() as u64).to_le_bytes());
            if let Some(part) = part {
                seal(&mut file, &[part, &[0]].concat());
            }
            write_at(&mut footer, at + 8, &(file.len() as u64).to_le_bytes());
        }
        last(&mut footer);
        let sum = checksum(0, file.len(), &footer[..64]);
        write_at(&mut footer, 64, &sum.to_le_bytes());
        file.extend_from_slice(&footer);
        file
    }

    fn index(&self, dice: Option<&mut Choices<'_>>) -> Vec<u8> {
        let mut fields: Vec<u64> = Vec::new();
        let mut suffixes = Vec::new();
        for (fence, block) in self.fences.iter().zip(&self.blocks) {
            let suffix = &fence.key[fence.shared.min(fence.key.len())..];
            let tagged = (block.len() as u64 + 8) << 1 | fence.continued;
            fields.extend([tagged, fence.shared as u64, suffix.len() as u64]);
            suffixes.push(suffix);
        }
        if let Some(dice) = dice {
            let at = dice.below(fields.len());
            fields[at] = dice.border();
        }
        let fences = fields.chunks(3).zip(suffixes);
        let fence = |(numbers, suffix): (&[u64], &[u8])| {
            [numbers.iter().flat_map(|number| varint(*number)).collect(), suffix.to_vec()].concat()
        };
        fences.flat_map(fence).collect()
    }

    /// Returns the file with these parts.
    pub(crate) fn whole(&self) -> Vec<u8> {
        self.build(&self.index(None), |_| ())
    }

    /// Returns the file with these parts and other features.
    pub(crate) fn with_features(&self, change: impl FnOnce(u32) -> u32) -> Vec<u8> {
        self.build(&self.index(None), |footer| {
            let features = u32::from_le_bytes(*footer[4..].first_chunk().unwrap());
            write_at(footer, 4, &change(features).to_le_bytes());
        })
    }

    /// Returns a table with a change somewhere.
    pub(crate) fn mutant(&self, dice: &mut Choices<'_>) -> (Vec<u8>, Changed) {
        let mut new = self.clone();
        let mut index = None;
        match dice.below(20) {
            0..8 => return self.block_mutant(dice),
            8 | 9 => change(new.filter.get_or_insert_default(), dice, true),
            10 | 11 => index = Some(self.index(Some(dice))),
            12 | 13 => {
                let mut bytes = self.index(None);
                change(&mut bytes, dice, true);
                index = Some(bytes);
            }
            14..17 => change(&mut new.properties, dice, true),
            17 => new.shuffle(dice),
            18 => new.filter = None,
            _ => {
                let index = self.index(None);
                let at = 8 * dice.below(8);
                let number = dice.border();
                let file = new.build(&index, |footer| write_at(footer, at, &number.to_le_bytes()));
                return (file, Changed::Other);
            }
        }
        let index = index.unwrap_or_else(|| new.index(None));
        (new.build(&index, |_| ()), Changed::Other)
    }

    /// Removes a block, repeats one, or swaps two.
    fn shuffle(&mut self, dice: &mut Choices<'_>) {
        let [left, right] = [0; 2].map(|_| dice.below(self.blocks.len()));
        match dice.below(3) {
            0 => self.blocks.swap(left, right),
            1 => self.fences.swap(left, right),
            _ => {
                let block = self.blocks[left].clone();
                let fence = self.fences[left].clone();
                self.blocks.insert(right, block);
                self.fences.insert(right, fence);
            }
        }
    }

    fn block_mutant(&self, dice: &mut Choices<'_>) -> (Vec<u8>, Changed) {
        let mut new = self.clone();
        let number = dice.below(self.blocks.len());
        let grows = dice.chance(50);
        let block = &mut new.blocks[number];
        let tag = block.pop().unwrap();
        match expand(tag, block) {
            // What is compressed is as often changed before it was compressed.
            Some(mut payload) if dice.chance(60) => {
                change(&mut payload, dice, grows);
                *block = shrink(tag, &payload);
                block.push(tag);
            }
            _ => {
                change(block, dice, grows);
                block.push(if dice.chance(90) { tag } else { dice.below(4) as u8 });
            }
        }
        let index = new.index(None);
        let end = self.fences.get(number + 1).map(|fence| fence.key.clone());
        (new.build(&index, |_| ()), Changed::Block(self.fences[number].key.clone(), end))
    }
}

fn expand(tag: u8, stored: &[u8]) -> Option<Vec<u8>> {
    let (length, made) = stored.split_first_chunk()?;
    let bytes = u32::from_le_bytes(*length) as usize;
    match tag {
        1 => lz4_flex::block::decompress(made, bytes).ok(),
        2 => zstd::bulk::decompress(made, bytes).ok(),
        _ => None,
    }
}

fn shrink(tag: u8, payload: &[u8]) -> Vec<u8> {
    let made = match tag {
        1 => lz4_flex::block::compress(payload),
        _ => zstd::bulk::compress(payload, 1).unwrap(),
    };
    [&(payload.len() as u32).to_le_bytes()[..], &made].concat()
}

/// A log file taken apart: its header and the payloads of its records.
#[derive(Clone, Debug)]
pub(crate) struct LogParts {
    kind: u32,
    number: u64,
    /// For each record, its sync mark and its payload.
    pub(crate) records: Vec<(bool, Vec<u8>)>,
}

const MARK: u32 = 1 << 31;

impl LogParts {
    pub(crate) fn new(file: &[u8]) -> LogParts {
        let kind = u32::from_le_bytes(*file[12..].first_chunk().unwrap());
        let mut at = 32;
        let mut records = Vec::new();
        while let Some(head) = file.get(at..at + 16).filter(|head| head[..8] != [0; 8]) {
            let coded = u32::from_le_bytes(*head.first_chunk().unwrap());
            let length = (coded & !MARK) as usize;
            records.push((coded & MARK != 0, file[at + 16..][..length].to_vec()));
            at += 16 + length.next_multiple_of(8);
        }
        LogParts { kind, number: word(file, 16), records }
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut file = b"lsmithlg\x01\0\0\0".to_vec();
        file.extend_from_slice(&self.kind.to_le_bytes());
        file.extend_from_slice(&self.number.to_le_bytes());
        file.extend_from_slice(&xxh3_64(&file).to_le_bytes());
        for (marked, payload) in &self.records {
            let mut padded = payload.clone();
            padded.resize(payload.len().next_multiple_of(8), 0);
            let coded = payload.len() as u32 | if *marked { MARK } else { 0 };
            let offset = (file.len() as u64).to_le_bytes();
            let place = [&self.number.to_le_bytes()[..], &offset, &coded.to_le_bytes()].concat();
            let seed = xxh3_64(&place);
            let tag = (seed >> 32) as u32 | 1 << 24 | 1;
            file.extend_from_slice(&coded.to_le_bytes());
            file.extend_from_slice(&tag.to_le_bytes());
            file.extend_from_slice(&xxh3_64_with_seed(&padded, seed).to_le_bytes());
            file.extend_from_slice(&padded);
        }
        file.resize(file.len() + 64, 0);
        file
    }

    /// Returns a log with a change somewhere. `text` is true if its records are text.
    pub(crate) fn mutant(&self, dice: &mut Choices<'_>, text: bool) -> Vec<u8> {
        let mut new = self.clone();
        let [left, right] = [0; 2].map(|_| dice.below(self.records.len()));
        match dice.below(12) {
            _ if self.records.is_empty() => new.records.push((dice.chance(50), dice.bytes(20))),
            0 => drop(new.records.remove(left)),
            1 => new.records.swap(left, right),
            2 => new.records.insert(left, self.records[right].clone()),
            3 => new.records[left].0 ^= true,
            4..10 if text => {
                let old = String::from_utf8_lossy(&self.records[left].1).into_owned();
                let other = String::from_utf8_lossy(&self.records[right].1).into_owned();
                new.records[left].1 = text_mutant(&old, &other, dice).into_bytes();
            }
            _ => change(&mut new.records[left].1, dice, true),
        }
        new.build()
    }
}

/// Returns `text` with a word, a number or a line changed, perhaps to one from `other`.
pub(crate) fn text_mutant(text: &str, other: &str, dice: &mut Choices<'_>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let others: Vec<&str> = other.lines().collect();
    let (Some(line), false) = (dice.below(lines.len()).into(), lines.is_empty()) else {
        return dice.border().to_string();
    };
    let foreign = others.get(dice.below(others.len())).copied().unwrap_or_default();
    match dice.below(8) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(line, lines[line].clone()),
        2 => lines.insert(line, foreign.to_string()),
        _ => lines[line] = line_mutant(&lines[line], foreign, dice),
    }
    lines.join("\n") + "\n"
}

fn line_mutant(line: &str, other: &str, dice: &mut Choices<'_>) -> String {
    let edges = |line: &str| -> Vec<usize> {
        let bytes = line.as_bytes();
        let differs = |at: &usize| {
            bytes[*at].is_ascii_digit() != bytes[*at - 1].is_ascii_digit() || bytes[*at] == b' '
        };
        let inner = (1..bytes.len()).filter(differs).filter(|at| line.is_char_boundary(*at));
        [0].into_iter().chain(inner).chain([bytes.len()]).collect()
    };
    let here = edges(line);
    let there = edges(other);
    let pick = |edges: &[usize], dice: &mut Choices<'_>| {
        let at = dice.below(edges.len() - 1);
        edges[at]..edges[at + 1]
    };
    let new = match dice.below(4) {
        0 => other.get(pick(&there, dice)).unwrap_or_default().to_string(),
        1 => String::new(),
        _ => dice.border().to_string(),
    };
    let mut line = line.to_string();
    // Where there is a number, as a rule another comes into its place.
    for _ in 0..8 {
        let place = pick(&here, dice);
        if line.as_bytes().get(place.start).is_some_and(u8::is_ascii_digit) || dice.chance(10) {
            line.replace_range(place, &new);
            break;
        }
    }
    line
}

/// Returns a `CURRENT` with other words and a right checksum.
pub(crate) fn current_mutant(text: &str, dice: &mut Choices<'_>) -> String {
    let lines: Vec<&str> = text.lines().take(2).collect();
    let text = text_mutant(&(lines.join("\n") + "\n"), text, dice);
    format!("{text}checksum {:016x}\n", xxh3_64(text.as_bytes()))
}
