//! `db`: reads, changes, checks and repairs a store.

mod changes;
mod copies;
mod dump;
mod exchange;
mod graph;
mod look;
mod repair;
mod report;
mod verify;
mod why;
mod work;

use crate::args::{DbArgs, DbCommand, RangeArgs, TreeArgs};
use crate::failure::bad_argument;
use crate::specs;
use crate::text::Coding;
use exchange::Input;
use lsmith::prefix_bounds;
use lsmith::{Builder, Clock, Expiry, IngestOptions, Keyspace, KeyspaceOptions, Store};
use lsmith_lab::Newest;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::path::Path;

pub(crate) fn db(args: &DbArgs, json: bool) -> anyhow::Result<()> {
    let print = Print { coding: args.coding(), json };
    let bytes = |argument: &OsString| bytes_of(argument, print.coding);
    match &args.command {
        DbCommand::Get { key } => look::get(&to_read(args)?, &bytes(key)?, print),
        DbCommand::Scan(scan) => look::scan(&to_read(args)?, scan, print),
        DbCommand::Stats(_) => look::stats(&to_read(args)?, json),
        DbCommand::Keyspaces(_) => look::keyspaces(&open_to_read(args)?, json),
        DbCommand::List(_) => look::list(&builder(&args.dir).list_keyspaces()?, json),
        DbCommand::Drop { name } => work::drop_keyspace(&open_to_change(args)?, name, json),
        DbCommand::Clear => work::clear(&to_change(args)?, json),
        DbCommand::Id => look::id(&open_to_read(args)?, json),
        DbCommand::Destroy { yes } => work::destroy(&builder(&args.dir), *yes, json),
        DbCommand::Rename { from, to } => work::rename(&open_to_change(args)?, from, to, json),
        DbCommand::Metrics => look::metrics(&open_to_read(args)?, json),
        DbCommand::Tree(TreeArgs { svg: Some(svg), .. }) => {
            graph::picture(&to_read(args)?, svg, json)
        }
        DbCommand::Tree(tree) if tree.graph || tree.dot => {
            graph::graph(&to_read(args)?, tree.dot, json)
        }
        DbCommand::Tree(tree) => look::tree(&to_read(args)?, tree.short, json),
        DbCommand::Why => why::why(&to_read(args)?, json),
        DbCommand::Report { html } => report::report(&open_to_read(args)?, &args.dir, html, json),
        DbCommand::Verify => verify::verify(&args.dir, json),
        DbCommand::Dump(dump) => dump::dump(&args.dir, dump, print),
        DbCommand::Repair { to } => repair::repair(&args.dir, to, json),
        DbCommand::Checkpoint { to } => copies::checkpoint(&open_to_change(args)?, to, json),
        DbCommand::Backup { to, keep, check } => {
            copies::backup(&open_to_change(args)?, to, *check, *keep, json)
        }
        DbCommand::Changes { from, limit } => changes::changes(&args.dir, *from, *limit, print),
        DbCommand::Backups { verify, remove } => copies::backups(&args.dir, *verify, *remove, json),
        DbCommand::Restore { from, backup } => copies::restore(from, *backup, &args.dir, json),
        DbCommand::Policy { spec: None } => look::policy(&to_read(args)?, json),
        DbCommand::Policy { spec: Some(spec) } => {
            specs::policy(spec)?;
            work::set_policy(&to_change(args)?, spec, json)
        }
        DbCommand::Compression { codecs: None } => look::compression(&to_read(args)?, json),
        DbCommand::Compression { codecs: Some(codecs) } => {
            check_codecs(codecs)?;
            work::set_compression(&to_change(args)?, codecs, json)
        }
        DbCommand::Put { key, value } => {
            let (key, value) = (bytes(key)?, bytes(value)?);
            work::put(&to_fill(args)?, &key, &value, print)
        }
        DbCommand::DeleteRange { from, to } => {
            work::delete_range(&to_change(args)?, &bytes(from)?, &bytes(to)?, print)
        }
        DbCommand::Delete { key } => work::delete(&to_change(args)?, &bytes(key)?, print),
        DbCommand::Ingest { files, link, allow_resurrect } => match exchange::input_of(files)? {
            Input::Tables => {
                let options = IngestOptions::default().link(*link);
                let options = options.allow_resurrect(*allow_resurrect);
                exchange::ingest_tables(&to_fill(args)?, files, &options, json)
            }
            Input::Lines(inputs) => exchange::ingest_lines(&to_fill(args)?, files, inputs, print),
        },
        DbCommand::Export(export) => {
            exchange::export(&to_read(args)?, export, args.compression.as_deref(), print)
        }
        DbCommand::Load { file } => {
            let input = work::open_input(file)?;
            work::load(&to_fill(args)?, file, input, print)
        }
        DbCommand::Compact => work::compact(&to_change(args)?, json),
    }
}

/// How a command prints keys and values.
#[derive(Clone, Copy)]
struct Print {
    coding: Coding,
    json: bool,
}

/// Returns the key or value that an argument stands for.
fn bytes_of(argument: &OsStr, coding: Coding) -> anyhow::Result<Vec<u8>> {
    let bytes = coding.parse(argument.as_encoded_bytes());
    bytes.map_err(|message| bad_argument(format!("`{}`: {message}", argument.display())))
}

/// The two ends of a range of keys.
type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Returns a range of keys. Fails if one of them is no key.
fn bounds_of(range: &RangeArgs, coding: Coding) -> anyhow::Result<KeyBounds> {
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
fn builder(dir: &Path) -> Builder {
    Store::builder(dir).registry(specs::registry().clone()).operator(Newest)
}

/// Returns a builder that also has the clock that the arguments ask for.
fn timed(args: &DbArgs) -> Builder {
    let builder = builder(&args.dir);
    match args.time {
        Some(time) => builder.clock(Clock::fixed(time)),
        None => builder,
    }
}

fn open_to_read(args: &DbArgs) -> lsmith::Result<Store> {
    timed(args).read_only(true).open()
}

/// Opens the keyspace read-only.
fn to_read(args: &DbArgs) -> anyhow::Result<Keyspace> {
    existing(&open_to_read(args)?, args)
}

/// Opens the existing store for writing.
fn open_to_change(args: &DbArgs) -> lsmith::Result<Store> {
    timed(args).create_if_missing(false).open()
}

/// Opens the existing keyspace for writing.
fn to_change(args: &DbArgs) -> anyhow::Result<Keyspace> {
    existing(&open_to_change(args)?, args)
}

/// Opens the keyspace for writing. Creates the store and the keyspace if they are missing.
fn to_fill(args: &DbArgs) -> anyhow::Result<Keyspace> {
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
        expiry: args.expire_after.map(|after| Expiry { after: Some(after) }),
        operator: args.operator.clone(),
        ..KeyspaceOptions::default()
    }
}

/// Returns `error` as a wrong argument, if an argument is to blame.
fn wrong_argument(error: lsmith::Error) -> anyhow::Error {
    match error.kind() {
        lsmith::ErrorKind::InvalidArgument => bad_argument(error),
        _ => error.into(),
    }
}

fn check_codecs(codecs: &str) -> anyhow::Result<()> {
    lsmith::check_compression(codecs).map_err(bad_argument)
}

/// Returns `error`, about the keyspace `name`. If it is missing, suggests the nearest name.
fn no_keyspace(store: &Store, name: &str, error: lsmith::Error) -> anyhow::Error {
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
