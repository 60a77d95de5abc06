//! Numbers of options at their extremes.
//!
//! Promised: an option that no store can have is refused, and the error names what is expected.
//! With any other the store works.

use lsmith::env::{Env, MemEnv};
use lsmith::{
    Builder, Cache, ErrorKind, Expiry, KeyspaceOptions, Result, Store, TableWriter,
    TableWriterOptions, Threads,
};
use std::sync::Arc;

/// Uses a store that `builder` opens, and opens it again.
fn use_store(builder: &Builder, options: &KeyspaceOptions) -> Result<()> {
    for life in 0..2_u32 {
        let store = builder.clone().open()?;
        let space = store.keyspace_with("space", options)?;
        for number in 0..300_u32 {
            space.put(number.to_be_bytes(), [number as u8; 50])?;
            if number % 100 == 99 {
                space.flush()?;
            }
        }
        space.delete(life.to_be_bytes())?;
        space.merge()?;
        store.settle()?;
        assert_eq!(space.iter().map(Result::unwrap).count(), 299);
        assert_eq!(space.get(7_u32.to_be_bytes())?.as_deref(), Some(&[7; 50][..]));
        assert!(store.verify()?.is_empty());
    }
    Ok(())
}

/// Asserts that the store works, or that the option is refused with `expected`.
fn works_or_is_refused(what: &str, expected: Option<&str>, used: Result<()>) {
    match (used, expected) {
        (Ok(()), None) => {}
        (Err(error), Some(expected)) => {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
            assert!(error.to_string().contains(expected), "{what}: {error}");
        }
        (used, _) => panic!("{what}: {used:?}, expected {expected:?}"),
    }
}

/// What broke: blocks of `usize::MAX` bytes were accepted, and every merge overflowed.
#[test]
fn options_of_a_store_work_or_are_refused() {
    const MAX: u64 = u64::MAX;
    let base = || {
        let env = MemEnv::with_capacity(4 << 30);
        let builder = Store::builder("/store").env(Arc::new(env)).log_bytes(64 << 10);
        builder.memtable_bytes(1 << 20)
    };
    let cases: Vec<(&str, Builder, Option<&str>)> = vec![
        ("block_bytes 0", base().block_bytes(0), None),
        ("block_bytes 1", base().block_bytes(1), None),
        ("block_bytes 2^28", base().block_bytes(1 << 28), None),
        ("block_bytes 2^28 + 1", base().block_bytes((1 << 28) + 1), Some("1 to 268435456")),
        ("block_bytes MAX", base().block_bytes(usize::MAX), Some("1 to 268435456")),
        ("memtable_bytes 0", base().memtable_bytes(0), Some("1 to 1099511627776")),
        ("memtable_bytes 1", base().memtable_bytes(1), None),
        ("memtable_bytes 2^40", base().memtable_bytes(1 << 40), None),
        ("memtable_bytes MAX", base().memtable_bytes(MAX), Some("1 to 1099511627776")),
        ("cache_bytes 0", base().cache_bytes(0), None),
        ("cache_bytes MAX", base().cache_bytes(MAX), None),
        ("cache MAX", base().cache(&Cache::new(MAX)), None),
        ("memory_bytes 0", base().memory_bytes(0), Some("1 to 1099511627776")),
        ("memory_bytes 1000", base().memory_bytes(1000), Some("at least 1048576")),
        ("memory_bytes 1 MiB", base().memory_bytes(1 << 20), None),
        ("memory_bytes MAX", base().memory_bytes(MAX), None),
        ("log_bytes 0", base().log_bytes(0), None),
        ("log_bytes MAX", base().log_bytes(MAX), None),
        ("log_bytes_max 0", base().log_bytes_max(0), None),
        ("log_bytes_max MAX", base().log_bytes_max(MAX), None),
        ("changes_bytes MAX", base().changes_bytes(MAX), None),
        ("threads 0", base().threads(0), None),
        ("threads 1025", base().threads(1025), Some("1 to 1024")),
        ("threads MAX", base().threads(usize::MAX), Some("1 to 1024")),
        ("split_bytes 0", base().split_bytes(0), None),
        ("split_bytes MAX", base().split_bytes(MAX), None),
        ("merge_bytes_per_s MAX", base().merge_bytes_per_s(Some(MAX)), None),
        ("filter_bits 0", base().filter_bits(0), None),
        ("filter_bits 255", base().filter_bits(255), None),
        ("255 by size", base().filter_bits(255).filters_by_size(true), None),
        ("rewrite_below 0", base().rewrite_below(0.0), None),
        ("rewrite_below 1", base().rewrite_below(1.0), None),
        ("rewrite_below -1", base().rewrite_below(-1.0), Some("0 to 1")),
        ("rewrite_below 1.1", base().rewrite_below(1.1), Some("0 to 1")),
        ("rewrite_below NaN", base().rewrite_below(f64::NAN), Some("0 to 1")),
        ("rewrite_below infinity", base().rewrite_below(f64::INFINITY), Some("0 to 1")),
        ("max_open_files 0", base().max_open_files(0), None),
        ("max_open_files MAX", base().max_open_files(usize::MAX), None),
    ];
    for (what, builder, expected) in cases {
        for policy in ["tiered(ratio=2)", "choose_best(ratio=2, rate=0.5)", "jungle(c=2, ratio=2)"]
        {
            let used = use_store(&builder.clone().policy(policy), &KeyspaceOptions::default());
            works_or_is_refused(&format!("{what}, {policy}"), expected, used);
        }
    }
}

#[test]
fn options_of_keyspaces_and_tables_work_or_are_refused() {
    let none = KeyspaceOptions::default;
    let cases = [
        (KeyspaceOptions { memtable_bytes: Some(0), ..none() }, Some("1 to 1099511627776")),
        (KeyspaceOptions { memtable_bytes: Some(u64::MAX), ..none() }, Some("1 to 1099511627776")),
        (KeyspaceOptions { filter_bits: Some(255), ..none() }, None),
        (KeyspaceOptions { filter_bits: Some(0), ..none() }, None),
        (KeyspaceOptions { prefix_bytes: Some(0), ..none() }, Some("1 to 1024")),
        (KeyspaceOptions { prefix_bytes: Some(1024), ..none() }, None),
        (KeyspaceOptions { prefix_bytes: Some(u16::MAX), ..none() }, Some("1 to 1024")),
        (KeyspaceOptions { expiry: Some(Expiry::after(u64::MAX)), ..none() }, None),
    ];
    for (options, expected) in cases {
        let env = MemEnv::with_capacity(1 << 30);
        let builder = Store::builder("/store").env(Arc::new(env)).log_bytes(64 << 10);
        works_or_is_refused(&format!("{options:?}"), expected, use_store(&builder, &options));
    }
    for (block_bytes, expected) in [(0, Some("1 to")), (usize::MAX, Some("1 to")), (1 << 28, None)]
    {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let options = TableWriterOptions { env, block_bytes, ..TableWriterOptions::default() };
        let written = TableWriter::create_with("/table", &options).and_then(|mut writer| {
            writer.put("key", "value")?;
            writer.finish().map(drop)
        });
        works_or_is_refused(&format!("blocks of {block_bytes}"), expected, written);
    }
    works_or_is_refused("threads", Some("1 to 1024"), Threads::new(usize::MAX).map(drop));
}
