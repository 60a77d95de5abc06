//! The policies that flushes are played under.

use super::flushes::Flushes;
use crate::cassandra::{self, Leveled, SizeTiered};
use crate::rocks::{Level, Pri, Universal};
use crate::{Family, leveldb, pebble, translate};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::format_bytes;
use std::sync::Arc;

/// The store of lsmith's policies, as reports name it.
const LSMITH: &str = "lsmith";

/// Policies of lsmith that are played. The nearest one is played too.
const OURS: [&str; 6] = [
    "leveled(ratio=4, pick=best_ratio)",
    "leveled(ratio=10, pick=best_ratio)",
    "tiered(ratio=4)",
    "minlatency(k=4)",
    "minlatency(k=8)",
    "binomial(k=8)",
];

/// `max_bytes_for_level_multiplier` of the rows.
const MULTIPLIERS: [f64; 3] = [4.0, 8.0, 12.0];

/// `level0_file_num_compaction_trigger` of universal rows: below the 20 files in level 0 at which
/// RocksDB slows writers down by default.
const TRIGGERS: [u64; 3] = [4, 8, 12];

/// A policy to play.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) store: &'static str,
    pub(crate) name: String,
    /// Names and values in OPTIONS. None for policies of lsmith.
    pub(crate) options: Vec<(&'static str, String)>,
    pub(crate) policy: Arc<dyn MergePolicy>,
    pub(crate) is_nearest: bool,
    /// True for policies of lsmith that look at each table to pick one.
    pub(crate) is_slow: bool,
}

/// What the settings of now are, and what else is played.
pub(crate) struct Present {
    /// The policy of now.
    pub(crate) now: Candidate,
    /// Other settings of the store, or of RocksDB.
    others: Vec<Candidate>,
    nearest: Option<String>,
}

impl Present {
    /// Reads the settings of `family`; `None` if the compaction style is unknown. `major` is the
    /// version of RocksDB.
    pub(crate) fn of(family: &Family, major: u64, flushes: &Flushes) -> Option<Present> {
        let mut level = level(family, major, flushes);
        let style = family.settings.get("compaction_style")?.as_str();
        let nearest = translate(family).spec.map(|spec| spec.to_string());
        if style.ends_with("Strategy") {
            let mut others = of_cassandra(cassandra::table_bytes(family), flushes.bytes_mean());
            let at = others.iter().position(|other| other.options[0].1 == style)?;
            let now = others.remove(at);
            return Some(Present { now, others, nearest });
        }
        if !["kCompactionStyleLevel", leveldb::STYLE, pebble::STYLE].contains(&style) {
            // Level 1 as large as level 0, as RocksDB advises.
            let bytes = level.trigger as f64 * flushes.bytes_mean();
            level.base_bytes = (bytes / 1e5).ceil() * 1e5;
        }
        // From so many files in level 0 on, RocksDB slows writers down.
        let slowdown = family.number("level0_slowdown_writes_trigger").unwrap_or(20.0) as u64;
        let universal = universal(family, flushes);
        let now = match style {
            "kCompactionStyleLevel" => leveled(level.clone()),
            "kCompactionStyleUniversal" => tiered(universal),
            leveldb::STYLE => {
                let name = leveled(level.clone()).name;
                let policy = Arc::new(leveldb::Picker::new(level.clone()));
                Candidate { store: "LevelDB", ..Candidate::ours(&name, policy) }
            }
            pebble::STYLE => {
                let name = leveled(level.clone()).name;
                let table_bytes = pebble::table_bytes(&family.settings);
                let tables = family.flushes().map(|job| job.outputs.len()).sum::<usize>() as f64;
                let parts = (tables / family.flushes().count().max(1) as f64).round();
                let picker = pebble::Picker::new(level.clone(), table_bytes, parts as usize);
                Candidate { store: "Pebble", ..Candidate::ours(&name, Arc::new(picker)) }
            }
            _ => {
                let policy = Registry::builtin().build(nearest.as_deref()?).ok()?;
                Candidate { store: "RocksDB", ..Candidate::ours(style, policy) }
            }
        };
        let others = of_rocksdb(&level, universal, slowdown);
        Some(Present { now, others, nearest })
    }

    /// Returns the policies to play: the one of now first, then other settings, then policies of
    /// lsmith.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let mut all = vec![self.now.clone()];
        all.extend(self.others.iter().cloned());
        let nearest = self.nearest.iter().map(String::as_str);
        let registry = Registry::builtin();
        for spec in nearest.chain(OURS) {
            all.extend(registry.build(spec).ok().map(|policy| {
                let is_nearest = self.nearest.as_deref() == Some(spec);
                let is_slow = spec.contains("pick=");
                Candidate { is_nearest, is_slow, ..Candidate::ours(spec, policy) }
            }));
        }
        let mut names = std::collections::BTreeSet::new();
        all.retain(|candidate| names.insert((candidate.store, candidate.name.clone())));
        all
    }
}

/// Returns settings of RocksDB, around `level` and `universal`.
fn of_rocksdb(level: &Level, universal: Universal, slowdown: u64) -> Vec<Candidate> {
    let mut all = Vec::new();
    for times in [1_u32, 2] {
        let base_bytes = level.base_bytes * f64::from(times);
        let trigger = level.trigger.saturating_mul(u64::from(times));
        let level = Level { trigger, base_bytes, ..level.clone() };
        let ratios = MULTIPLIERS.iter().filter(|_| trigger < slowdown);
        all.extend(ratios.map(|ratio| leveled(Level { ratio: *ratio, ..level.clone() })));
    }
    let triggers = TRIGGERS.into_iter().filter(|trigger| *trigger < slowdown);
    all.extend(triggers.map(|trigger| tiered(Universal { trigger, ..universal })));
    all
}

/// Returns strategies of Cassandra, each with its defaults first. Leveled SSTables have
/// `table_bytes`. A flush has `flush_bytes`.
fn of_cassandra(table_bytes: u64, flush_bytes: f64) -> Vec<Candidate> {
    type Options<'a> = &'a [(&'static str, &'a str)];
    let row = |name: &str, class: &str, options: Options<'_>, policy: Arc<dyn MergePolicy>| {
        let options = std::iter::once(("class", class)).chain(options.iter().copied());
        let options = options.map(|(name, value)| (name, value.to_owned())).collect();
        Candidate { store: "Cassandra", options, ..Candidate::ours(name, policy) }
    };
    let size_tiered = |least: usize, small: u64| {
        let policy = SizeTiered { tables: (least, 32), small_bytes: small };
        let name = format!("size-tiered, {least} tables, small below {}", format_bytes(small));
        let (least, small) = (least.to_string(), small.to_string());
        let options = [("min_threshold", &*least), ("min_sstable_size", &*small)];
        row(&name, cassandra::SIZE_TIERED, &options, Arc::new(policy))
    };
    // By default tables below 50 MiB are merged as one size. Below half a flush there are none.
    let default = SizeTiered::default().small_bytes;
    let none = ((flush_bytes / 2.0) as u64).next_power_of_two().clamp(1 << 10, default);
    let mut all: Vec<Candidate> = [(4, default), (8, default), (4, none), (8, none)]
        .map(|(least, small)| size_tiered(least, small))
        .into();
    let mebibytes = (table_bytes >> 20).to_string();
    let name = format!("leveled, {mebibytes} MiB");
    let options = [(cassandra::TABLE_SIZE, &*mebibytes)];
    let policy = Arc::new(Leveled::new(table_bytes));
    all.push(Candidate { is_slow: true, ..row(&name, cassandra::LEVELED, &options, policy) });
    let registry = Registry::builtin();
    for scale in ["T4", "T8", "N", "L4", "L10"] {
        let (name, options) = (format!("unified, {scale}"), [("scaling_parameters", scale)]);
        let policy = registry.build(&format!("ucs(w={scale})")).ok();
        all.extend(policy.map(|policy| row(&name, cassandra::UNIFIED, &options, policy)));
    }
    all
}

impl Candidate {
    /// Returns true for a policy of lsmith.
    pub(crate) fn is_ours(&self) -> bool {
        self.store == LSMITH
    }

    pub(crate) fn ours(name: &str, policy: Arc<dyn MergePolicy>) -> Candidate {
        let (store, name) = (LSMITH, name.to_owned());
        Candidate { store, name, options: Vec::new(), policy, is_nearest: false, is_slow: false }
    }
}

fn leveled(level: Level) -> Candidate {
    let base = level.base_bytes as u64;
    let name = format!("level, {} files, {}, x{}", level.trigger, format_bytes(base), level.ratio);
    let options = vec![
        ("compaction_style", "kCompactionStyleLevel".to_owned()),
        ("level0_file_num_compaction_trigger", level.trigger.to_string()),
        ("max_bytes_for_level_base", base.to_string()),
        ("max_bytes_for_level_multiplier", level.ratio.to_string()),
    ];
    let policy = Arc::new(level);
    Candidate { store: "RocksDB", name, options, policy, is_nearest: false, is_slow: false }
}

fn tiered(universal: Universal) -> Candidate {
    let Universal { trigger, size_ratio, space_max, .. } = universal;
    let name = format!("universal, {trigger} runs, {size_ratio} %, space {space_max} %");
    let inner = format!("size_ratio={size_ratio};max_size_amplification_percent={space_max}");
    let options = vec![
        ("compaction_style", "kCompactionStyleUniversal".to_owned()),
        ("level0_file_num_compaction_trigger", trigger.to_string()),
        ("compaction_options_universal", format!("{{{inner}}}")),
    ];
    let policy = Arc::new(universal);
    Candidate { store: "RocksDB", name, options, policy, is_nearest: false, is_slow: false }
}

fn level(family: &Family, major: u64, flushes: &Flushes) -> Level {
    let number = |name: &str, default: f64| family.number(name).unwrap_or(default);
    let is_on = |name: &str, default: bool| match family.settings.get(name) {
        Some(value) => value == "true" || value == "1",
        None => default,
    };
    let table_bytes = number("target_file_size_base", 67_108_864.0).max(1.0);
    // An option of 7.8 and 8, and always on since 9. Tables move together since 7.8 too.
    let is_new = major >= 9 || family.settings.contains_key("level_compaction_dynamic_file_size");
    Level {
        trigger: number("level0_file_num_compaction_trigger", 4.0).max(1.0) as u64,
        base_bytes: number("max_bytes_for_level_base", 268_435_456.0).max(1.0),
        ratio: number("max_bytes_for_level_multiplier", 10.0).max(1.001),
        table_bytes: table_bytes as u64,
        compaction_bytes: number("max_compaction_bytes", 25.0 * table_bytes) as u64,
        is_dynamic: is_on("level_compaction_dynamic_level_bytes", false),
        aligns: is_on("level_compaction_dynamic_file_size", is_new),
        moves_max: if is_new { 4 } else { 1 },
        pri: Pri::read(family.settings.get("compaction_pri").map_or("", String::as_str)),
        takes_within: true,
        value_bytes: flushes.value_bytes * flushes.scale,
    }
}

fn universal(family: &Family, flushes: &Flushes) -> Universal {
    let of = |name: &str, default| {
        family.number(&format!("compaction_options_universal.{name}")).unwrap_or(default)
    };
    let trigger = family.number("level0_file_num_compaction_trigger").unwrap_or(4.0);
    let width = |name: &str, default| of(name, default).max(2.0) as u64;
    Universal {
        trigger: trigger.max(2.0) as u64,
        size_ratio: of("size_ratio", 1.0),
        space_max: of("max_size_amplification_percent", 200.0),
        widths: (width("min_merge_width", 2.0), width("max_merge_width", 4e9)),
        value_bytes: flushes.value_bytes * flushes.scale,
    }
}
