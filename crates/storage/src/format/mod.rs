//! Encodes and decodes the bytes of table files and batches, without I/O.
//!
//! All input may be damaged, so the decoders check every length, offset and order before they use
//! it. A fault is a [`Damage`], never a panic.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod append;
mod batch;
mod block;
mod block_builder;
mod codec;
mod compress;
mod entry_head;
mod facts;
mod fences;
mod filter;
mod footer;
#[cfg(test)]
mod fuzz;
mod seal;
mod slot;
#[cfg(test)]
mod tests;
mod value_file;

pub use append::{AppendRoot, ChildRef, FILTER_PARTS_MAX, NODE_BYTES, NodeSum, Span, ValueRef};
pub use batch::{
    KEY_BYTES_MAX, LoggedBatch, LoggedOp, OpKind, VALUE_BYTES_MAX, decode_batch, deleted_range,
    encode_empty_batch, take_pair, take_range,
};
pub use block::{Block, BlockAnswer};
pub use block_builder::BlockBuilder;
pub use codec::{
    Damage, Reader, append_key, common_prefix_bytes, key_prefix, put_bytes, put_varint,
};
pub use compress::{Codec, Compressor};
pub use facts::{EntryPlace, FactsBuilder, ProfileGrain, TableFacts, ValueUse};
pub use fences::{Fence, FenceGroup, Fences, FencesBuilder};
pub use filter::{Filter, FilterBuilder, key_hash, prefix_hash, prefix_hash_of};
pub use footer::MAGIC as TABLE_MAGIC;
pub use footer::{
    FEATURE_APPEND, FEATURE_COMPRESSED, FEATURE_EXPIRES, FEATURE_EXPIRING, FEATURE_OPERANDS,
    FEATURE_OUTSIDE, FEATURE_PREFIXES, FEATURE_RANGE_DELETES, FEATURE_UNDATED, FEATURE_VALUES,
    FOOTER_BYTES, Footer, FooterFault, Section,
};
pub use seal::{SEAL_BYTES, SealedPlace, codec_name, seal, unseal};
pub use slot::{Slot, Trail};
pub use value_file::{
    VALUE_FEATURE_COMPRESSED, VALUE_FILE_VERSION, VALUE_HEAD_BYTES, VALUE_LOOK_BYTES,
    VALUE_START_BYTES, ValueFileFault, check_head, check_record, decode_value_start, encode_record,
    encode_value_start, record_bytes, reference_to, unpack_value,
};

/// The version of the table format that is written; no other version is read.
pub const FORMAT_VERSION: u32 = 3;
