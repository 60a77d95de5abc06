//! The keys and values that a user sees: one value per key, as of a snapshot.

mod values;

use crate::combine::{Combiner, Stack, combined};
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::expiry::{EXPIRY_BYTES, has_expired};
use crate::format::{append_key, key_prefix};
use crate::read::{Hidden, Leaps};
use crate::reference::{ReadBytes, ReadValue};
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use values::Values;

/// A key and its value.
pub(crate) type KeyValue = (Bytes, Bytes);

/// The end of the range on whose side the cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The cursor has no position.
    Neither,
    Front,
    Back,
}

/// Iterates over the keys within bounds that are present as of a snapshot, from both ends until
/// they meet. It ends after an error, except after one of a [single key](crate::Error::key), behind
/// which it goes on.
///
/// There is one cursor. It seeks when the caller changes between front and back.
pub struct VisibleIter<C> {
    cursor: C,
    snapshot: SeqNo,
    /// What range deletes hide.
    hidden: Hidden,
    /// The leaps over hidden entries since the last seek.
    leaps: Leaps,
    /// The number of bytes that returned keys lack at their start.
    key_from: usize,
    /// The bounds of the keys that are left, from the front and from the back.
    left: (Limit, Limit),
    side: Side,
    /// Whether the cursor is on the entry that the front returned last.
    returned: bool,
    /// The value of the entry that the back returned last.
    back_value: LeftValue,
    ended: bool,
    combiner: Option<Arc<dyn Combiner>>,
    values: Values,
    now: Option<u64>,
    /// The value that the front has computed last.
    computed: LeftValue,
    /// What the back has met of a key whose newest entry is a combine.
    operands: BackStack,
}

/// What a step has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The end of the range.
    End,
    /// An entry with a value: that under the cursor for the front, the one kept for the back.
    Entry,
    /// A value that the front has computed: from several entries, or of one that expires.
    Computed,
}

/// What the back knows of a key so far, from its oldest entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The key is absent.
    Nothing,
    /// The key has the value that is kept.
    Value,
    /// The key has a value in a value file. The reference to it is kept.
    Reference,
    /// The newest entries are combines.
    Operands,
}

/// Operands, oldest first, over a value or over nothing.
#[derive(Debug, Default)]
struct BackStack {
    base: Option<Bytes>,
    operands: Vec<Bytes>,
}

/// Values of at most this many bytes are copied when the cursor leaves them, longer ones are kept
/// as handles.
const COPIED_BYTES_MAX: usize = 1024;

/// A value that the cursor has left behind.
#[derive(Debug, Default)]
struct LeftValue {
    copied: Vec<u8>,
    shared: Option<ReadBytes>,
}

impl LeftValue {
    /// Keeps `value` as a copy, or as a handle made by `handle` if it is long.
    #[inline]
    fn set(&mut self, value: &[u8], handle: impl FnOnce() -> Bytes) {
        self.copied.clear();
        self.shared = None;
        if value.len() > COPIED_BYTES_MAX {
            self.shared = Some(handle().into());
        } else {
            self.copied.extend_from_slice(value);
        }
    }

    /// Keeps the value of `stored`, the bytes of an entry that expires, without its time.
    fn set_stored(&mut self, stored: &[u8], handle: impl FnOnce() -> Bytes) {
        let value = stored.get(EXPIRY_BYTES..).unwrap_or_default();
        self.set(value, || handle().slice(stored.len() - value.len()..));
    }

    /// Keeps a handle.
    fn share(&mut self, value: impl Into<ReadBytes>) {
        self.copied.clear();
        self.shared = Some(value.into());
    }

    fn bytes(&self) -> &[u8] {
        self.shared.as_deref().unwrap_or(&self.copied)
    }

    fn handle(&mut self) -> Bytes {
        let shared = self.shared.take().map(ReadBytes::into_shared);
        shared.unwrap_or_else(|| Bytes::copy_from_slice(&self.copied))
    }
}

impl BackStack {
    /// Adds the next newer operand. The entries below it are `seen`, with `value` if they have one.
    #[cold]
    fn push(&mut self, operand: Bytes, seen: Seen, value: &mut LeftValue) {
        if seen != Seen::Operands {
            self.operands.clear();
            self.base = (seen == Seen::Value).then(|| value.handle());
        }
        self.operands.push(operand);
    }

    /// Returns what the operands make of the value of `key`.
    fn combine(&mut self, key: &[u8], combiner: Option<&dyn Combiner>) -> Result<Bytes> {
        combined(key, self.base.take(), &std::mem::take(&mut self.operands), combiner)
    }
}

/// One end of a range of keys.
#[derive(Debug, Default)]
struct Limit {
    key: Vec<u8>,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reach {
    /// No limit; the key means nothing.
    #[default]
    Endless,
    /// The limit's key is in the range.
    Including,
    /// The limit's key is not in the range.
    Excluding,
}

impl From<Bound<Bytes>> for Limit {
    fn from(bound: Bound<Bytes>) -> Limit {
        match bound {
            Bound::Unbounded => Limit::default(),
            Bound::Included(key) => Limit { key: key.into(), reach: Reach::Including },
            Bound::Excluded(key) => Limit { key: key.into(), reach: Reach::Excluding },
        }
    }
}

/// Returns true if `hidden` hides `entry` from a reader at `snapshot`.
#[cold]
#[inline(never)]
fn hides(hidden: &mut Hidden, entry: &EntryRef<'_>, snapshot: SeqNo) -> bool {
    entry.seq < hidden.below(entry.key, snapshot)
}

/// Compares two keys, mostly without a call.
#[inline]
fn order(left: &[u8], right: &[u8]) -> Ordering {
    key_prefix(left).cmp(&key_prefix(right)).then_with(|| left.cmp(right))
}

impl Limit {
    /// Replaces the limit by `bound`.
    fn set(&mut self, bound: Bound<&[u8]>) {
        let (key, reach) = match bound {
            Bound::Unbounded => (&[][..], Reach::Endless),
            Bound::Included(key) => (key, Reach::Including),
            Bound::Excluded(key) => (key, Reach::Excluding),
        };
        self.key.clear();
        self.key.extend_from_slice(key);
        self.reach = reach;
    }

    /// Moves the limit to `key`, which is no longer in the range.
    #[inline]
    fn exclude(&mut self, key: &[u8]) {
        self.key.clear();
        append_key(&mut self.key, key);
        self.reach = Reach::Excluding;
    }

    /// Returns true if `key` is in the range, with this as the lower limit.
    #[inline]
    fn allows_above(&self, key: &[u8]) -> bool {
        let order = || order(&self.key, key);
        match self.reach {
            Reach::Endless => true,
            Reach::Including => order().is_le(),
            Reach::Excluding => order().is_lt(),
        }
    }

    /// Returns true if `key` is in the range, with this as the upper limit.
    #[inline]
    fn allows_below(&self, key: &[u8]) -> bool {
        let order = || order(key, &self.key);
        match self.reach {
            Reach::Endless => true,
            Reach::Including => order().is_le(),
            Reach::Excluding => order().is_lt(),
        }
    }
}

impl<C: Cursor> VisibleIter<C> {
    /// Iterates over the keys of `cursor` between `lower` and `upper` that `snapshot` sees. Bounds
    /// that exclude each other contain no keys.
    pub fn new(
        cursor: C,
        snapshot: SeqNo,
        lower: Bound<Bytes>,
        upper: Bound<Bytes>,
    ) -> VisibleIter<C> {
        VisibleIter {
            cursor,
            snapshot,
            hidden: Hidden::default(),
            leaps: Leaps::default(),
            key_from: 0,
            left: (lower.into(), upper.into()),
            side: Side::Neither,
            returned: false,
            back_value: LeftValue::default(),
            ended: false,
            combiner: None,
            values: Values::default(),
            now: None,
            computed: LeftValue::default(),
            operands: BackStack::default(),
        }
    }

    /// Computes the values of keys with combines by `combiner`. Without it they are errors.
    pub fn combining(mut self, combiner: Arc<dyn Combiner>) -> VisibleIter<C> {
        self.combiner = Some(combiner);
        self
    }

    /// Reads values in value files by `values`. Without that they are errors.
    pub fn reading(mut self, values: Option<Arc<dyn ReadValue>>) -> VisibleIter<C> {
        self.values = Values::of(values);
        self
    }

    /// Takes the first `bytes` bytes from each key that is returned. All keys must have them.
    pub fn without_first(mut self, bytes: usize) -> VisibleIter<C> {
        self.key_from = bytes;
        self
    }

    /// Begins anew, with the keys between `lower` and `upper`. Errors so far are forgotten.
    pub fn restart(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        self.left.0.set(lower);
        self.left.1.set(upper);
        self.side = Side::Neither;
        self.returned = false;
        self.ended = false;
    }

    /// Leaves out what the range deletes in `hidden` hide.
    pub fn hiding(mut self, hidden: Hidden) -> VisibleIter<C> {
        self.hidden = hidden;
        self
    }

    /// Returns the cursor.
    pub fn cursor(&self) -> &C {
        &self.cursor
    }

    /// Goes to the position from which the front continues. It may lie below the lower limit.
    fn enter_front(&mut self) -> Result<()> {
        if self.side != Side::Front {
            self.side = Side::Front;
            self.leaps.restart();
            self.values.turn();
            self.returned = false;
            match self.left.0.reach {
                Reach::Endless => self.cursor.seek_first()?,
                Reach::Including | Reach::Excluding => self.cursor.seek(&self.left.0.key)?,
            }
        }
        if std::mem::take(&mut self.returned) { self.cursor.next() } else { Ok(()) }
    }

    /// Goes to the last entry within the upper limit.
    fn enter_back(&mut self) -> Result<()> {
        if self.side != Side::Back {
            self.side = Side::Back;
            self.leaps.restart();
            self.values.turn();
            match self.left.1.reach {
                Reach::Endless => self.cursor.seek_last()?,
                Reach::Excluding => self.cursor.seek_before(&self.left.1.key)?,
                Reach::Including => {
                    let mut above = self.left.1.key.clone();
                    above.push(0);
                    self.cursor.seek_before(&above)?;
                }
            }
        }
        Ok(())
    }

    /// Goes to the next key from the front, which becomes the lower limit, and leaves the cursor on
    /// its entry, or on one behind it if its value is computed.
    fn step_front(&mut self) -> Result<Step> {
        self.enter_front()?;
        while let Some(entry) = self.cursor.entry()
            && self.left.1.allows_below(entry.key)
        {
            // Skips older versions of keys behind the front, and versions newer than the snapshot.
            if self.left.0.allows_above(entry.key) && entry.seq <= self.snapshot {
                if !self.hidden.is_empty() && hides(&mut self.hidden, &entry, self.snapshot) {
                    self.leap()?;
                    continue;
                }
                self.left.0.exclude(entry.key);
                if entry.kind.is_value() {
                    self.returned = true;
                    return Ok(Step::Entry);
                }
                if !entry.kind.is_tombstone() {
                    if self.compute_front()? {
                        return Ok(Step::Computed);
                    }
                    continue;
                }
            }
            self.cursor.next()?;
        }
        Ok(Step::End)
    }

    /// Passes over entries that are hidden like the one under the cursor.
    #[cold]
    fn leap(&mut self) -> Result<()> {
        let Some(entry) = self.cursor.entry() else { return Ok(()) };
        let Some((range, below)) = self.hidden.around(entry.key, self.snapshot) else {
            return Ok(());
        };
        match self.side {
            Side::Back => self.leaps.leap_back(&mut self.cursor, &range, below),
            Side::Front | Side::Neither => self.leaps.leap(&mut self.cursor, &range, below),
        }
    }

    /// Computes the value of the key under the cursor from several entries, or from one that
    /// expires or is a reference. Moves on to its last entry that matters, or behind the key.
    /// Returns false if the key is absent.
    #[cold]
    #[inline(never)]
    fn compute_front(&mut self) -> Result<bool> {
        if let Some(entry) = self.cursor.entry()
            && entry.kind.is_reference()
        {
            self.computed.set(entry.value, || self.cursor.value());
            self.look_ahead()?;
            let read = self.values.read(self.computed.bytes());
            let value = read.map_err(|error| error.of_key(&self.left.0.key[self.key_from..]))?;
            self.computed.share(value);
            return Ok(true);
        }
        let now = self.now()?;
        if let Some(entry) = self.cursor.entry()
            && entry.kind == EntryKind::Expiring
        {
            let stays = !has_expired(entry.kind, entry.value, now);
            if stays {
                self.computed.set_stored(entry.value, || self.cursor.value());
            }
            return Ok(stays);
        }
        let range_deletes = self.hidden.below(&self.left.0.key, self.snapshot);
        let mut stack = Stack::at(now).above(range_deletes);
        while let Some(entry) = self.cursor.entry()
            && entry.key == self.left.0.key
        {
            // Without sequence numbers, a transaction's own entries come even before unseen ones.
            let is_seen = entry.seq <= self.snapshot;
            if is_seen {
                let value = match entry.kind.is_reference() {
                    true => self.values.read(entry.value)?.into_shared(),
                    false => self.cursor.value(),
                };
                if stack.push(entry.seq, entry.kind.resolved(), value) {
                    break;
                }
            }
            self.cursor.next()?;
        }
        let value = stack.combine(&self.left.0.key, self.combiner.as_deref())?;
        let is_there = value.is_some();
        self.computed.share(value.unwrap_or_default());
        Ok(is_there)
    }

    /// Returns the time at which the iterator first had to know it.
    fn now(&mut self) -> Result<u64> {
        if self.now.is_none() {
            self.now = Some(self.combiner.as_ref().map_or(Ok(0), |combiner| combiner.now())?);
        }
        Ok(self.now.unwrap_or_default())
    }

    /// Goes to the next key from the back, which becomes the upper limit, and keeps its value.
    fn step_back(&mut self) -> Result<Step> {
        self.enter_back()?;
        while let Some(mut entry) = self.cursor.entry()
            && self.left.0.allows_above(entry.key)
        {
            // From the back, hidden versions of a key come first.
            if !self.hidden.is_empty() && hides(&mut self.hidden, &entry, self.snapshot) {
                self.leap()?;
                continue;
            }
            self.left.1.exclude(entry.key);
            let mut seen = Seen::Nothing;
            // Visits all versions of the key; the newest comes last.
            loop {
                if entry.seq <= self.snapshot {
                    if entry.kind.is_value() {
                        seen = Seen::Value;
                        self.back_value.set(entry.value, || self.cursor.value());
                    } else if entry.kind.is_reference() {
                        seen = Seen::Reference;
                        self.back_value.set(entry.value, || self.cursor.value());
                    } else if entry.kind == EntryKind::Combine {
                        if seen == Seen::Reference {
                            self.read_back()?;
                            seen = Seen::Value;
                        }
                        self.operands.push(self.cursor.value(), seen, &mut self.back_value);
                        seen = Seen::Operands;
                    } else if entry.kind == EntryKind::Expiring {
                        seen = self.expire_back()?;
                    } else {
                        seen = Seen::Nothing;
                    }
                }
                self.cursor.prev()?;
                let is_same = |key| order(key, &self.left.1.key).is_eq();
                match self.cursor.entry() {
                    Some(newer) if is_same(newer.key) => entry = newer,
                    _ => break,
                }
            }
            match seen {
                Seen::Operands => self.combine_back()?,
                Seen::Reference => {
                    self.look_back()?;
                    let read = self.read_back();
                    read.map_err(|error| error.of_key(&self.left.1.key[self.key_from..]))?;
                }
                Seen::Nothing | Seen::Value => {}
            }
            if seen != Seen::Nothing {
                return Ok(Step::Entry);
            }
        }
        Ok(Step::End)
    }

    /// Keeps the value of the entry under the cursor, which expires, unless it has.
    #[cold]
    fn expire_back(&mut self) -> Result<Seen> {
        let now = self.now()?;
        let entry = self.cursor.entry().filter(|entry| !has_expired(entry.kind, entry.value, now));
        let Some(entry) = entry else { return Ok(Seen::Nothing) };
        self.back_value.set_stored(entry.value, || self.cursor.value());
        Ok(Seen::Value)
    }

    /// Replaces the reference that is kept by the value that it leads to.
    #[cold]
    #[inline(never)]
    fn read_back(&mut self) -> Result<()> {
        let value = self.values.read(self.back_value.bytes())?;
        self.back_value.share(value);
        Ok(())
    }

    /// Combines the value of the key that the back has left.
    #[cold]
    #[inline(never)]
    fn combine_back(&mut self) -> Result<()> {
        let value = self.operands.combine(&self.left.1.key, self.combiner.as_deref())?;
        self.back_value.share(value);
        Ok(())
    }

    /// Takes a step by `go`, unless the iterator has ended.
    #[inline(always)]
    fn step(&mut self, go: impl FnOnce(&mut Self) -> Result<Step>) -> Result<Step> {
        if self.ended {
            return Ok(Step::End);
        }
        let step = go(self);
        if !matches!(step, Ok(Step::Entry)) {
            self.ended = match &step {
                Ok(step) => *step == Step::End,
                // The limit has moved past the key.
                Err(error) => error.key().is_none(),
            };
        }
        step
    }

    /// Like [`next`](Iterator::next), but returns references, and copies only the key.
    pub fn next_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        let value = match self.step(Self::step_front) {
            Ok(Step::Entry) => self.cursor.entry().map(|entry| entry.value).unwrap_or_default(),
            Ok(Step::Computed) => self.computed.bytes(),
            Ok(Step::End) => return None,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok((&self.left.0.key[self.key_from..], value)))
    }

    /// Like [`next_back`](DoubleEndedIterator::next_back), but returns references to copies that
    /// the next step overwrites.
    pub fn next_back_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        let step = self.step(Self::step_back);
        let entry = || (&self.left.1.key[self.key_from..], self.back_value.bytes());
        step.map(|step| (step != Step::End).then(entry)).transpose()
    }
}

impl<C: Cursor> Iterator for VisibleIter<C> {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = match self.step(Self::step_front) {
            Ok(Step::Entry) => self.cursor.value(),
            Ok(Step::Computed) => self.computed.handle(),
            Ok(Step::End) => return None,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok((Bytes::copy_from_slice(&self.left.0.key[self.key_from..]), value)))
    }
}

impl<C: Cursor> DoubleEndedIterator for VisibleIter<C> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let step = self.step(Self::step_back);
        let key = || Bytes::copy_from_slice(&self.left.1.key[self.key_from..]);
        let entry = || (key(), self.back_value.handle());
        step.map(|step| (step != Step::End).then(entry)).transpose()
    }
}

#[cfg(test)]
pub(crate) mod tests;
