//! What options cost: the same work on stores that differ in one option, as a table.
//!
//! `cargo bench -p lsmith --bench options -- [KEYS [NAME..]]`. CPU time counts the whole process,
//! merging threads included, until merges have come to rest.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "benches time the store")]

#[path = "shared/keys.rs"]
mod keys;

use keys::key;
use lsmith::{
    Batch, Builder, Cache, Expiry, Isolation, Keyspace, KeyspaceOptions, PersistMode, Result,
    Store, Threads, Verdict,
};
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// Keys if nothing else is said.
const KEYS: u64 = 500_000;

const VALUE_BYTES: usize = 100;

/// The keyspace that is filled.
const SPACE: &str = "filled";

/// A store with one option changed, and how it is filled.
struct Variant {
    name: &'static str,
    change: fn(Builder) -> Builder,
    space: fn() -> KeyspaceOptions,
    fill: fn(&Keyspace, u64) -> Result<()>,
    value_bytes: usize,
}

const fn option(name: &'static str, change: fn(Builder) -> Builder) -> Variant {
    Variant { name, change, ..Variant::DEFAULT }
}

const fn way(name: &'static str, fill: fn(&Keyspace, u64) -> Result<()>) -> Variant {
    Variant { name, fill, ..Variant::DEFAULT }
}

/// A store whose keyspace is made with an option of its own.
const fn space(name: &'static str, space: fn() -> KeyspaceOptions) -> Variant {
    Variant { name, space, ..Variant::DEFAULT }
}

impl Variant {
    const DEFAULT: Variant = Variant {
        name: "default",
        change: |builder| builder,
        space: KeyspaceOptions::default,
        fill: put_all,
        value_bytes: VALUE_BYTES,
    };
}

/// A tree of some levels, for options that show in one only.
fn levels(builder: Builder, table: &str) -> Builder {
    builder.policy(format!("leveled(ratio=4, table={table})")).memtable_bytes(4 << 20)
}

const VARIANTS: &[Variant] = &[
    Variant::DEFAULT,
    option("compression lz4", |builder| builder.compression("lz4")),
    option("compression zstd(level=1)", |builder| builder.compression("zstd(level=1)")),
    option("compression zstd", |builder| builder.compression("zstd")),
    option("compression zstd(level=9)", |builder| builder.compression("zstd(level=9)")),
    option("filter_bits 0", |builder| builder.filter_bits(0)),
    option("filter_bits 5", |builder| builder.filter_bits(5)),
    option("filter_bits 16", |builder| builder.filter_bits(16)),
    option("filters_by_size false", |builder| builder.filters_by_size(false)),
    option("block_bytes 1024", |builder| builder.block_bytes(1024)),
    option("block_bytes 16384", |builder| builder.block_bytes(16 << 10)),
    option("cache_bytes 0", |builder| builder.cache_bytes(0)),
    option("cache_bytes 1 GiB", |builder| builder.cache_bytes(1 << 30)),
    option("memory_bytes 64 MiB", |builder| builder.memory_bytes(64 << 20)),
    option("cache and shared_threads, alone", |builder| {
        let threads = Threads::new(2).expect("the system has two threads to give");
        builder.cache(&Cache::new(64 << 20)).shared_threads(&threads)
    }),
    option("histograms", |builder| builder.histograms(true)),
    way("bulk_load", load_all),
    way("merge by hand", |keyspace, keys| {
        put_all(keyspace, keys)?;
        keyspace.merge()
    }),
    option("memtable_bytes 4 MiB", |builder| builder.memtable_bytes(4 << 20)),
    option("the same, merge_bytes_per_s 50 MB", |builder| {
        builder.memtable_bytes(4 << 20).merge_bytes_per_s(Some(50_000_000))
    }),
    option("leveled", |builder| levels(builder, "4MiB")),
    option("leveled, table 1 MiB", |builder| levels(builder, "1MiB")),
    option("leveled, table 16 MiB", |builder| levels(builder, "16MiB")),
    option("leveled, none,none,lz4,zstd", |builder| {
        levels(builder, "4MiB").compression("none,none,lz4,zstd")
    }),
    way("batches of 100", |keyspace, keys| {
        in_hundreds(keys, |numbers| {
            let mut batch = Batch::new();
            numbers.for_each(|number| batch.put(keyspace, key(number), value(number)));
            keyspace.store().write(batch, PersistMode::Buffer)
        })?;
        keyspace.flush()
    }),
    way("transactions of 100", |keyspace, keys| {
        in_hundreds(keys, |mut numbers| {
            let mut transaction = keyspace.store().transaction(Isolation::Snapshot);
            numbers.try_for_each(|number| transaction.put(keyspace, key(number), value(number)))?;
            transaction.commit(PersistMode::Buffer).map(drop)
        })?;
        keyspace.flush()
    }),
    way("a range deleted per 1000 puts", |keyspace, keys| {
        for number in 0..keys {
            keyspace.put(key(number), value(number))?;
            if number % 1000 == 0 {
                // One key, which is absent.
                let absent = key(number + (1 << 40));
                keyspace.delete_range(absent..=absent)?;
            }
        }
        keyspace.flush()
    }),
    way("a snapshot is held", |keyspace, keys| {
        let _snapshot = keyspace.store().snapshot();
        put_all(keyspace, keys)
    }),
    option("changes_bytes 64 MiB", |builder| builder.changes_bytes(64 << 20)),
    option("merge_filter that keeps all", |builder| {
        builder.merge_filter(SPACE, |_: &[u8], _: &[u8]| Verdict::Keep)
    }),
    space("keep_numbers", || KeyspaceOptions {
        keep_numbers: Some(true),
        ..KeyspaceOptions::default()
    }),
    space("expiry after", || KeyspaceOptions {
        expiry: Some(Expiry::after(1_000_000)),
        ..KeyspaceOptions::default()
    }),
    Variant { name: "put of 8 bytes", fill: put_counts, value_bytes: 8, ..Variant::DEFAULT },
    Variant {
        name: "combine of 8 bytes",
        space: || KeyspaceOptions {
            operator: Some("counter".into()),
            ..KeyspaceOptions::default()
        },
        fill: combine_counts,
        value_bytes: 8,
        ..Variant::DEFAULT
    },
];

/// What a variant came to.
struct Row {
    /// Seconds on the clock that the fill took, with all merging.
    fill_seconds: f64,
    /// CPU microseconds per operation: fill, lookups of present keys, of absent keys, scan.
    micros: [f64; 4],
    /// Blocks read for a present key, and for an absent key.
    blocks: [f64; 2],
    /// Bytes in tables for each byte of keys and values.
    table_share: f64,
    /// Megabytes of filters.
    filter_megabytes: f64,
}

/// Keys that share a prefix of eight bytes, for scans of prefixes.
const SHARING: u64 = 10;

/// What a keyspace asks of filters, and what scans of prefixes cost then.
const PREFIXES: [(&str, Option<u16>); 2] = [("prefix scans", None), ("prefix_bytes 8", Some(8))];

/// CPU seconds of this process.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CPU microseconds that each of `count` operations of `work` takes.
fn micros(count: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let before = cpu_seconds();
    work()?;
    Ok((cpu_seconds() - before) * 1e6 / count as f64)
}

/// A half random value, so that it compresses about as well as data of users.
fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [b'.'; VALUE_BYTES];
    let mut state = number + 1;
    for byte in &mut value[..VALUE_BYTES / 2] {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        *byte = (state >> 56) as u8;
    }
    value
}

fn put_all(keyspace: &Keyspace, keys: u64) -> Result<()> {
    (0..keys).try_for_each(|number| keyspace.put(key(number), value(number)))?;
    keyspace.flush()
}

fn put_counts(keyspace: &Keyspace, keys: u64) -> Result<()> {
    (0..keys).try_for_each(|number| keyspace.put(key(number), number.to_le_bytes()))?;
    keyspace.flush()
}

fn combine_counts(keyspace: &Keyspace, keys: u64) -> Result<()> {
    (0..keys).try_for_each(|number| keyspace.combine(key(number), number.to_le_bytes()))?;
    keyspace.flush()
}

/// Calls `write` with the numbers below `keys`, a hundred at a time.
fn in_hundreds(keys: u64, mut write: impl FnMut(Range<u64>) -> Result<()>) -> Result<()> {
    (0..keys.div_ceil(100)).try_for_each(|part| write(part * 100..(part * 100 + 100).min(keys)))
}

fn load_all(keyspace: &Keyspace, keys: u64) -> Result<()> {
    let mut numbers: Vec<u64> = (0..keys).collect();
    numbers.sort_unstable_by_key(|number| key(*number));
    let mut load = keyspace.bulk_load()?;
    numbers.iter().try_for_each(|number| load.put(key(*number), value(*number)))?;
    load.finish()?;
    keyspace.store().settle()
}

fn measure(dir: &Path, variant: &Variant, keys: u64) -> Result<Row> {
    let store = (variant.change)(Store::builder(dir)).open()?;
    let keyspace = store.keyspace_with(SPACE, &(variant.space)())?;
    let start = Instant::now();
    let filled = micros(keys, || (variant.fill)(&keyspace, keys))?;
    let fill_seconds = start.elapsed().as_secs_f64();
    let before = store.stats();
    // Another order than writes had.
    let other = |number: u64| number.wrapping_mul(7_368_787) % keys;
    let present = micros(keys, || {
        (0..keys).try_for_each(|number| keyspace.get(key(other(number))).map(drop))
    })?;
    let absent = micros(keys, || {
        (0..keys).try_for_each(|number| keyspace.get(key(number + (1 << 40))).map(drop))
    })?;
    let after = store.stats();
    let scanned = micros(keys, || {
        let mut entries = keyspace.iter();
        while let Some(entry) = entries.next_ref() {
            entry?;
        }
        Ok(())
    })?;
    let per_key = |now: u64, before: u64| (now - before) as f64 / keys as f64;
    let user_bytes = (keys as usize * (16 + variant.value_bytes)) as f64;
    let stats = keyspace.stats();
    Ok(Row {
        fill_seconds,
        micros: [filled, present, absent, scanned],
        blocks: [
            per_key(after.get_blocks_found, before.get_blocks_found),
            per_key(after.get_blocks_absent, before.get_blocks_absent),
        ],
        table_share: stats.table_bytes as f64 / user_bytes,
        filter_megabytes: stats.filter_bytes as f64 * 1e-6,
    })
}

/// Returns key `number` of 16 bytes. [`SHARING`] keys share the first eight, which are in random
/// order, and the keys of one prefix are written far apart.
fn prefixed_key(number: u64, keys: u64) -> [u8; 16] {
    let prefixes = keys / SHARING;
    let mut key = key(number % prefixes);
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Measures scans of prefixes that keys have, and of prefixes that no key has. Returns a line.
fn measure_prefixes(
    dir: &Path,
    (name, prefix_bytes): (&str, Option<u16>),
    keys: u64,
) -> Result<String> {
    let policy = Some("tiered(ratio=8)".into());
    let memtable_bytes = Some(4 << 20);
    let options =
        KeyspaceOptions { policy, memtable_bytes, prefix_bytes, ..KeyspaceOptions::default() };
    let keyspace = Store::builder(dir).open()?.keyspace_with("prefixed", &options)?;
    let filled = micros(keys, || {
        (0..keys).try_for_each(|number| keyspace.put(prefixed_key(number, keys), value(number)))?;
        keyspace.flush()
    })?;
    let prefixes = keys / SHARING;
    let scan = |first: u64| {
        let before = keyspace.store().stats();
        let micros = micros(prefixes, || {
            (first..first + prefixes).try_for_each(|number| {
                let mut entries = keyspace.prefix(&key(number)[..8]);
                while let Some(entry) = entries.next_ref() {
                    entry?;
                }
                Ok(())
            })
        })?;
        let blocks = keyspace.store().stats().scan_blocks - before.scan_blocks;
        Ok::<_, lsmith::Error>((micros, blocks as f64 / prefixes as f64))
    };
    let (present, present_blocks) = scan(0)?;
    let (absent, absent_blocks) = scan(1 << 40)?;
    let stats = keyspace.stats();
    Ok(format!(
        "| {name} | {} | {filled:.2} | {present:.2} | {absent:.2} | {present_blocks:.2} \
         | {absent_blocks:.3} | {:.2} |",
        stats.runs,
        stats.filter_bytes as f64 * 1e-6
    ))
}

fn in_new_directory<T>(work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let dir = tempfile::tempdir_in(".").map_err(|error| {
        lsmith::Error::new(lsmith::ErrorKind::Io, format!("no directory to work in: {error}"))
    })?;
    work(&dir.path().join("store"))
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let keys = words.first().and_then(|word| word.parse().ok()).unwrap_or(KEYS);
    let wanted = |name: &str| words.len() < 2 || words[1..].iter().any(|word| word == name);
    let mut out = std::io::stdout();
    let mut tell = |line: String| {
        // Nobody to tell if nobody reads it.
        let _gone = writeln!(out, "{line}");
    };
    tell(format!("{keys} keys of 16 bytes, values of {VALUE_BYTES}, CPU us per operation"));
    tell(
        "| option | fill s | fill | get | absent | scan | blocks/get | blocks/absent | bytes \
         | filters MB |"
            .into(),
    );
    tell("|---|---|---|---|---|---|---|---|---|---|".into());
    for variant in VARIANTS.iter().filter(|variant| wanted(variant.name)) {
        let row = in_new_directory(|dir| measure(dir, variant, keys))?;
        let Row { fill_seconds, micros: [fill, get, absent, scan], blocks, .. } = row;
        tell(format!(
            "| {} | {fill_seconds:.2} | {fill:.2} | {get:.2} | {absent:.2} | {scan:.3} | {:.3} | \
             {:.4} | {:.3} | {:.2} |",
            variant.name, blocks[0], blocks[1], row.table_share, row.filter_megabytes
        ));
    }
    let prefixes: Vec<_> = PREFIXES.into_iter().filter(|(name, _)| wanted(name)).collect();
    if !prefixes.is_empty() {
        tell(format!("{keys} keys, {SHARING} of each prefix, CPU us per put and per scan"));
        tell("| option | runs | fill | present | absent | blocks | absent | filters MB |".into());
        tell("|---|---|---|---|---|---|---|---|".into());
    }
    for case in prefixes {
        tell(in_new_directory(|dir| measure_prefixes(dir, case, keys))?);
    }
    Ok(())
}
