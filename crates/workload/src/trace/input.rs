//! The bytes of a trace: lines, or entries of known lengths.

use std::io::{self, BufRead, Read};

/// Longest line: two keys of the greatest length, and room for the rest.
const LINE_BYTES_MAX: u64 = 256 << 10;

/// Most bytes at the start that a format is known by.
const START_BYTES: u64 = 64;

/// Returns the first bytes of `input`, and what reads it from its start.
pub(super) fn start_of<'a>(
    mut input: Box<dyn BufRead + 'a>,
) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let mut start = Vec::new();
    (&mut input).take(START_BYTES).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(io::Cursor::new(start).chain(input))))
}

/// Reads lines one by one. An end after the last line starts no further line.
pub(super) struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    /// The number of the line that was read last, from 1.
    pub(super) count: u64,
    /// True if the line that was read last has an end.
    pub(super) has_end: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: Box<dyn BufRead + 'a>) -> Self {
        Self { input, line: Vec::new(), count: 0, has_end: true }
    }

    /// Returns the next line without its end; a message in place of a line that is too long.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<&[u8], String>>> {
        self.line.clear();
        let mut input = (&mut self.input).take(LINE_BYTES_MAX + 1);
        if input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.count += 1;
        self.has_end = self.line.ends_with(b"\n");
        if self.line.len() as u64 > LINE_BYTES_MAX {
            return Ok(Some(Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"))));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(Ok(line.strip_suffix(b"\r").unwrap_or(line))))
    }
}

/// Reads entries one by one.
pub(super) struct Entries<'a> {
    input: Box<dyn BufRead + 'a>,
    /// The bytes read so far.
    pub(super) offset: u64,
}

impl<'a> Entries<'a> {
    pub(super) fn new(input: Box<dyn BufRead + 'a>) -> Self {
        Self { input, offset: 0 }
    }

    /// Replaces `bytes` by the next `count`, or by fewer at the end of the file. Memory grows with
    /// what is there, so that a damaged count takes none.
    pub(super) fn next(&mut self, count: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        let read = (&mut self.input).take(count).read_to_end(bytes)?;
        self.offset += read as u64;
        Ok(())
    }
}

/// Takes what an entry consists of from its front.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// Takes `count` bytes, named `what` in the message.
    pub(super) fn bytes(&mut self, count: usize, what: &str) -> Result<&'a [u8], String> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            let found = self.0.len();
            return Err(format!("expected {count} bytes of {what}, found {found}"));
        };
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8, String> {
        Ok(self.bytes(1, what)?[0])
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.bytes(4, what)?.try_into().expect("four bytes")))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.bytes(8, what)?.try_into().expect("eight bytes")))
    }

    /// Takes a number of 32 bits in groups of seven, the lowest first.
    pub(super) fn varint(&mut self, what: &str) -> Result<u32, String> {
        let mut number = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte(what)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let whole = u32::try_from(number);
                return whole.map_err(|_| format!("expected 32 bits of {what}, found {number}"));
            }
        }
        Err(format!("expected at most 5 bytes of {what}, found more"))
    }

    /// Takes a length and as many bytes.
    pub(super) fn slice(&mut self, what: &str) -> Result<&'a [u8], String> {
        let count = self.varint(&format!("the length of {what}"))?;
        self.bytes(count as usize, what)
    }
}
