//! Options as text, such as `memtable_bytes=64MiB, policy=tiered(ratio=4)`.

use crate::error::{Done, invalid};
use lsmith::cipher::{Keys, MasterKey};
use lsmith::policy::{Params, Spec};
use lsmith::{Builder, KeyspaceOptions, PersistMode};
use std::path::Path;

/// How far a write must have got when the call returns.
pub type lsmith_persist_t = u32;

/// The write survives the death of the process.
pub const LSMITH_BUFFER: lsmith_persist_t = 0;
/// The write survives power loss.
pub const LSMITH_SYNC_DATA: lsmith_persist_t = 1;
/// The write survives power loss, with all metadata of the log file.
pub const LSMITH_SYNC_ALL: lsmith_persist_t = 2;

/// Returns the mode with the number that C gave. Any number may come.
pub(crate) fn mode_of(mode: lsmith_persist_t) -> Done<PersistMode> {
    match mode {
        LSMITH_BUFFER => Ok(PersistMode::Buffer),
        LSMITH_SYNC_DATA => Ok(PersistMode::SyncData),
        LSMITH_SYNC_ALL => Ok(PersistMode::SyncAll),
        _ => Err(invalid(format!("expected a lsmith_persist_t from 0 to 2, found {mode}"))),
    }
}

const MODES: [(&str, PersistMode); 3] = [
    ("buffer", PersistMode::Buffer),
    ("sync_data", PersistMode::SyncData),
    ("sync_all", PersistMode::SyncAll),
];

/// Sizes, each with what it sets.
type SetBytes = fn(Builder, u64) -> Builder;
const BYTES: [(&str, SetBytes); 9] = [
    ("memtable_bytes", Builder::memtable_bytes),
    ("cache_bytes", Builder::cache_bytes),
    ("memory_bytes", Builder::memory_bytes),
    ("space_bytes", Builder::space_bytes),
    ("log_bytes", Builder::log_bytes),
    ("log_bytes_max", Builder::log_bytes_max),
    ("changes_bytes", Builder::changes_bytes),
    ("split_bytes", Builder::split_bytes),
    ("merge_bytes_per_s", |builder, bytes| builder.merge_bytes_per_s(Some(bytes))),
];

/// Options that are `true` or `false`.
type SetFlag = fn(Builder, bool) -> Builder;
const FLAGS: [(&str, SetFlag); 6] = [
    ("create_if_missing", Builder::create_if_missing),
    ("read_only", Builder::read_only),
    ("lockstep", Builder::lockstep),
    ("histograms", Builder::histograms),
    ("filters_by_size", Builder::filters_by_size),
    ("keep_tables", Builder::keep_tables),
];

const OTHERS: [&str; 10] = [
    "policy",
    "compression",
    "threads",
    "block_bytes",
    "filter_bits",
    "max_open_files",
    "persist",
    "key_file",
    "older_key_file",
    "renew_keys",
];

const OF_KEYSPACES: [&str; 7] = [
    "policy",
    "memtable_bytes",
    "group",
    "operator",
    "filter_bits",
    "prefix_bytes",
    "keep_numbers",
];

/// Returns the options in `text` as the arguments of a spec.
fn parse(name: &str, text: &str) -> Done<Spec> {
    Ok(format!("{name}({text})").parse::<Spec>()?)
}

/// Fails if `text` has one of the options `names`, which another argument of the call sets.
pub(crate) fn refuse(text: &str, names: &[&str], why: &str) -> Done<()> {
    let spec = parse("options", text)?;
    match names.iter().find(|name| spec.param(name).is_some()) {
        Some(name) => Err(invalid(format!("expected no option `{name}`: it {why}"))),
        None => Ok(()),
    }
}

/// Returns `builder` with the options of `text`.
pub(crate) fn of_store(mut builder: Builder, text: &str) -> Done<Builder> {
    let spec = parse("options", text)?;
    let mut known = OTHERS.to_vec();
    known.extend(BYTES.map(|(name, _)| name));
    known.extend(FLAGS.map(|(name, _)| name));
    let params = Params::new(&spec, &known, 0)?;
    for (name, set) in BYTES {
        if let Some(bytes) = params.bytes_if_given(name, ..)? {
            builder = set(builder, bytes);
        }
    }
    for (name, set) in FLAGS {
        if params.has(name) {
            builder = set(builder, params.flag(name, false)?);
        }
    }
    if let Some(policy) = params.text("policy") {
        builder = builder.policy(policy);
    }
    if let Some(codecs) = params.text("compression") {
        builder = builder.compression(codecs);
    }
    if let Some(threads) = params.count_if_given("threads", 1..=1024)? {
        builder = builder.threads(threads as usize);
    }
    if let Some(bytes) = params.bytes_if_given("block_bytes", ..=1 << 30)? {
        builder = builder.block_bytes(bytes as usize);
    }
    if let Some(bits) = params.count_if_given("filter_bits", ..=u64::from(u8::MAX))? {
        builder = builder.filter_bits(bits as u8);
    }
    if let Some(files) = params.count_if_given("max_open_files", 1..=u64::from(u32::MAX))? {
        builder = builder.max_open_files(files as usize);
    }
    if params.has("persist") {
        let name = params.choice("persist", "buffer", &MODES.map(|(name, _)| name))?;
        let mode = MODES.into_iter().find(|(known, _)| *known == name);
        builder = mode.map(|(_, mode)| builder.clone().persist(mode)).unwrap_or(builder);
    }
    encrypted(builder, &params)
}

/// Returns `builder` with the master keys that `params` name.
fn encrypted(builder: Builder, params: &Params<'_>) -> Done<Builder> {
    let read = |name| {
        let key = params.text(name).map(|file| MasterKey::read_key_file(Path::new(file)));
        key.transpose().map_err(|error| invalid(error.to_string()))
    };
    let older = read("older_key_file")?;
    let Some(newest) = read("key_file")? else {
        let lone = ["older_key_file", "renew_keys"].into_iter().find(|name| params.has(name));
        return match lone {
            Some(name) => Err(invalid(format!("`{name}` needs `key_file`"))),
            None => Ok(builder),
        };
    };
    let keys = Keys::new(newest);
    let keys = match older {
        Some(older) => keys.and_older(older),
        None => keys,
    };
    Ok(builder.keys(keys).renew_keys(params.flag("renew_keys", false)?))
}

/// Returns the options of a keyspace in `text`.
pub(crate) fn of_keyspace(text: &str) -> Done<KeyspaceOptions> {
    let spec = parse("options", text)?;
    let params = Params::new(&spec, &OF_KEYSPACES, 0)?;
    let mut options = KeyspaceOptions {
        policy: params.text("policy").map(Into::into),
        memtable_bytes: params.bytes_if_given("memtable_bytes", ..)?,
        group: params.text("group").map(str::to_string),
        operator: params.text("operator").map(str::to_string),
        ..KeyspaceOptions::default()
    };
    let bits = params.count_if_given("filter_bits", ..=u64::from(u8::MAX))?;
    options.filter_bits = bits.map(|bits| bits as u8);
    let prefix = params.bytes_if_given("prefix_bytes", 1..=1024)?;
    options.prefix_bytes = prefix.map(|bytes| bytes as u16);
    if params.has("keep_numbers") {
        options.keep_numbers = Some(params.flag("keep_numbers", false)?);
    }
    Ok(options)
}
