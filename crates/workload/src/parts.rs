//! What every kind of workload is built from.

use crate::keys::KeySpace;
use lsmith_spec::{Params, Spec, SpecError};

/// Most keys of a workload: a rank takes 32 bits.
pub(crate) const KEYS_MAX: u64 = u32::MAX as u64;

/// Longest key of a workload, in bytes: as long as in a keyspace of a group.
pub(crate) const KEY_BYTES_MAX: u64 = 65_534;

/// Longest value of a workload, in bytes: as long as in a store.
pub const VALUE_BYTES_MAX: u64 = 1 << 28;

/// The parsed parameters of a kind of workload.
pub(crate) struct Parts<G> {
    /// The source of the operations.
    pub(crate) generator: G,
    pub(crate) keys: KeySpace,
    /// Upper bound of the items in the stream.
    pub(crate) items: u64,
    /// The canonical spelling, without the parameters that all kinds share.
    pub(crate) spec: Spec,
}

impl<G> Parts<G> {
    /// Returns the same parts with `into` of the source.
    pub(crate) fn map<T>(self, into: impl FnOnce(G) -> T) -> Parts<T> {
        let Parts { generator, keys, items, spec } = self;
        Parts { generator: into(generator), keys, items, spec }
    }
}

/// Returns the `value` parameter: length of the values in bytes.
pub(crate) fn value_bytes(params: &Params, default: u64) -> Result<u32, SpecError> {
    let bytes = params.bytes("value", default, 0..=VALUE_BYTES_MAX)?;
    Ok(u32::try_from(bytes).expect("the range ends far below 2^32"))
}
