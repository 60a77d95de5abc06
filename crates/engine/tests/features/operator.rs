//! The operator and the filter of the model.

use lsmith::{Combine, CombineError, Verdict};

/// Appends operands to the value.
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

/// What the filter does with values that begin with `d` (drops) and `c` (changes).
pub(crate) fn verdict(value: &[u8]) -> Verdict {
    match value.first() {
        Some(b'd') => Verdict::Drop,
        Some(b'c') => Verdict::Change([b"k", &value[1..]].concat()),
        _ => Verdict::Keep,
    }
}
