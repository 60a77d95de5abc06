//! Reads histories, by the description of their format.

use super::super::History;
use super::super::outline::{Outline, Piece};
use base64::Engine;
use flate2::read::DeflateDecoder;
use std::io::Read;

/// Runs by row (memory, then the levels), newest first: name and outline.
pub(super) type Runs = Vec<Vec<(u64, Outline)>>;

pub(super) struct Decoder<'a> {
    reasons: &'a [String],
    bytes: Vec<u8>,
    at: usize,
    rows: Runs,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(history: &'a History) -> Decoder<'a> {
        let packed = base64::engine::general_purpose::STANDARD.decode(&history.steps).unwrap();
        let mut bytes = Vec::new();
        DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        Decoder { reasons: &history.reasons, bytes, at: 0, rows: Vec::new() }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns the runs, without empty rows at the end.
    pub(super) fn runs(&self) -> Runs {
        let mut rows = self.rows.clone();
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        rows
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// Applies the next step, and returns the bytes that it wrote.
    pub(super) fn step(&mut self) -> u64 {
        let mut written = 0;
        if (1..=3).contains(&self.varint()) {
            let _level = self.varint();
            let reason = self.varint();
            let holes = self.reasons[reason as usize].matches("{}").count();
            for _ in 0..holes {
                self.varint();
            }
            let parts: Vec<u64> = (0..5).map(|_| self.varint()).collect();
            written = parts[2];
        }
        for _ in 0..self.varint() {
            let name = self.varint();
            let (row, index) = self.find(name);
            self.rows[row].remove(index);
        }
        for _ in 0..self.varint() {
            self.change();
        }
        written
    }

    fn find(&self, name: u64) -> (usize, usize) {
        let index = |row: &Vec<(u64, Outline)>| row.iter().position(|(known, _)| *known == name);
        let found = self.rows.iter().enumerate().find_map(|(row, runs)| Some((row, index(runs)?)));
        found.expect("a run that the history named before")
    }

    fn change(&mut self) {
        let name = self.varint();
        let (row, index) = match self.varint() {
            0 => self.find(name),
            place => {
                let row = place as usize - 1;
                let index = self.varint() as usize;
                if self.rows.len() <= row {
                    self.rows.resize(row + 1, Vec::new());
                }
                let new = Outline { pieces: Vec::new(), slices: 0 };
                self.rows[row].insert(index, (name, new));
                (row, index)
            }
        };
        let slices = self.varint();
        let at = self.varint() as usize;
        let gone = self.varint() as usize;
        let new = self.varint();
        let before = &self.rows[row][index].1.pieces;
        let mut end = at.checked_sub(1).map_or(0, |last| before[last].end);
        let mut pieces = Vec::new();
        for _ in 0..new {
            let start = end + self.varint();
            end = start + self.varint();
            pieces.push(Piece { start, end, bytes: self.varint() });
        }
        let outline = &mut self.rows[row][index].1;
        outline.slices = slices;
        outline.pieces.splice(at..at + gone, pieces);
    }
}
