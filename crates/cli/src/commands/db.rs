//! `db`: reads, changes, checks and repairs a store.

mod access;
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

use crate::args::{DbArgs, DbCommand, TreeArgs};
use crate::files;
use crate::specs;
use access::{
    Print, builder, bytes_of, check_codecs, open_to_change, open_to_read, to_change, to_fill,
    to_read,
};
use exchange::Input;
use lsmith::IngestOptions;
use std::ffi::OsString;

pub(crate) fn db(args: &DbArgs, json: bool) -> anyhow::Result<()> {
    if let Some(newest) = &args.key_file {
        files::encrypt(newest, &args.older_key_file)?;
    }
    run(args, Print { coding: args.coding(), json }, json)
}

fn run(args: &DbArgs, print: Print, json: bool) -> anyhow::Result<()> {
    let bytes = |argument: &OsString| bytes_of(argument, print.coding);
    match &args.command {
        DbCommand::Get { key } => look::get(&to_read(args)?, &bytes(key)?, print),
        DbCommand::Scan(scan) => look::scan(&to_read(args)?, scan, print),
        DbCommand::Stats(_) => look::stats(&to_read(args)?, json),
        DbCommand::Keyspaces(_) => look::keyspaces(&open_to_read(args)?, json),
        DbCommand::List(_) => look::list(&builder(&args.dir).list_keyspaces()?, json),
        DbCommand::Drop { name } => work::drop_keyspace(&open_to_change(args)?, name, json),
        DbCommand::Clear => work::clear(&to_change(args)?, json),
        DbCommand::RenewKeys => work::renew_keys(args, json),
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
