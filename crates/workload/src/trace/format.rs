//! The formats of traces, and how one is told from its name and its first bytes.

use super::rocksdb::{HEAD_BYTES, MAGIC};

/// Who wrote a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text(TextFormat),
    Binary(BinaryFormat),
    /// No history but a spec of Tectonic, from which one is drawn.
    Tectonic,
}

/// A format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFormat {
    /// Ours.
    Lsmith,
    /// What a store of ours has recorded.
    Recording,
    /// The cache traces of Twitter: <https://github.com/twitter/cache-trace>.
    Twitter,
    /// Traces of Meta's CacheLib, as its `KVReplayGenerator` reads them.
    CacheLib,
    /// Block traces of MSR Cambridge, as SNIA publishes them.
    Msr,
    /// Text of libCacheSim, as its `tracePrint` writes it.
    LibCacheSim,
    /// Queries of RocksDB, as `trace_analyzer --convert_to_human_readable_trace` writes them.
    RocksDb,
    /// What YCSB's binding `basic` prints: `BasicDB.java`.
    Ycsb,
}

/// A format of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryFormat {
    /// Requests of libCacheSim: `oracleGeneralBin.h`.
    OracleGeneral,
    /// Queries of RocksDB, as `DB::StartTrace` writes them: `trace_replay.h`.
    RocksDb,
}

impl Format {
    /// All formats, by name.
    pub(super) const ALL: [(&str, Format); 11] = [
        ("lsmith", Format::Text(TextFormat::Lsmith)),
        ("recording", Format::Text(TextFormat::Recording)),
        ("twitter", Format::Text(TextFormat::Twitter)),
        ("cachelib", Format::Text(TextFormat::CacheLib)),
        ("msr", Format::Text(TextFormat::Msr)),
        ("libcachesim", Format::Text(TextFormat::LibCacheSim)),
        ("oracle_general", Format::Binary(BinaryFormat::OracleGeneral)),
        ("rocksdb", Format::Binary(BinaryFormat::RocksDb)),
        ("rocksdb_text", Format::Text(TextFormat::RocksDb)),
        ("ycsb", Format::Text(TextFormat::Ycsb)),
        ("tectonic", Format::Tectonic),
    ];
}

impl BinaryFormat {
    /// Returns the format of a file, by its name and first bytes; `None` if it may be text.
    pub(super) fn of(file: &str, start: &[u8]) -> Option<BinaryFormat> {
        // The header of RocksDB's starts with a time, a kind and a length.
        let header = start.get(HEAD_BYTES..).unwrap_or_default();
        if header.starts_with(MAGIC) {
            return Some(BinaryFormat::RocksDb);
        }
        let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
        let is_oracle = name.contains("oraclegeneral") && !name.contains(".csv");
        is_oracle.then_some(BinaryFormat::OracleGeneral)
    }
}
