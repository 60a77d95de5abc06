//! Prints the text form.

use super::scan::is_bare;
use crate::cuts::Overlap;
use crate::edit::{AddPlace, Addition, TreeEdit};
use crate::entry::SeqNo;
use crate::level::Counters;
use crate::memo::MemoChange;
use crate::plan::{MergePlan, Mode, Place};
use crate::profile::ProfilePoint;
use crate::range::KeyRange;
use crate::reads::Reads;
use crate::run::Run;
use crate::size::Size;
use crate::slice::{Slice, Table};
use crate::tree::{LevelId, Tree};
use crate::view::{BLOCK_BYTES_USUAL, Reservation, ReservationState, TreeView};
use lsmith_spec::format_bytes;
use std::fmt::{self, Display, Formatter, Result};

/// Prints a key as the text form does.
pub fn display_key(key: &[u8]) -> DisplayKey<'_> {
    DisplayKey(key)
}

/// A key being printed; see [`display_key`].
#[derive(Clone, Copy, Debug)]
pub struct DisplayKey<'a>(&'a [u8]);

impl Display for DisplayKey<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let bare = |key: &[u8]| !key.is_empty() && key.iter().all(|&byte| is_bare(byte as char));
        match self.0 {
            [bytes @ .., 0] if as_number(bytes).is_some() => {
                write!(f, "#{}+", as_number(bytes).unwrap_or_default())
            }
            bytes if as_number(bytes).is_some() => {
                write!(f, "#{}", as_number(bytes).unwrap_or_default())
            }
            key if bare(key) => f.write_str(&String::from_utf8_lossy(key)),
            key => quote(f, key),
        }
    }
}

/// Returns the number whose eight bytes `key` is; keys that begin with a zero byte only, so that
/// short readable keys stay readable.
fn as_number(key: &[u8]) -> Option<u64> {
    let bytes: [u8; 8] = key.try_into().ok()?;
    (bytes[0] == 0).then_some(u64::from_be_bytes(bytes))
}

fn quote(f: &mut Formatter<'_>, bytes: &[u8]) -> Result {
    f.write_str("\"")?;
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => write!(f, "\\{}", byte as char)?,
            b' '..=b'~' => write!(f, "{}", byte as char)?,
            _ => write!(f, "\\x{byte:02x}")?,
        }
    }
    f.write_str("\"")
}

fn text(f: &mut Formatter<'_>, text: &str) -> Result {
    if !text.is_empty() && text.chars().all(is_bare) {
        f.write_str(text)
    } else {
        quote(f, text.as_bytes())
    }
}

impl Display for KeyRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.start.is_empty() {
            write!(f, "{}", display_key(&self.start))?;
        }
        f.write_str("..")?;
        self.end.as_ref().map_or(Ok(()), |end| write!(f, "{}", display_key(end)))
    }
}

impl Display for Size {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&format_bytes(self.bytes))?;
        if self.entries > 0 {
            write!(f, " {}e", self.entries)?;
        }
        if self.tombstones > 0 {
            write!(f, " {}d", self.tombstones)?;
        }
        Ok(())
    }
}

impl Display for Slice {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let table = self.table();
        write!(f, "{}:{}", table.id, self.range())?;
        if !self.is_whole() {
            write!(f, " of {}", table.range)?;
        }
        write!(f, " {}", table.size)?;
        table_details(f, table)
    }
}

fn table_details(f: &mut Formatter<'_>, table: &Table) -> Result {
    if table.seq_max > SeqNo(0) {
        write!(f, " s{}..{}", table.seq_min, table.seq_max)?;
    }
    if table.root > 0 {
        write!(f, " root {}", table.root)?;
        if table.dead_bytes > 0 {
            write!(f, " dead {}", format_bytes(table.dead_bytes))?;
        }
        if table.born > 0 {
            write!(f, " born {}", table.born)?;
        }
    }
    if table.deletes_applied > SeqNo(0) {
        write!(f, " cleared {}", table.deletes_applied)?;
    }
    if table.expires > 0 {
        write!(f, " expires {}", table.expires)?;
    }
    if table.oldest_tombstone > 0 {
        write!(f, " deleted {}", table.oldest_tombstone)?;
    }
    for (index, ProfilePoint { key, below, after }) in table.profile.iter().enumerate() {
        f.write_str(if index == 0 { " {" } else { ", " })?;
        if let Some(after) = after {
            write!(f, "{}..", display_key(after))?;
        }
        write!(f, "{} {below}", display_key(key))?;
    }
    if table.profile.is_empty() { Ok(()) } else { f.write_str("}") }
}

fn slices<'a>(f: &mut Formatter<'_>, slices: impl IntoIterator<Item = &'a Slice>) -> Result {
    f.write_str("[")?;
    for (index, slice) in slices.into_iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{slice}")?;
    }
    f.write_str("]")
}

impl Display for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.id())?;
        if let Some(knot) = self.knot() {
            write!(f, "~{knot}")?;
        }
        slices(f, self.slices())
    }
}

fn reads(f: &mut Formatter<'_>, mut reads: Reads) -> Result {
    f.write_str(" reads")?;
    reads.fields().iter().try_for_each(|(_, sum)| write!(f, " {sum}"))
}

/// Attributes that trees and edits share.
fn history(f: &mut Formatter<'_>, flushes: u64, flushed: Size, dropped_below: SeqNo) -> Result {
    if flushes > 0 {
        write!(f, " flushes {flushes}")?;
    }
    if flushed != Size::default() {
        write!(f, " flushed {flushed}")?;
    }
    if dropped_below > SeqNo(0) {
        write!(f, " dropped_below {dropped_below}")?;
    }
    Ok(())
}

fn counters(f: &mut Formatter<'_>, level: usize, counters: &Counters) -> Result {
    write!(f, "count {}", LevelId::Disk(level))?;
    for (name, value) in counters.fields().filter(|(_, value)| *value > 0) {
        write!(f, " {name} {value}")?;
    }
    f.write_str("\n")
}

impl Display for Tree {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "tree runs {} tables {}", self.next_run, self.next_table)?;
        let everywhere = match self.dropped.parts() {
            [part] if part.range.is_all() => part.below,
            _ => SeqNo(0),
        };
        history(f, self.flushes, self.flushed, everywhere)?;
        if self.reads != Reads::default() {
            reads(f, self.reads)?;
        }
        f.write_str("\n")?;
        let disk = self.levels.iter().enumerate().map(|(i, level)| (LevelId::Disk(i), level));
        for (id, level) in std::iter::once((LevelId::Memory, &self.memory)).chain(disk) {
            let last = id == LevelId::Disk(self.levels.len().saturating_sub(1));
            if level.runs().is_empty() && !last {
                continue;
            }
            write!(f, "{id}")?;
            for run in level.runs() {
                write!(f, " {run}")?;
            }
            f.write_str("\n")?;
        }
        for (index, level) in self.levels.iter().enumerate() {
            if level.counters != Counters::default() {
                counters(f, index, &level.counters)?;
            }
        }
        if everywhere == SeqNo(0) {
            let mut parts = self.dropped.parts().iter();
            parts.try_for_each(|part| writeln!(f, "dropped {} {}", part.below, part.range))?;
        }
        for part in self.range_deletes.parts() {
            let mut seqs = part.seqs.iter().rev();
            seqs.try_for_each(|seq| writeln!(f, "erased {seq} {}", part.range))?;
        }
        for (name, value) in self.memo.iter() {
            note(f, name, Some(value))?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

fn note(f: &mut Formatter<'_>, name: &str, value: Option<&str>) -> Result {
    f.write_str(if value.is_some() { "note " } else { "forget " })?;
    text(f, name)?;
    let Some(value) = value else { return Ok(()) };
    f.write_str("=")?;
    text(f, value)
}

fn notes(f: &mut Formatter<'_>, changes: &[MemoChange]) -> Result {
    for (name, value) in changes {
        f.write_str(" ")?;
        note(f, name, value.as_deref())?;
    }
    Ok(())
}

/// `{:#}` names no keys, neither in ranges nor in what the policy notes.
impl Display for MergePlan {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.mode {
            Mode::Merge => "merge",
            Mode::Move => "move",
            Mode::Drop => "drop",
        })?;
        let shows_keys = !f.alternate();
        let first = self.inputs.first().map(|input| &input.range);
        let common = first.filter(|range| self.inputs.iter().all(|input| input.range == **range));
        for input in &self.inputs {
            write!(f, " {}", input.run)?;
            if common.is_none() && shows_keys {
                write!(f, ":{}", input.range)?;
            }
        }
        match common {
            Some(range) if shows_keys || range.is_all() => write!(f, " over {range}")?,
            None if shows_keys => {}
            _ => f.write_str(" over a part of the keys")?,
        }
        match self.place {
            Place::Oldest => f.write_str(" in place")?,
            Place::NewRun(level) => write!(f, " into new run at {}", LevelId::Disk(level))?,
            Place::NewAppend(level) => write!(f, " into new trees at {}", LevelId::Disk(level))?,
            Place::Into(run) => write!(f, " into {run}")?,
            Place::Append(run) => write!(f, " appended to {run}")?,
        }
        if let Some(bytes) = self.cut_bytes {
            write!(f, " cut {}", format_bytes(bytes))?;
        }
        if shows_keys {
            self.cuts.keys.iter().try_for_each(|key| write!(f, " at {}", display_key(key)))?;
        }
        if let Some(Overlap { run, bytes }) = self.cuts.overlap {
            write!(f, " within {} of {run}", format_bytes(bytes))?;
        }
        if let Some(reuse) = self.reuse {
            match reuse.piece_bytes {
                u64::MAX => f.write_str(" reuse nothing")?,
                bytes => write!(f, " reuse {}", format_bytes(bytes))?,
            }
            write!(f, " full {}", format_bytes(reuse.full_bytes))?;
            if let Some(bytes) = reuse.slack_bytes {
                write!(f, " slack {}", format_bytes(bytes))?;
            }
        }
        if shows_keys {
            notes(f, &self.memo)?;
        }
        let reason = self.reason.to_string();
        if reason.is_empty() { Ok(()) } else { write!(f, " # {reason}") }
    }
}

impl Display for Reservation {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let state = match self.state {
            ReservationState::UnderWay => "under_way",
            ReservationState::Blocked => "blocked",
        };
        write!(f, "{state} {}", self.plan)
    }
}

impl Display for TreeView {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "view memtable {}", format_bytes(self.memtable_bytes))?;
        if self.block_bytes != BLOCK_BYTES_USUAL {
            write!(f, " block {}", format_bytes(self.block_bytes))?;
        }
        write!(f, "\n{}", self.tree)?;
        self.reservations.iter().try_for_each(|reservation| writeln!(f, "{reservation}"))
    }
}

impl Display for Addition {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "add {}", self.run)?;
        if let Some(knot) = self.knot {
            write!(f, "~{knot}")?;
        }
        match self.place {
            AddPlace::Memory => f.write_str(" at mem ")?,
            AddPlace::Top(level) => write!(f, " at {} ", LevelId::Disk(level))?,
            AddPlace::Above(run) => write!(f, " above {run} ")?,
            AddPlace::Into => f.write_str(" ")?,
        }
        slices(f, &self.slices)
    }
}

impl Display for TreeEdit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("edit")?;
        history(f, self.flushes, self.flushed, self.dropped_below)?;
        self.reads.map_or(Ok(()), |now| reads(f, now))?;
        f.write_str("\n")?;
        for input in &self.remove {
            writeln!(f, "take {} {}", input.run, input.range)?;
        }
        self.add.iter().try_for_each(|addition| writeln!(f, "{addition}"))?;
        for (level, counts) in &self.counters {
            counters(f, *level, counts)?;
        }
        self.dropped.iter().try_for_each(|(range, seq)| writeln!(f, "dropped {seq} {range}"))?;
        self.range_deletes
            .iter()
            .try_for_each(|(range, seq)| writeln!(f, "erase {seq} {range}"))?;
        self.forget.iter().try_for_each(|(range, seq)| writeln!(f, "erased_done {seq} {range}"))?;
        for (name, value) in &self.memo {
            note(f, name, value.as_deref())?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl fmt::Display for crate::memo::Memo {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.iter().try_for_each(|(name, value)| {
            note(f, name, Some(value))?;
            f.write_str("\n")
        })
    }
}
