//! Folds the versions of a stripe whose newest is a combine.
//!
//! ```text
//!   versions of the stripe, newest first         written
//!   c3 c2 c1 put                                 put: the operator's value
//!   c3 c2 c1, nothing older beneath the merge    put: the operator's value for an absent key
//!   c3 c2 c1, something older may lie beneath    c321, or what cannot be joined, as it is
//! ```
//!
//! What a range delete hides from all readers does not count. If one lies among the versions and
//! hides some of them from a part of the readers only, all versions stay.
//!
//! Whatever is older than operands that were joined, and comes later, comes too late to take part.
//! So they count among what `dropped_below` tells of, unless sequence numbers are forgotten.
//!
//! The operator belongs to the application. If it fails for a key, a fold joins what can be joined
//! of the key, and keeps the rest as it is. So an operator never keeps a merge from being made.

use super::{Fold, Walk};
use crate::combine::{Combiner, Verdict};
use crate::cursor::EntryRef;
use crate::error::{Error, ErrorKind, Result};
use crate::expiry::{EXPIRY_BYTES, has_expired};
use lsmith_tree::{EntryKind, SeqNo};
use std::sync::Arc;

/// The operators of a fold.
#[derive(Clone, Debug)]
pub struct Operators {
    combiner: Arc<dyn Combiner>,
    /// The time of the merge. A clock that fails lets nothing expire.
    now: u64,
    /// Whether filters are asked: in merges, not where memory is folded.
    filters: bool,
}

impl Operators {
    /// Returns the operators that `combiner` knows, for a merge, which also asks filters, and drops
    /// what has expired.
    pub fn for_merges(combiner: Arc<dyn Combiner>) -> Operators {
        let now = combiner.now().unwrap_or_default();
        let filters = combiner.has_filters();
        Operators { combiner, now, filters }
    }

    /// Returns the operators that `combiner` knows, for folding memory.
    pub fn for_memory(combiner: Arc<dyn Combiner>) -> Operators {
        Operators { combiner, now: 0, filters: false }
    }
}

/// A version that waits to be written.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) value: Vec<u8>,
    pub(super) mark: u32,
}

/// The versions of a stripe from the newest, a combine, down to the first that is none.
struct Stripe {
    /// Newest first.
    operands: Vec<Waiting>,
    /// The newest that is no combine.
    base: Option<Waiting>,
    /// True if a range delete lies among the versions.
    is_divided: bool,
}

/// Returns the error of a merge whose operators need a value in a value file.
fn not_read() -> Error {
    let message = "a filter or an operator needs a value in a value file, which merges that keep \
                   blocks do not read: give the keyspace a policy that keeps none, or no filter";
    Error::new(ErrorKind::Unsupported, message)
}

impl<C: Walk, B: FnMut(&[u8]) -> bool> Fold<C, B> {
    /// Returns what becomes of the held entry, whose kind is `kind` now. An entry that has expired
    /// is deleted for every reader. A filter decides on the newest value of a key, unless a live
    /// snapshot sees it.
    #[cold]
    #[inline(never)]
    pub(super) fn judge(&mut self, kind: EntryKind) -> Result<EntryKind> {
        let Some(operators) = &self.operators else { return Ok(kind) };
        if self.held.mark != 0 || kind.is_tombstone() {
            return Ok(kind);
        }
        if kind.is_reference() {
            // Merges read values for filters and operators. Merges that keep blocks do not.
            return Err(not_read());
        }
        if has_expired(kind, &self.held.value, operators.now) {
            self.held.value.clear();
            return Ok(EntryKind::Delete);
        }
        let is_seen = self.snapshots.first().is_some_and(|newest| *newest >= self.held.seq);
        if !operators.filters || is_seen {
            return Ok(kind);
        }
        let from = if kind == EntryKind::Expiring { EXPIRY_BYTES } else { 0 };
        match operators.combiner.verdict(&self.held.key, &self.held.value[from..])? {
            Verdict::Keep => Ok(kind),
            Verdict::Drop => {
                self.counts.filtered += 1;
                self.held.value.clear();
                Ok(EntryKind::Delete)
            }
            Verdict::Change(value) => {
                self.counts.filtered += 1;
                self.held.value.truncate(from);
                self.held.value.extend_from_slice(&value);
                Ok(kind)
            }
        }
    }

    /// Steps over the other versions of the stripe of the held entry, a combine. Puts what is
    /// written for the stripe into `waiting`, oldest first: at least one entry.
    #[cold]
    #[inline(never)]
    pub(super) fn fold_operands(&mut self) -> Result<()> {
        let Stripe { operands, base, is_divided } = self.take_stripe()?;
        let met = operands.len() + usize::from(base.is_some());
        self.waiting = match &self.operators {
            Some(operators) if self.held.mark == 0 && !is_divided => {
                let operators = operators.clone();
                let is_last = self.stripe_floor().is_none();
                let is_whole =
                    base.is_some() || (is_last && (self.nothing_beneath)(&self.held.key));
                let full = is_whole.then(|| self.full(&operators, &operands, base.as_ref()));
                match full.flatten() {
                    Some(value) => vec![value],
                    None => base.into_iter().chain(self.partial(&operators, operands)).collect(),
                }
            }
            _ => base.into_iter().chain(operands.into_iter().rev()).collect(),
        };
        let is_one_operand =
            || matches!(&self.waiting[..], [one] if one.kind == EntryKind::Combine);
        let is_made = self.waiting.len() < met || (met == 1 && !is_one_operand());
        if !self.forgets && is_made {
            self.counts.dropped_below = self.counts.dropped_below.max(self.held.seq);
        }
        self.counts.superseded += (met - self.waiting.len()) as u64;
        Ok(())
    }

    /// Takes the versions of the stripe. Its base has the net effect of all versions below it too,
    /// and is missing if they cancel each other out.
    fn take_stripe(&mut self) -> Result<Stripe> {
        let floor = self.stripe_floor();
        let held = &self.held;
        let newest =
            Waiting { seq: held.seq, kind: held.kind, value: held.value.clone(), mark: held.mark };
        let mut stripe = Stripe { operands: vec![newest], base: None, is_divided: false };
        self.kinds.clear();
        while let Some(entry) = self.cursor.here()
            && entry.key == self.held.key
            && floor.is_none_or(|floor| floor < entry.seq)
        {
            let EntryRef { key, seq, kind, .. } = entry;
            if !self.hiding.is_empty() {
                if self.hiding.hides(entry, &self.snapshots) {
                    self.counts.entries_in += 1;
                    self.counts.hidden += 1;
                    self.cursor.advance()?;
                    continue;
                }
                stripe.is_divided |= self.hiding.divides(key, seq, self.held.seq);
            }
            let is_last = |operand: &Waiting| operand.seq == seq && kind == EntryKind::Combine;
            if stripe.base.is_none() && stripe.operands.last().is_some_and(is_last) {
                // A table with sequence numbers has brought the operand once more.
                self.counts.entries_in += 1;
                self.counts.superseded += 1;
                self.cursor.advance()?;
                continue;
            }
            if self.kinds.is_empty() {
                // Versions that a walk marks, under such a one, stay as they are. Others are read.
                let (value, mark) = match self.held.mark {
                    0 => (self.cursor.read_value()?.into_owned(), 0),
                    _ => (entry.value.to_vec(), self.cursor.mark()),
                };
                if kind.is_reference() && self.operators.is_some() {
                    return Err(not_read());
                }
                let version = Waiting { seq, kind, value, mark };
                match kind {
                    EntryKind::Combine => stripe.operands.push(version),
                    _ => stripe.base = Some(version),
                }
            }
            if stripe.base.is_some() {
                self.kinds.push(kind);
            }
            self.counts.entries_in += 1;
            self.cursor.advance()?;
        }
        let net = self.net_of_kinds();
        stripe.base = stripe.base.zip(net).map(|(base, kind)| Waiting { kind, ..base });
        Ok(stripe)
    }

    /// Returns the value that the operands make of the base, or of an absent key. Returns `None` if
    /// the operator fails.
    fn full(
        &self,
        operators: &Operators,
        operands: &[Waiting],
        base: Option<&Waiting>,
    ) -> Option<Waiting> {
        let values: Vec<&[u8]> = operands.iter().rev().map(|operand| &operand.value[..]).collect();
        let below = base.filter(|base| base.kind.is_value()).map(|base| &base.value[..]);
        let made = operators.combiner.combine(&self.held.key, below, &values);
        let kind = match base.map(|base| base.kind) {
            Some(below) => EntryKind::Combine.over(below).expect("a combine never cancels"),
            None => EntryKind::Put,
        };
        let failed = |error: &Error| {
            tracing::debug!(error = %format_args!("{error:#}"), "operands stay as they are");
        };
        let value = made.inspect_err(failed).ok()?;
        Some(Waiting { seq: self.held.seq, kind, value, mark: 0 })
    }

    /// Joins neighbours among the operands, as far as the operator does. Returns what is left of
    /// them, oldest first.
    fn partial(&self, operators: &Operators, operands: Vec<Waiting>) -> Vec<Waiting> {
        let mut left: Vec<Waiting> = Vec::new();
        for operand in operands.into_iter().rev() {
            if let Some(last) = left.last_mut() {
                let combiner = &operators.combiner;
                let made = combiner.combine_operands(&self.held.key, &last.value, &operand.value);
                if let Ok(Some(value)) = made {
                    *last = Waiting { value, ..operand };
                    continue;
                }
            }
            left.push(operand);
        }
        left
    }
}
