//! What options cost: the same work on stores that differ in one option, as a table.
//!
//! `cargo bench -p lsmith --bench options -- [KEYS [NAME..]]`. CPU time is that of the whole
//! process, merging threads included, until merges have come to rest.

use lsmith::{Builder, DEFAULT_KEYSPACE, Keyspace, Result, Store};
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::Path;

/// Keys if nothing else is said.
const KEYS: u64 = 500_000;

const VALUE_BYTES: usize = 100;

/// A name, and what it changes.
type Variant = (&'static str, fn(Builder) -> Builder);

const VARIANTS: &[Variant] = &[
    ("default", |builder| builder),
    ("compression lz4", |builder| builder.compression("lz4")),
    ("compression zstd(level=1)", |builder| builder.compression("zstd(level=1)")),
    ("compression zstd", |builder| builder.compression("zstd")),
    ("compression zstd(level=9)", |builder| builder.compression("zstd(level=9)")),
    ("filter_bits 0", |builder| builder.filter_bits(0)),
    ("filter_bits 5", |builder| builder.filter_bits(5)),
    ("filter_bits 16", |builder| builder.filter_bits(16)),
    ("filters_by_size false", |builder| builder.filters_by_size(false)),
    ("block_bytes 1024", |builder| builder.block_bytes(1024)),
    ("block_bytes 16384", |builder| builder.block_bytes(16 << 10)),
    ("cache_bytes 0", |builder| builder.cache_bytes(0)),
    ("cache_bytes 1 GiB", |builder| builder.cache_bytes(1 << 30)),
    ("memory_bytes 64 MiB", |builder| builder.memory_bytes(64 << 20)),
    ("histograms", |builder| builder.histograms(true)),
    ("bulk_load", |builder| builder),
];

/// What a variant came to.
struct Row {
    name: &'static str,
    /// CPU microseconds per operation: fill, lookups of present keys, of absent keys, scan.
    micros: [f64; 4],
    /// Blocks read for a present key, and for an absent key.
    blocks: [f64; 2],
    /// Bytes in tables for each byte of keys and values.
    table_share: f64,
    /// Megabytes of filters.
    filter_megabytes: f64,
}

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

/// Key `number`, in random order.
fn key(number: u64) -> [u8; 16] {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&scattered.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A value of which half is random, so that it compresses about as data of users does.
fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [b'.'; VALUE_BYTES];
    let mut state = number + 1;
    for byte in &mut value[..VALUE_BYTES / 2] {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        *byte = (state >> 56) as u8;
    }
    value
}

fn fill(keyspace: &Keyspace, keys: u64, in_bulk: bool) -> Result<()> {
    if !in_bulk {
        (0..keys).try_for_each(|number| keyspace.put(key(number), value(number)))?;
        return keyspace.flush();
    }
    let mut numbers: Vec<u64> = (0..keys).collect();
    numbers.sort_unstable_by_key(|number| key(*number));
    let mut load = keyspace.bulk_load()?;
    numbers.iter().try_for_each(|number| load.put(key(*number), value(*number)))?;
    load.finish()?;
    keyspace.store().settle()
}

fn measure(dir: &Path, (name, change): Variant, keys: u64) -> Result<Row> {
    let store = change(Store::builder(dir)).open()?;
    let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
    let filled = micros(keys, || fill(&keyspace, keys, name == "bulk_load"))?;
    let before = store.stats();
    // Another order than that of writing.
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
    let user_bytes = (keys as usize * (16 + VALUE_BYTES)) as f64;
    let stats = keyspace.stats();
    Ok(Row {
        name,
        micros: [filled, present, absent, scanned],
        blocks: [
            per_key(after.get_blocks_read_found, before.get_blocks_read_found),
            per_key(after.get_blocks_read_absent, before.get_blocks_read_absent),
        ],
        table_share: stats.table_bytes as f64 / user_bytes,
        filter_megabytes: stats.filter_bytes as f64 * 1e-6,
    })
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
        "| option | fill | get | absent | scan | blocks/get | blocks/absent | bytes | filters MB |"
            .into(),
    );
    tell("|---|---|---|---|---|---|---|---|---|".into());
    for variant in VARIANTS.iter().filter(|(name, _)| wanted(name)) {
        let dir = tempfile::tempdir_in(".").map_err(|error| {
            lsmith::Error::new(lsmith::ErrorKind::Io, format!("no directory to work in: {error}"))
        })?;
        let Row { name, micros: [fill, get, absent, scan], blocks, table_share, filter_megabytes } =
            measure(&dir.path().join("store"), *variant, keys)?;
        tell(format!(
            "| {name} | {fill:.2} | {get:.2} | {absent:.2} | {scan:.3} | {:.3} | {:.4} | \
             {table_share:.3} | {filter_megabytes:.2} |",
            blocks[0], blocks[1]
        ));
    }
    Ok(())
}
