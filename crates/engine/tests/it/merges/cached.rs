//! What merges leave in the system's cache.
//!
//! Promised: the tables of a merge that reads more than a quarter of the memory need not stay
//! there. All others do.

use crate::frame::scripted::{Call, Op, Script, Scripted};
use crate::frame::small::{fill, open, small, threaded};
use lsmith::Builder;
use lsmith::env::MemEnv;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Some merges of the test read more than a quarter of it, and some less.
const MEMORY_BYTES: u64 = 60_000;

/// The tables that were written: their bytes, and true if they need not stay in the cache.
#[derive(Debug, Default)]
struct Tables(Mutex<BTreeMap<PathBuf, (u64, bool)>>);

impl Script for Tables {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        let mut tables = self.0.lock();
        let is_write = call.is_done(Op::Write) || call.is_done(Op::Uncached);
        if is_write && call.is_of("table") {
            let (bytes, is_uncached) = tables.entry(call.path.to_path_buf()).or_default();
            *bytes += call.range.end - call.range.start;
            *is_uncached |= call.op == Op::Uncached;
        }
        Ok(())
    }
}

/// Returns the tables that a store writes on a machine with so much memory.
fn written(
    memory: Option<u64>,
    builder: fn(&Scripted<Tables>) -> Builder,
) -> BTreeMap<PathBuf, (u64, bool)> {
    let env = Scripted::new(MemEnv::new(), Tables::default());
    let env = memory.into_iter().fold(env, Scripted::with_memory);
    let (store, space) = open(builder(&env).policy("minlatency(k=3)"));
    // No two runs are apart, so every merge rewrites what it reads.
    fill(&space, (0..2000).map(|number| number * 7919 % 2003), [7; 60]);
    space.flush().unwrap();
    store.settle().unwrap();
    let tables = env.0.lock().clone();
    assert!(tables.values().any(|(bytes, _)| *bytes > MEMORY_BYTES / 2), "{tables:?}");
    tables
}

#[test]
fn only_merges_of_much_of_the_memory_leave_nothing_in_the_cache() {
    for builder in [small, threaded] {
        let tables = written(Some(MEMORY_BYTES), builder);
        let (large, small): (Vec<_>, Vec<_>) =
            tables.values().partition(|(bytes, _)| *bytes > MEMORY_BYTES / 3);
        assert!(large.iter().all(|(_, is_uncached)| *is_uncached), "{tables:?}");
        let small: Vec<_> = small.iter().filter(|(bytes, _)| *bytes < MEMORY_BYTES / 5).collect();
        assert!(
            small.len() > 10 && small.iter().all(|(_, is_uncached)| !is_uncached),
            "{tables:?}"
        );
    }
}

#[test]
fn tables_stay_in_the_cache_where_nobody_knows_the_memory() {
    assert!(written(None, small).values().all(|(_, is_uncached)| !is_uncached));
}
