//! Names of other systems, and what they are here.

use lsmith_spec::SpecError;

/// A strategy or an option of other systems, and what it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The systems that have it.
    pub systems: &'static str,
    /// Its names, long and short. Upper and lower case count as equal.
    pub names: &'static [&'static str],
    /// The specs that come nearest to it. `N` stands for the value of an option.
    pub here: &'static [&'static str],
}

const fn row(
    systems: &'static str,
    names: &'static [&'static str],
    here: &'static [&'static str],
) -> Elsewhere {
    Elsewhere { systems, names, here }
}

impl Elsewhere {
    /// All names that are known, as `docs/names-elsewhere.md` lists them.
    pub const ALL: &[Elsewhere] = &[
        row(
            "Cassandra and Scylla",
            &["SizeTieredCompactionStrategy", "STCS"],
            &["tiered(ratio=4)"],
        ),
        row("Cassandra and Scylla", &["LeveledCompactionStrategy", "LCS"], &["leveled(ratio=10)"]),
        row("Cassandra and Scylla", &["TimeWindowCompactionStrategy", "TWCS"], &["fifo"]),
        row("Cassandra and Scylla", &["DateTieredCompactionStrategy", "DTCS"], &["fifo"]),
        row("Cassandra", &["UnifiedCompactionStrategy", "UCS"], &["ucs(w=T4)"]),
        row("Cassandra", &["scaling_parameters"], &["ucs(w=N)"]),
        row("DataStax", &["adaptive"], &["ucs(w=adaptive)"]),
        row("Scylla", &["IncrementalCompactionStrategy", "ICS"], &["tiered(ratio=4)", "ics"]),
        row("Scylla", &["cumulative_bucket_threshold"], &["ics(threshold=N)"]),
        row("Scylla", &["space_amplification_goal"], &["ics(goal=N)"]),
        row("Cassandra and Scylla", &["min_threshold"], &["tiered(ratio=N)"]),
        row("Cassandra", &["fanout_size"], &["leveled(ratio=N)"]),
        row("Cassandra and Scylla", &["sstable_size_in_mb"], &["leveled(table=NMiB)"]),
        row("HBase", &["ExploringCompactionPolicy"], &["exploring"]),
        row("HBase", &["RatioBasedCompactionPolicy"], &["exploring"]),
        row("HBase", &["FIFOCompactionPolicy", "DateTieredCompactionPolicy"], &["fifo"]),
        row("HBase", &["hbase.hstore.compaction.ratio"], &["exploring(lambda=N)"]),
        row(
            "HBase",
            &["hbase.hstore.compaction.min", "hbase.hstore.compactionThreshold"],
            &["exploring(min=N)"],
        ),
        row("HBase", &["hbase.hstore.compaction.max"], &["exploring(max=N)"]),
        row("HBase", &["hbase.hstore.compaction.max.size"], &["exploring(largest=N)"]),
        row("HBase", &["hbase.hstore.blockingStoreFiles"], &["exploring(k=N)"]),
        row("HBase", &["StripeCompactionPolicy", "StripeStoreEngine"], &["hbase_stripe"]),
        row("HBase", &["hbase.store.stripe.compaction.minFilesL0"], &["hbase_stripe(l0=N)"]),
        row("HBase", &["hbase.store.stripe.sizeToSplit"], &["hbase_stripe(split_size=NB)"]),
        row("HBase", &["hbase.store.stripe.compaction.minFiles"], &["hbase_stripe(min=N)"]),
        row("HBase", &["hbase.store.stripe.compaction.maxFiles"], &["hbase_stripe(max=N)"]),
        row("Lucene", &["TieredMergePolicy"], &["lucene_tiered"]),
        row("Lucene", &["segmentsPerTier", "segments_per_tier"], &["lucene_tiered(tier=N)"]),
        row("Lucene", &["maxMergeAtOnce", "max_merge_at_once"], &["lucene_tiered(at_once=N)"]),
        row("Lucene", &["floorSegmentMB", "floor_segment"], &["lucene_tiered(floor=NMiB)"]),
        row(
            "Lucene",
            &["maxMergedSegmentMB", "max_merged_segment"],
            &["lucene_tiered(largest=NMiB)"],
        ),
        row("TidesDB", &["level_size_ratio"], &["spooky(ratio=N)"]),
        row("TidesDB", &["l1_file_count_trigger"], &["spooky(l0=N)"]),
        row("ClickHouse", &["SimpleMergeSelector"], &["clickhouse"]),
        row("ClickHouse", &["merge_selector_base"], &["clickhouse(base=N)"]),
        row("ClickHouse", &["max_bytes_to_merge_at_max_space_in_pool"], &["clickhouse(largest=N)"]),
        row("RocksDB", &["kCompactionStyleLevel"], &["leveled(ratio=10, l0=4, pick=best_ratio)"]),
        row("RocksDB", &["kCompactionStyleUniversal"], &["universal(trigger=4)"]),
        row("RocksDB", &["kCompactionStyleFIFO"], &["fifo"]),
        row("RocksDB", &["kCompactionStyleNone"], &["none"]),
        row(
            "RocksDB",
            &["level0_file_num_compaction_trigger"],
            &["leveled(l0=N)", "universal(trigger=N)"],
        ),
        row("RocksDB", &["max_bytes_for_level_multiplier"], &["leveled(ratio=N)"]),
        row("RocksDB", &["max_bytes_for_level_base"], &["rocksdb(level1=N)"]),
        row("RocksDB", &["target_file_size_base"], &["leveled(table=N)"]),
        row("RocksDB", &["kMinOverlappingRatio"], &["leveled(pick=best_ratio)"]),
        row("RocksDB", &["kRoundRobin"], &["leveled(pick=round_robin)"]),
        row("RocksDB", &["kOldestSmallestSeqFirst"], &["leveled(pick=oldest_smallest)"]),
        row("RocksDB", &["kOldestLargestSeqFirst"], &["leveled(pick=oldest)"]),
        row("RocksDB", &["kByCompensatedSize"], &["leveled(pick=largest)"]),
        row("RocksDB", &["level_compaction_dynamic_level_bytes"], &["leveled(sizes=dynamic)"]),
        row("RocksDB", &["max_size_amplification_percent"], &["universal(space_max=N)"]),
        row(
            "RocksDB",
            &["incremental", "compaction_options_universal.incremental"],
            &["universal(incremental=true)"],
        ),
        row("RocksDB", &["max_table_files_size"], &["fifo(bytes=N)"]),
    ];

    /// Returns the row of `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Elsewhere> {
        let is = |known: &&str| known.eq_ignore_ascii_case(name);
        Self::ALL.iter().find(|row| row.names.iter().any(is))
    }

    /// Returns what comes nearest here if the option has `value`, as text for people.
    fn with(&self, value: Option<&str>) -> String {
        let value = value.unwrap_or("N");
        // A value with a unit of its own takes the place of the unit too.
        let has_unit = value.len() > 1 && value.ends_with(|last: char| last.is_alphabetic());
        let number = if has_unit { "NMiB" } else { "N" };
        let told = |spec: &str| spec.replace(number, value).replace('N', value);
        let specs = self.here.iter().map(|spec| format!("`{}`", told(spec)));
        specs.collect::<Vec<_>>().join(" or ")
    }
}

/// Returns `error`, which `text` has caused where a spec of a policy was expected. If it is due to
/// a name of another system, returns the error that says what that is here.
#[must_use]
pub fn translated(text: &str, error: SpecError) -> SpecError {
    // The name at fault: of a parameter, or of the policy.
    let name = match &error {
        SpecError::Unknown { found, .. } => found.clone(),
        SpecError::Syntax { at, .. } => word_at(text, *at).to_owned(),
        _ => return error,
    };
    let Some(row) = Elsewhere::find(&name) else { return error };
    let value = text.split_once(name.as_str()).and_then(|(_, behind)| {
        let behind = behind.trim_start().strip_prefix('=')?.trim_start();
        let value = behind.split([',', ')', ';', ' ']).next().unwrap_or("");
        (!value.is_empty()).then_some(value)
    });
    SpecError::Elsewhere { found: name, systems: row.systems.to_owned(), here: row.with(value) }
}

/// Returns the word of `text` around byte `at`, or in front of it.
fn word_at(text: &str, at: usize) -> &str {
    let is_end = |letter: char| !letter.is_ascii_alphanumeric() && !"._-".contains(letter);
    let before = text.get(..at).unwrap_or_default().trim_end();
    let start = before.rfind(is_end).map_or(0, |end| end + 1);
    text.get(start..).and_then(|rest| rest.split(is_end).next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    fn said(spec: &str) -> String {
        Registry::builtin().build(spec).expect_err(spec).to_string()
    }

    #[test]
    fn names_of_other_systems_say_what_they_are_here() {
        for (spec, here) in [
            ("STCS", "`STCS` is a name of Cassandra and Scylla; nearest here is `tiered(ratio=4)`"),
            ("stcs(min_threshold=4)", "nearest here is `tiered(ratio=4)`"),
            ("SizeTieredCompactionStrategy", "nearest here is `tiered(ratio=4)`"),
            ("lcs", "nearest here is `leveled(ratio=10)`"),
            ("UCS", "nearest here is `ucs(w=T4)`"),
            ("ucs(scaling_parameters=L10)", "of Cassandra; nearest here is `ucs(w=L10)`"),
            ("TieredMergePolicy", "of Lucene; nearest here is `lucene_tiered`"),
            ("hbase.hstore.compaction.max.size=10GB", "nearest here is `exploring(largest=10GB)`"),
            ("hbase.hstore.compaction.max=10", "nearest here is `exploring(max=10)`"),
            ("max_merged_segment=5GB", "nearest here is `lucene_tiered(largest=5GB)`"),
            (
                "level0_file_num_compaction_trigger=8",
                "is a name of RocksDB; nearest here is `leveled(l0=8)` or `universal(trigger=8)`",
            ),
            (
                "leveled(l0=2, target_file_size_base = 4MiB)",
                "nearest here is `leveled(table=4MiB)`",
            ),
            ("hbase.hstore.compaction.ratio=1.4", "HBase; nearest here is `exploring(lambda=1.4)`"),
            ("leveled(pick=kMinOverlappingRatio)", "nearest here is `leveled(pick=best_ratio)`"),
            ("sstable_size_in_mb=160", "nearest here is `leveled(table=160MiB)`"),
            ("sstable_size_in_mb=1GiB", "nearest here is `leveled(table=1GiB)`"),
            ("fanout_size", "nearest here is `leveled(ratio=N)`"),
        ] {
            let said = said(spec);
            assert!(said.ends_with(here), "{spec}: {said}");
        }
        assert_eq!(said("tierd"), "unknown policy `tierd`; did you mean `tiered`?");
        assert!(said("tiered(").starts_with("at byte"));
        let list = "none; fanout_size=7";
        let error = lsmith_spec::Spec::parse_list(list).expect_err("no list of specs");
        assert!(translated(list, error).to_string().ends_with("is `leveled(ratio=7)`"));
    }

    #[test]
    fn what_is_here_can_be_built() {
        let registry = Registry::builtin();
        for row in Elsewhere::ALL {
            for spec in row.here {
                // A value that every option takes: a number of bytes needs its unit.
                let spec = ["16MiB", "16", "4"].map(|value| spec.replace('N', value));
                assert!(spec.iter().any(|spec| registry.build(spec).is_ok()), "{spec:?}");
            }
            for name in row.names {
                let known = registry.infos().iter().any(|info| info.name == *name);
                assert!(!known, "{name} is a policy here");
            }
        }
    }

    #[test]
    fn the_page_has_each_name() {
        let page = include_str!("../../../docs/names-elsewhere.md");
        let listed = |texts: &[&str], separator: &str| {
            texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(separator)
        };
        for row in Elsewhere::ALL {
            let (names, here) = (listed(row.names, ", "), listed(row.here, " or "));
            let line = format!("| {} | {names} | {here} |", row.systems);
            assert!(page.lines().any(|found| found == line), "the page lacks: {line}");
        }
    }
}
