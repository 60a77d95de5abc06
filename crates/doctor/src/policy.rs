//! The policy of a column family in our words.

use crate::{Family, cassandra, leveldb, pebble};
use lsmith_spec::{Spec, format_bytes};

/// A policy in RocksDB's words and in ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// The style and its main settings, as in OPTIONS; for LevelDB and Pebble, the sizes that they
    /// go by.
    pub words: String,
    /// The nearest policy of lsmith; `None` if the settings are unknown or have none.
    pub spec: Option<Spec>,
    /// What has no counterpart.
    pub without: Vec<String>,
}

/// Returns the policy of `family`.
#[must_use]
pub fn translate(family: &Family) -> Translated {
    let text = |name: &str| family.settings.get(name).map_or("", String::as_str);
    let number = |name: &str, default: f64| family.number(name).unwrap_or(default);
    let is_on = |name: &str| matches!(text(name), "true" | "1");
    let trigger = number("level0_file_num_compaction_trigger", 4.0).max(1.0);
    let bytes = |value: f64| format_bytes(value.max(1.0) as u64);
    let mut without = Vec::new();
    let (words, spec) = match text("compaction_style") {
        "kCompactionStyleLevel" => {
            let base = number("max_bytes_for_level_base", 268_435_456.0);
            let ratio = number("max_bytes_for_level_multiplier", 10.0);
            let table = number("target_file_size_base", 67_108_864.0);
            let words = format!(
                "level, {trigger} files in level 0, {} in level 1, multiplier {ratio}, files of {}",
                bytes(base),
                bytes(table)
            );
            let spec = Spec::bare("rocksdb").with("l0", trigger);
            let spec = if is_on("level_compaction_dynamic_level_bytes") {
                without.push(
                    "level_compaction_dynamic_level_bytes: the sizes of the levels are those \
                     that follow from the tree now"
                        .to_owned(),
                );
                spec.with("sizes", dynamic_sizes(family, base, ratio))
            } else {
                spec.with("level1", bytes(base)).with("ratio", ratio.max(1.001))
            };
            let pick = text("compaction_pri");
            without.push(format!("compaction_pri={pick}: `rocksdb` takes any table down"));
            (words, Some(spec.with("table", bytes(table))))
        }
        leveldb::STYLE => of_leveldb(family),
        pebble::STYLE => of_pebble(family),
        "kCompactionStyleUniversal" => of_universal(family, trigger),
        "kCompactionStyleFIFO" => {
            let most = number("compaction_options_fifo.max_table_files_size", 0.0);
            (format!("FIFO, {}", bytes(most)), Some(Spec::bare("fifo").with("bytes", bytes(most))))
        }
        "kCompactionStyleNone" => ("none".to_owned(), Some(Spec::bare("none"))),
        strategy if strategy.ends_with("Strategy") => of_cassandra(family, strategy),
        _ => ("unknown: neither OPTIONS nor the LOG has its settings".to_owned(), None),
    };
    if text("disable_auto_compactions") == "true" {
        without.push("disable_auto_compactions: nothing merges by itself".to_owned());
    }
    if is_on("enable_blob_files") {
        without.push(format!("enable_blob_files={}", text("enable_blob_files")));
    }
    // Thirty days, and a number that stands for a default, are what RocksDB takes itself.
    for name in ["ttl", "periodic_compaction_seconds"] {
        if family.number(name).is_some_and(|value| value > 0.0 && value < 2_592_000.0) {
            without.push(format!("{name}={}", text(name)));
        }
    }
    Translated { words, spec, without }
}

/// Returns the settings of RocksDB's universal style in words, and the nearest policy of lsmith.
fn of_universal(family: &Family, trigger: f64) -> (String, Option<Spec>) {
    let of = |name: &str, default| {
        family.number(&format!("compaction_options_universal.{name}")).unwrap_or(default)
    };
    let (ratio, space) = (of("size_ratio", 1.0), of("max_size_amplification_percent", 200.0));
    let words = format!("universal, {trigger} runs, size ratio {ratio} %, space {space} %");
    let spec = Spec::bare("universal").with("trigger", trigger.max(2.0));
    let spec = spec.with("size_ratio", ratio).with("space_max", space);
    if is_incremental(family) {
        return (format!("{words}, incremental"), Some(spec.with("incremental", true)));
    }
    (words, Some(spec))
}

/// Returns true if RocksDB's universal style merges windows of keys for the sake of space.
pub(crate) fn is_incremental(family: &Family) -> bool {
    let value = family.settings.get("compaction_options_universal.incremental");
    value.is_some_and(|value| value == "true" || value == "1")
}

/// Returns a strategy of Cassandra in words, and the nearest policy of lsmith to its defaults.
fn of_cassandra(family: &Family, strategy: &str) -> (String, Option<Spec>) {
    let spec = match strategy {
        cassandra::SIZE_TIERED => Some(Spec::bare("tiered").with("ratio", 4)),
        cassandra::LEVELED => {
            let table = cassandra::table_bytes(family);
            let spec = Spec::bare("leveldb").with("l0", 2);
            let spec = spec.with("level1", format_bytes(10 * table)).with("ratio", 10);
            Some(spec.with("table", format_bytes(table)))
        }
        cassandra::UNIFIED => Some(Spec::bare("ucs").with("w", "T4")),
        _ => None,
    };
    (format!("{strategy}, whose settings are in the schema alone"), spec)
}

/// Returns the sizes that LevelDB goes by in words, and the nearest policy of lsmith.
fn of_leveldb(family: &Family) -> (String, Option<Spec>) {
    let number = |name: &str| family.number(name).unwrap_or(0.0);
    let bytes = |name: &str| format_bytes(number(name) as u64);
    let trigger = number("level0_file_num_compaction_trigger");
    let ratio = number("max_bytes_for_level_multiplier");
    let (base, table) = (bytes("max_bytes_for_level_base"), bytes("target_file_size_base"));
    let words = format!(
        "level, {trigger} files in level 0, {base} in level 1, multiplier {ratio} (constants of \
         LevelDB), files of {table} (by what compactions wrote)"
    );
    let spec = Spec::bare("leveldb").with("l0", trigger).with("level1", base);
    (words, Some(spec.with("ratio", ratio).with("table", table)))
}

/// Returns the sizes that Pebble goes by in words, and the nearest policy of lsmith.
fn of_pebble(family: &Family) -> (String, Option<Spec>) {
    let number = |name: &str| family.number(name).unwrap_or(0.0);
    let trigger = number("level0_file_num_compaction_trigger");
    let base = number("max_bytes_for_level_base");
    let ratio = number("max_bytes_for_level_multiplier");
    let table = format_bytes(number("target_file_size_base") as u64);
    let words = format!(
        "level, {trigger} sublevels in level 0, {} in the first level, multiplier {ratio}, files \
         of {table}",
        format_bytes(base as u64)
    );
    let spec = Spec::bare("rocksdb").with("l0", trigger);
    (words, Some(spec.with("sizes", dynamic_sizes(family, base, ratio)).with("table", table)))
}

/// Returns the sizes of levels between level 0 and the last one, as RocksDB derives them from the
/// bytes of the last level.
fn dynamic_sizes(family: &Family, base: f64, ratio: f64) -> String {
    let last = family.files.iter().map(|file| file.level).max().unwrap_or(0);
    let held = family.files.iter().filter(|file| file.level == last && last > 0);
    let mut target = held.map(|file| file.bytes).sum::<u64>() as f64 / ratio.max(1.001);
    let mut sizes = Vec::new();
    // A level is in use while the one below it may hold more than the base.
    while target * ratio > base && sizes.len() < 60 {
        sizes.push(format_bytes(target.max(1.0) as u64));
        target /= ratio.max(1.001);
    }
    sizes.reverse();
    if sizes.is_empty() { "none".to_owned() } else { sizes.join(":") }
}
