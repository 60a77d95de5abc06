//! Combining: what the operator of a keyspace makes of a value and of the updates above it.
//!
//! A combine is an update that its writer could make without reading the value. Its entry holds an
//! *operand*. Whoever has all operands of a key down to a value, or to its absence, can compute the
//! value: a read, or a merge. The code that computes it belongs to the application. So whatever
//! it does, it cannot hurt the store: a panic, an error, or a value that is too long is an error of
//! the read that called it. A merge keeps what cannot be combined as it is.

use crate::error::{Error, ErrorKind, Result};
use crate::expiry::{EXPIRY_BYTES, has_expired};
use crate::format::VALUE_BYTES_MAX;
use crate::panics;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::fmt;
use std::sync::Arc;

/// Why an operator cannot combine. Any error is one, and any text.
pub type CombineError = Box<dyn std::error::Error + Send + Sync>;

/// A combine operator: what the updates of a keyspace mean.
///
/// The store calls it in reads and in merges, on any thread, as often as it likes, and on part of
/// the operands first. So the results must depend on the arguments only. An operator must not call
/// the store.
///
/// ```
/// use lsmith_storage::combine::{Combine, CombineError};
///
/// /// Keeps the greatest of all operands.
/// struct Greatest;
///
/// impl Combine for Greatest {
///     fn name(&self) -> &str {
///         "greatest"
///     }
///
///     fn combine(
///         &self,
///         _key: &[u8],
///         value: Option<&[u8]>,
///         operands: &[&[u8]],
///     ) -> Result<Vec<u8>, CombineError> {
///         Ok(operands.iter().copied().chain(value).max().unwrap_or_default().to_vec())
///     }
///
///     fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
///         Some(older.max(newer).to_vec())
///     }
/// }
///
/// let value = Greatest.combine(b"key", Some(b"b"), &[b"a", b"c"]).unwrap();
/// assert_eq!(value, b"c");
/// ```
#[doc(alias = "merge operator")]
pub trait Combine: Send + Sync {
    /// Returns the name by which stores know the operator: 1 to 64 letters, digits, `_`, `-` or
    /// `.`. Operators that give other results need other names.
    fn name(&self) -> &str;

    /// Returns the value of `key` after all `operands`, oldest first. `value` is what was there
    /// before them, or `None` if the key was absent.
    ///
    /// # Errors
    /// Any error makes the read fail. A merge leaves the value and the operands as they are.
    fn combine(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Vec<u8>, CombineError>;

    /// Checks an `operand` for `key` before it is written. By default all are accepted.
    ///
    /// # Errors
    /// Any error refuses the write. It says what was expected, and what was found.
    fn check_operand(&self, _key: &[u8], _operand: &[u8]) -> std::result::Result<(), CombineError> {
        Ok(())
    }

    /// Returns one operand that does what `older` and then `newer` do, or `None` if there is none.
    /// It must have the same effect on every value.
    ///
    /// Without it, a merge keeps all operands of a key until it meets the value below them.
    fn combine_operands(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Says of a value whether a merge keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The entry stays.
    Keep,
    /// The entry goes, as if it were deleted.
    Drop,
    /// The entry gets this value.
    Change(Vec<u8>),
}

/// What the application says of the keys of a tree. It finds the operator for each key, and calls
/// it.
pub trait Combiner: Send + Sync + fmt::Debug {
    /// Returns the time, by which entries expire.
    ///
    /// # Errors
    /// `Callback` if the clock panics.
    fn now(&self) -> Result<u64> {
        Ok(0)
    }

    /// Returns true if merges ask the [verdict](Combiner::verdict) on values.
    fn has_filters(&self) -> bool {
        false
    }

    /// Returns what becomes of `key` with `value` in a merge.
    ///
    /// # Errors
    /// `Callback` if the filter panics or returns a value that is too long.
    fn verdict(&self, _key: &[u8], _value: &[u8]) -> Result<Verdict> {
        Ok(Verdict::Keep)
    }

    /// Returns the value of `key` after all `operands`, oldest first.
    ///
    /// # Errors
    /// `Callback` if the operator fails, panics, or returns a value that is too long, or if the key
    /// has no operator.
    fn combine(&self, key: &[u8], value: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>>;

    /// Returns one operand in the place of two, if there is one.
    ///
    /// # Errors
    /// As [`combine`](Combiner::combine).
    fn combine_operands(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Result<Option<Vec<u8>>>;
}

/// The operator of a keyspace.
#[derive(Clone)]
pub struct Operator {
    keyspace: Arc<str>,
    combine: Arc<dyn Combine>,
    /// The bytes in front of each key that the operator does not see.
    key_from: usize,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({} of {})", self.combine.name(), self.keyspace)
    }
}

impl Operator {
    /// Returns `combine` as the operator of a keyspace, which sees keys without their first
    /// `key_from` bytes.
    pub fn new(keyspace: Arc<str>, combine: Arc<dyn Combine>, key_from: usize) -> Operator {
        Operator { keyspace, combine, key_from }
    }

    /// Calls the operator, and checks what it returns.
    fn call<T>(
        &self,
        key: &[u8],
        call: impl FnOnce() -> std::result::Result<T, CombineError>,
        bytes: impl Fn(&T) -> usize,
    ) -> Result<T> {
        let what = match panics::catch(call) {
            Ok(Ok(made)) if bytes(&made) <= VALUE_BYTES_MAX => return Ok(made),
            Ok(Ok(made)) => {
                let found = bytes(&made);
                format!("returned {found} bytes: expected at most {VALUE_BYTES_MAX}")
            }
            Ok(Err(error)) => format!("failed: {error}"),
            Err(panic) => format!("panicked: {panic}"),
        };
        let message = format!(
            "the operator of keyspace `{}` {what}, at key `{}`: put or delete the key",
            self.keyspace,
            key.escape_ascii()
        );
        Err(Error::new(ErrorKind::Callback, message).of_key(key))
    }

    /// Checks an `operand` for `key`, as a caller is about to write it.
    ///
    /// # Errors
    /// `InvalidArgument` if the operator refuses it; `Callback` if the operator panics.
    pub fn check_operand(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        let key = &key[self.key_from..];
        let (kind, what) = match panics::catch(|| self.combine.check_operand(key, operand)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => (ErrorKind::InvalidArgument, format!("refuses an operand: {error}")),
            Err(panic) => (ErrorKind::Callback, format!("panicked: {panic}")),
        };
        let (name, key) = (self.combine.name(), key.escape_ascii());
        Err(Error::new(kind, format!("the operator `{name}` {what}, at key `{key}`")))
    }
}

impl Combiner for Operator {
    fn combine(&self, key: &[u8], value: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let key = &key[self.key_from..];
        self.call(key, || self.combine.combine(key, value, operands), Vec::len)
    }

    fn combine_operands(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = &key[self.key_from..];
        let call = || Ok(self.combine.combine_operands(key, older, newer));
        self.call(key, call, |made| made.as_ref().map_or(0, Vec::len))
    }
}

/// The entries of a key that a read has met so far, newest first, down to the first that is no
/// combine.
#[derive(Debug, Default)]
pub struct Stack {
    /// Newest first.
    operands: Vec<Bytes>,
    value: Option<Bytes>,
    is_whole: bool,
    /// The time of the read.
    now: u64,
    /// Entries with smaller sequence numbers lie under a range delete.
    hidden_below: SeqNo,
}

impl Stack {
    /// Returns a stack without entries, for a read at the time `now`.
    pub fn at(now: u64) -> Stack {
        Stack { now, ..Stack::default() }
    }

    /// Takes entries with sequence numbers below `hidden_below`, the newest range delete over the
    /// key, for absent.
    pub fn above(self, hidden_below: SeqNo) -> Stack {
        Stack { hidden_below, ..self }
    }

    /// Adds the next older entry. Returns true if no older one matters.
    pub fn push(&mut self, seq: SeqNo, kind: EntryKind, value: Bytes) -> bool {
        debug_assert!(!self.is_whole, "nothing below matters");
        match kind {
            _ if seq < self.hidden_below => self.is_whole = true,
            EntryKind::Combine => self.operands.push(value),
            EntryKind::Expiring => {
                let is_there = !has_expired(kind, &value, self.now);
                self.value = is_there.then(|| value.slice(EXPIRY_BYTES..));
                self.is_whole = true;
            }
            _ => {
                self.value = kind.is_value().then_some(value);
                self.is_whole = true;
            }
        }
        self.is_whole
    }

    /// Returns true if no older entry matters.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the value of `key`, or `None` if the key is absent. The stack must hold all versions
    /// that matter to the value.
    ///
    /// # Errors
    /// As [`Combiner::combine`].
    pub fn combine(mut self, key: &[u8], combiner: Option<&dyn Combiner>) -> Result<Option<Bytes>> {
        if self.operands.is_empty() {
            return Ok(self.value);
        }
        self.operands.reverse();
        combined(key, self.value, &self.operands, combiner).map(Some)
    }
}

/// Returns what `operands`, oldest first, make of `value`, the value of `key`.
///
/// # Errors
/// As [`Combiner::combine`], and if there is no combiner.
pub(crate) fn combined(
    key: &[u8],
    value: Option<Bytes>,
    operands: &[Bytes],
    combiner: Option<&dyn Combiner>,
) -> Result<Bytes> {
    let missing = || Error::new(ErrorKind::Callback, "there is no operator for a combine");
    let operands: Vec<&[u8]> = operands.iter().map(|operand| &**operand).collect();
    let made = combiner.ok_or_else(missing)?.combine(key, value.as_deref(), &operands)?;
    Ok(Bytes::from(made))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Joins operands with commas. The operand `!` fails, `?` panics. Operands with a dot do not
    /// combine with each other.
    #[derive(Debug)]
    pub(crate) struct Join;

    impl Combine for Join {
        fn name(&self) -> &str {
            "join"
        }

        fn combine(
            &self,
            _key: &[u8],
            value: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> std::result::Result<Vec<u8>, CombineError> {
            assert!(!operands.contains(&&b"?"[..]), "a question");
            if operands.contains(&&b"!"[..]) {
                return Err("an exclamation".into());
            }
            Ok(value.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().join(&b','))
        }

        fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
            let is_apart = |operand: &[u8]| operand.contains(&b'.');
            (!is_apart(older) && !is_apart(newer)).then(|| [older, newer].join(&b','))
        }
    }

    pub(crate) fn join() -> Arc<dyn Combiner> {
        Arc::new(Operator::new(Arc::from("notes"), Arc::new(Join), 0))
    }

    fn stack(entries: &[(EntryKind, &'static str)]) -> Stack {
        let mut stack = Stack::default();
        for (kind, value) in entries {
            if stack.push(SeqNo(1), *kind, Bytes::from_static(value.as_bytes())) {
                break;
            }
        }
        stack
    }

    #[test]
    fn a_stack_ends_at_the_first_entry_that_is_no_combine() {
        use EntryKind::{Combine, Delete, Put};
        for (entries, expected) in [
            (&[(Combine, "b"), (Combine, "a"), (Put, "v"), (Put, "w")][..], Some("v,a,b")),
            (&[(Combine, "b"), (Combine, "a")], Some("a,b")),
            (&[(Combine, "b"), (Delete, ""), (Combine, "a")], Some("b")),
            (&[(Put, "v"), (Combine, "a")], Some("v")),
            (&[(Delete, ""), (Combine, "a")], None),
            (&[], None),
        ] {
            let value = stack(entries).combine(b"k", Some(&*join())).unwrap();
            assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{entries:?}");
        }
    }

    #[test]
    fn whatever_an_operator_does_is_an_error_that_names_the_keyspace() {
        for (operand, what) in [("!", "failed: an exclamation"), ("?", "panicked: a question")] {
            let way_out = "at key `k`: put or delete the key";
            let what = format!("the operator of keyspace `notes` {what}, {way_out}");
            let error = stack(&[(EntryKind::Combine, operand)]).combine(b"k", Some(&*join()));
            let error = error.unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::Callback, what));
            assert_eq!(error.key(), Some(&b"k"[..]));
        }
    }

    #[test]
    fn value_that_is_too_long_is_an_error() {
        struct Huge;
        impl Combine for Huge {
            fn name(&self) -> &str {
                "huge"
            }

            fn combine(
                &self,
                _: &[u8],
                _: Option<&[u8]>,
                _: &[&[u8]],
            ) -> std::result::Result<Vec<u8>, CombineError> {
                Ok(vec![0; VALUE_BYTES_MAX + 1])
            }
        }
        let huge = Operator::new(Arc::from("notes"), Arc::new(Huge), 0);
        let error = Combiner::combine(&huge, b"k", None, &[b"x"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Callback);
    }
}
