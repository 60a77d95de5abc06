//! What a lookup found.

use super::Version;
use bytes::Bytes;
use lsmith_storage::format::{Block, Slot};
use lsmith_storage::reference::ReadBytes;
use std::marker::PhantomData;

/// A value that a lookup found.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    /// A value in memory: a shared handle, or a copy if it is short, because writers go on there.
    InMemory(Bytes),
    /// A value in a value file.
    Apart(ReadBytes),
    /// A value in a block of a table, which does not change as long as the version lives.
    InBlock {
        /// The block.
        block: Block,
        /// The place of the entry in the block.
        slot: Slot,
        /// Borrows the version, which keeps the block alive.
        version: PhantomData<&'a Version>,
    },
}

impl Value<'_> {
    /// Returns the bytes without a copy.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Value::InMemory(value) => value,
            Value::Apart(value) => value,
            Value::InBlock { block, slot, .. } => block.value(slot),
        }
    }

    /// Returns the value without its first `bytes`.
    pub(super) fn without_first(self, bytes: usize) -> Self {
        match self {
            Value::InMemory(value) => Value::InMemory(value.slice(bytes.min(value.len())..)),
            Value::Apart(value) => Value::InMemory(value.into_shared()).without_first(bytes),
            Value::InBlock { block, slot, version } => {
                Value::InBlock { block, slot: slot.with_value_from(bytes), version }
            }
        }
    }

    /// Returns a handle of the bytes that outlives the version.
    #[inline]
    pub(crate) fn into_shared(self) -> Bytes {
        match self {
            Value::InMemory(value) => value,
            Value::Apart(value) => value.into_shared(),
            Value::InBlock { block, slot, .. } => block.shared_value(&slot),
        }
    }
}
