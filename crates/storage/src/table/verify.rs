//! Reads the needed blocks of a table and checks that all of its parts agree.

use super::reader::Table;
use super::table_file::{CHUNK_BYTES, ReadAhead, TableParts, Wanted};
use super::writer::NO_REFERENCE;
use crate::cursor::EntryRef;
use crate::error::Result;
use crate::expiry::EXPIRY_BYTES;
use crate::format::{
    Block, Damage, EntryPlace, FactsBuilder, KEY_BYTES_MAX, ProfileGrain, Slot,
    common_prefix_bytes, key_hash, prefix_hash_of,
};
use crate::reference::ValueReference;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, Size};
use std::ops::Range;

/// The state of a walk over entries.
struct VerifyWalk<'a> {
    parts: &'a TableParts,
    facts: FactsBuilder,
    key: Vec<u8>,
    last_key: Vec<u8>,
    last_seq: SeqNo,
    has_operands: bool,
    /// The size that must lie below the first of the blocks being walked, or `None` if the profile
    /// does not contain it.
    base: Option<Size>,
}

/// The part of the table that has the damage.
enum Fault {
    /// The block being walked.
    Block(Damage),
    /// The filter, which excludes a key of the block or its prefix.
    Filter(Damage),
    /// The index, which does not fit the block.
    Index(Damage),
    /// The properties, which do not fit the blocks.
    Properties(Damage),
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Fault {
        Fault::Block(damage)
    }
}

impl Table {
    /// Reads the blocks that hold entries within `ranges`, and checks them. `ranges` must be in key
    /// order and disjoint. Checks all checksums, the order of the entries, and that filter, index
    /// and properties agree with the blocks. Reads from the file, not from the cache or the parts
    /// loaded when the table was opened. Other blocks may be gone.
    ///
    /// # Errors
    ///
    /// Fails with the first damage found, with path and offset, or with `Io`.
    pub(super) fn check(&self, ranges: &[KeyRange]) -> Result<()> {
        let parts = self.file.parts()?;
        let needed = self.needed_blocks(ranges);
        let all = matches!(&needed[..], [one] if *one == (0..parts.fences.count()));
        let mut walk = VerifyWalk::new(&parts, self.file.table);
        for blocks in needed {
            self.verify_blocks(blocks, &mut walk)?;
        }
        if walk.has_operands && parts.footer.is_outside() {
            walk.facts.set_operator(parts.facts.operator.as_deref().unwrap_or_default());
        }
        walk.facts.set_range_deletes(parts.facts.range_deletes.clone());
        let mut facts = walk.facts.finish(&walk.last_key);
        facts.file_bytes = parts.facts.file_bytes;
        if all && facts != parts.facts {
            let damage = Damage::whole("the properties do not agree with the entries");
            return Err(self.file.damaged(damage, parts.footer.properties.start));
        }
        Ok(())
    }

    /// Reads and checks neighbouring blocks.
    fn verify_blocks(&self, blocks: Range<usize>, walk: &mut VerifyWalk<'_>) -> Result<()> {
        let parts = walk.parts;
        let damaged = |fault, index| match fault {
            Fault::Block(damage) => self.file.damaged(damage, parts.fences.place(index).start),
            Fault::Filter(damage) => self.file.damaged(damage, parts.footer.filter.start),
            Fault::Index(damage) => self.file.damaged(damage, parts.footer.index.start),
            Fault::Properties(damage) => self.file.damaged(damage, parts.footer.properties.start),
        };
        let mut ahead = ReadAhead::default();
        let end = (blocks.end < parts.fences.count()).then(|| parts.fences.key(blocks.end));
        walk.start_at(blocks.start);
        for index in blocks.clone() {
            let wanted = Wanted { index, end, chunk_bytes: CHUNK_BYTES, once: true };
            let block = ahead.block(&self.file, &parts.fences, wanted)?.block;
            walk.block(index, &block).map_err(|fault| damaged(fault, index))?;
        }
        walk.check_size(blocks.end).map_err(|fault| damaged(fault, blocks.end - 1))
    }
}

impl<'a> VerifyWalk<'a> {
    fn new(parts: &'a TableParts, table: u64) -> VerifyWalk<'a> {
        VerifyWalk {
            parts,
            facts: FactsBuilder::new(table, parts.facts.grain)
                .with_prefixes(parts.facts.prefix_bytes)
                .outside(parts.footer.is_outside()),
            key: Vec::new(),
            last_key: Vec::new(),
            last_seq: SeqNo::MAX,
            has_operands: false,
            base: None,
        }
    }

    /// Prepares to walk blocks from block `index` on.
    fn start_at(&mut self, index: usize) {
        self.last_key.clear();
        self.last_seq = SeqNo::MAX;
        let fences = &self.parts.fences;
        if fences.is_continued(index) {
            self.last_key.extend_from_slice(fences.key(index));
        }
        // As if the blocks walked before were all blocks below.
        self.base = self.below(index).map(|below| below - self.facts.size());
    }

    /// Returns the size below block `index`, if the profile contains it.
    fn below(&self, index: usize) -> Option<Size> {
        let fences = &self.parts.fences;
        let facts = &self.parts.facts;
        match index {
            0 => Some(Size::default()),
            _ if index == fences.count() => Some(facts.size),
            _ if facts.grain == ProfileGrain::Steps || fences.is_continued(index) => None,
            _ => {
                let point = index - 1 - fences.continued_before(index);
                facts.profile.get(point).map(|point| point.below)
            }
        }
    }

    /// Checks that the size of the walked entries agrees with the profile at the start of block
    /// `index`.
    fn check_size(&self, index: usize) -> std::result::Result<(), Fault> {
        let damage = Damage::whole("the properties do not agree with the entries");
        match (self.base, self.below(index)) {
            (Some(base), Some(below)) if base + self.facts.size() != below => {
                Err(Fault::Properties(damage))
            }
            _ => Ok(()),
        }
    }

    /// Walks block `index`.
    fn block(&mut self, index: usize, block: &Block) -> std::result::Result<(), Fault> {
        let mut at = 0;
        let mut restarts = 0;
        self.key.clear();
        if block.restart(0)? != 0 {
            return Err(Damage::whole("a block does not begin with a restart point").into());
        }
        while at < block.entries_end() {
            let slot = block.slot(at)?;
            let restart = restarts < block.restarts() && block.restart(restarts)? == at;
            restarts += usize::from(restart);
            block.step(&slot, &mut self.key)?;
            let new_key = self.entry(block, &slot, restart)?;
            if at == 0 {
                self.fence(index, new_key)?;
            }
            if new_key {
                self.filter()?;
            }
            std::mem::swap(&mut self.key, &mut self.last_key);
            self.key.clone_from(&self.last_key);
            self.last_seq = slot.seq;
            at = slot.end();
        }
        if restarts != block.restarts() {
            let damage = Damage { what: "restart points are not where entries start", at };
            return Err(damage.into());
        }
        let place = self.parts.fences.place(index);
        self.facts.add_block((place.end - place.start) as usize);
        Ok(())
    }

    /// Checks one entry, whose key is `self.key`. Returns true if that key is new.
    fn entry(
        &mut self,
        block: &Block,
        slot: &Slot,
        restart: bool,
    ) -> std::result::Result<bool, Damage> {
        let damage = |what| Err(Damage { what, at: slot.start() });
        if !(1..=KEY_BYTES_MAX).contains(&self.key.len()) {
            return damage("a key is empty or too long");
        }
        let new_key = self.key != self.last_key;
        if self.key < self.last_key || (!new_key && slot.seq >= self.last_seq) {
            return damage("entries are out of order");
        }
        // Searches rely on keys sharing as many bytes as possible.
        let shared = if restart { 0 } else { common_prefix_bytes(&self.last_key, &self.key) };
        if slot.shared() != shared {
            return damage("a key shares fewer bytes than it could");
        }
        let value = block.value(slot);
        if slot.kind.is_tombstone() && !value.is_empty() {
            return damage("a tombstone has a value");
        }
        if slot.kind == EntryKind::Expiring && value.len() < EXPIRY_BYTES {
            return damage("an entry that expires has no time");
        }
        if slot.kind.is_reference() && ValueReference::decode(value).is_none() {
            return damage(NO_REFERENCE);
        }
        self.has_operands |= slot.kind == EntryKind::Combine;
        let entry = EntryRef { key: &self.key, seq: slot.seq, kind: slot.kind, value };
        let begins_block = slot.start() == 0;
        let place = EntryPlace { last_key: &self.last_key, new_key, begins_block };
        self.facts.add(&entry, place);
        Ok(new_key)
    }

    /// Checks that the filter holds `self.key` and its prefix.
    fn filter(&self) -> std::result::Result<(), Fault> {
        let Some(filter) = &self.parts.filter else { return Ok(()) };
        let prefix = prefix_hash_of(&self.key, self.parts.facts.prefix_bytes);
        let what = if !filter.may_hold(key_hash(&self.key)) {
            "the filter excludes a key of the table"
        } else if prefix.is_some_and(|prefix| !filter.may_hold(prefix)) {
            "the filter excludes the prefix of a key of the table"
        } else {
            return Ok(());
        };
        Err(Fault::Filter(Damage::whole(what)))
    }

    /// Checks the fence of block `index`, whose first key is `self.key`.
    fn fence(&self, index: usize, new_key: bool) -> std::result::Result<(), Fault> {
        let fence = self.parts.fences.key(index);
        let continued = self.parts.fences.is_continued(index);
        let fits = match index {
            0 => fence.is_empty() && !continued,
            _ if continued => !new_key && fence == self.key,
            _ => fence > &self.last_key[..] && fence <= &self.key[..],
        };
        let damage = Damage::whole("a fence does not fit its block");
        fits.then_some(()).ok_or(Fault::Index(damage))
    }
}
