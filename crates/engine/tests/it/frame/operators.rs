//! Operators for tests.

use lsmith::{Combine, CombineError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Appends operands to the value. Two operands combine if the older one has an even length.
pub(crate) struct Append;

impl Combine for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn combine(
        &self,
        _key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        Ok(value.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().concat())
    }

    fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        older.len().is_multiple_of(2).then(|| [older, newer].concat())
    }
}

/// What [`Moody`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mood {
    /// What [`Append`] does.
    Good,
    /// Panics.
    Panics,
    /// Returns errors.
    Fails,
    /// Returns values that are too long.
    Exaggerates,
}

/// Appends while its mood is good.
#[derive(Clone)]
pub(crate) struct Moody(Arc<AtomicU8>);

impl Moody {
    pub(crate) fn new(mood: Mood) -> Moody {
        Moody(Arc::new(AtomicU8::new(mood as u8)))
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.0.store(mood as u8, Ordering::SeqCst);
    }

    fn show(&self) -> Result<Option<Vec<u8>>, CombineError> {
        match self.0.load(Ordering::SeqCst) {
            mood if mood == Mood::Panics as u8 => panic!("bad mood"),
            mood if mood == Mood::Fails as u8 => Err("bad mood".into()),
            mood if mood == Mood::Exaggerates as u8 => {
                Ok(Some(vec![0; lsmith::VALUE_BYTES_MAX + 1]))
            }
            _ => Ok(None),
        }
    }
}

impl Combine for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn combine(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        self.show()?.map_or_else(|| Append.combine(key, value, operands), Ok)
    }

    fn combine_operands(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        match self.show() {
            Ok(None) => Append.combine_operands(key, older, newer),
            Ok(too_long) => too_long,
            Err(_) => None,
        }
    }
}
