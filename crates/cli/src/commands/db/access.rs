//! How commands of `db` open a store, read their arguments, and print.

use crate::args::{DbArgs, RangeArgs};
use crate::failure::bad_argument;
use crate::files;
use crate::specs;
use crate::text::Coding;
use lsmith::prefix_bounds;
use lsmith::{Builder, Clock, Expiry, Keyspace, KeyspaceOptions, Store};
use lsmith_lab::Newest;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::path::Path;

/// How a command prints keys and values.
#[derive(Clone, Copy)]
pub(super) struct Print {
    pub(super) coding: Coding,
    pub(super) json: bool,
}

/// Returns the key or value that an argument stands for.
pub(super) fn bytes_of(argument: &OsStr, coding: Coding) -> anyhow::Result<Vec<u8>> {
    let bytes = coding.parse(argument.as_encoded_bytes());
    bytes.map_err(|message| bad_argument(format!("`{}`: {message}", argument.display())))
}

/// The two ends of a range of keys.
type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Returns a range of keys. Fails if one of them is no key.
pub(super) fn bounds_of(range: &RangeArgs, coding: Coding) -> anyhow::Result<KeyBounds> {
    let key = |key: &Option<OsString>| match key {
        Some(key) => bytes_of(key, coding).map(Some),
        None => Ok(None),
    };
    if let Some(prefix) = key(&range.prefix)? {
        let (lower, upper) = prefix_bounds(&prefix);
        return Ok((lower.map(|key| key.to_vec()), upper.map(|key| key.to_vec())));
    }
    let from = key(&range.from)?.map_or(Bound::Unbounded, Bound::Included);
    Ok((from, key(&range.to)?.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// Returns a builder that knows the policies of this command, and the operator of stores that `run`
/// has made.
pub(super) fn builder(dir: &Path) -> Builder {
    Store::builder(dir).env(files::env()).registry(specs::registry().clone()).operator(Newest)
}

/// Returns a builder that also has the clock that the arguments ask for.
fn timed(args: &DbArgs) -> Builder {
    let builder = builder(&args.dir);
    match args.time {
        Some(time) => builder.clock(Clock::fixed(time)),
        None => builder,
    }
}

pub(super) fn open_to_read(args: &DbArgs) -> lsmith::Result<Store> {
    timed(args).read_only(true).open()
}

/// Opens the keyspace read-only.
pub(super) fn to_read(args: &DbArgs) -> anyhow::Result<Keyspace> {
    existing(&open_to_read(args)?, args)
}

/// Opens the existing store for writing.
pub(super) fn open_to_change(args: &DbArgs) -> lsmith::Result<Store> {
    timed(args).create_if_missing(false).open()
}

/// Opens the existing keyspace for writing.
pub(super) fn to_change(args: &DbArgs) -> anyhow::Result<Keyspace> {
    existing(&open_to_change(args)?, args)
}

/// Opens the keyspace for writing. Creates the store and the keyspace if they are missing.
pub(super) fn to_fill(args: &DbArgs) -> anyhow::Result<Keyspace> {
    let codecs = args.compression.as_deref().unwrap_or("none");
    check_codecs(codecs)?;
    let store = timed(args).compression(codecs).open()?;
    store.keyspace_with(&args.keyspace, &asked(args)).map_err(wrong_argument)
}

/// Returns what the arguments ask of the keyspace.
fn asked(args: &DbArgs) -> KeyspaceOptions {
    let keep_numbers = args.keep_numbers.then_some(true);
    KeyspaceOptions {
        group: args.group.clone(),
        keep_numbers,
        filter_bits: args.filter_bits,
        prefix_bytes: args.prefix_bytes,
        expiry: args.expire_after.map(Expiry::after),
        operator: args.operator.clone(),
        ..KeyspaceOptions::default()
    }
}

/// Returns `error` as a wrong argument, if an argument is to blame.
pub(super) fn wrong_argument(error: lsmith::Error) -> anyhow::Error {
    match error.kind() {
        lsmith::ErrorKind::InvalidArgument => bad_argument(error),
        _ => error.into(),
    }
}

pub(super) fn check_codecs(codecs: &str) -> anyhow::Result<()> {
    lsmith::check_compression(codecs).map_err(bad_argument)
}

/// Returns `error`, about the keyspace `name`. If it is missing, suggests the nearest name.
pub(super) fn no_keyspace(store: &Store, name: &str, error: lsmith::Error) -> anyhow::Error {
    match error.kind() {
        lsmith::ErrorKind::InvalidArgument => return bad_argument(error),
        lsmith::ErrorKind::NotFound => {}
        _ => return error.into(),
    }
    let names = store.keyspaces();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    match lsmith_spec::nearest(name, &known) {
        Some(nearest) => bad_argument(format!("{error}; did you mean `{nearest}`?")),
        None => bad_argument(format!("{error}; expected one of: {}", known.join(", "))),
    }
}

/// Opens an existing keyspace.
fn existing(store: &Store, args: &DbArgs) -> anyhow::Result<Keyspace> {
    let found = store.existing_keyspace(&args.keyspace);
    let found = found.map_err(|error| no_keyspace(store, &args.keyspace, error))?;
    let asked = asked(args);
    if asked != KeyspaceOptions::default() {
        // Fails if the keyspace is in another group or has other options, and changes nothing.
        store.keyspace_with(&args.keyspace, &asked).map_err(wrong_argument)?;
    }
    Ok(found)
}
