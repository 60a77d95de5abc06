//! The registry of all figures.

use crate::FigureInfo;
use crate::Takes::{Any, InBlocks, Nothing};
use crate::{
    advice, ahead, frontier, jungle, jungle_fig6, jungle_nodes, jungle_reads, jungle_tuned, lsmtk,
    mao, msls, named, optimum, parts, priced, thonangi, time, updates,
};
use lsmith_spec::SpecError;

/// Why figures take no policy of a caller.
const ADVICE: &str = "it checks what `tune` advises, and `tune --policy` tries a policy of yours";
const OF_COUNTS: &str = "it compares two ways in which one policy counts flushes";
const OF_FORMULAS: &str = "its costs are by formula, and a policy of yours has none";
const OF_JUNGLE: &str = "it is of what Jungle does over its threshold";
const OF_KEYS: &str = "it counts keys, whatever the policy";
const OF_LEVELDB: &str = "it is of designs of LevelDB, each by formula too";
const OF_MIXED: &str = "it is over the threshold of `mixed`";
const OF_NAMED: &str = "it holds policies of other systems against figures of these systems";
const OF_ONE_LEVEL: &str = "it is of one level that is swept in turn";
const OF_OPTIMA: &str = "it is of optima, whatever the policy";
const OF_PICKS: &str = "it is of one design, with two ways to choose the table that goes down";
const OF_READS: &str = "it is of the one policy that prices runs by reads";
const OF_RR: &str = "it is of levels under `rr` alone";
const OF_TIME: &str = "it is of the policies of lsmith, and `compare --free` takes yours";

/// All figures, by paper and number. A figure is what measures it, and its title, one line.
#[rustfmt::skip]
pub const FIGURES: &[FigureInfo] = &[
    FigureInfo::new("advice", advice::measure, Nothing(ADVICE),
        "what tune advises, against every policy simulated on all writes"),
    FigureInfo::new("jungle-costs", jungle::measure, Nothing(OF_FORMULAS),
        "writes, space and lookups of leveling, tiering and Jungle by their table of costs"),
    FigureInfo::new("jungle-fig6", jungle_fig6::measure, Nothing(OF_JUNGLE),
        "bytes written and held by leveling, tiering and Jungle, after many updates"),
    FigureInfo::new("jungle-nodes", jungle_nodes::measure, Nothing(OF_JUNGLE),
        "bytes of nodes that Jungle writes and holds, predicted and in the store"),
    FigureInfo::new("jungle-reads", jungle_reads::measure, Nothing(OF_JUNGLE),
        "lookups and range reads of leveling, tiering and Jungle, between many updates"),
    FigureInfo::new("jungle-tuned", jungle_tuned::measure, Nothing(OF_JUNGLE),
        "bytes written over bytes held by Jungle, with one threshold and with many"),
    FigureInfo::new("lsmtk-wa", lsmtk::measure, Any,
        "write cost of triangular merges over the tables ingested"),
    FigureInfo::new("mao-compression", mao::compression::measure, Any,
        "bytes written by policies over how well values compress, on the real store"),
    FigureInfo::new("mao-count", mao::count::measure, Nothing(OF_COUNTS),
        "write cost of counting flushes by size over that of counting them"),
    FigureInfo::new("mao-deletes", mao::deletes::measure, Any,
        "write cost over flushes where keys are deleted"),
    FigureInfo::new("mao-fig3", mao::fig3::measure, Any,
        "write cost over flushes, policies with at most k runs"),
    FigureInfo::new("mao-fig4", mao::fig4::measure, Any,
        "write cost over flushes, tiered and leveled"),
    FigureInfo::new("mao-fig5", mao::fig5::measure, Any,
        "mean read cost against write cost"),
    FigureInfo::new("mao-fig6", mao::fig6::measure, Any,
        "space taken while merges run, over data flushed"),
    FigureInfo::new("mao-fig7", mao::fig7::measure, Any,
        "write cost over flushes where 70 % of the writes are updates"),
    FigureInfo::new("mao-fig8", mao::fig8::measure, Any,
        "write cost of leveled where new keys come in order and 70 % are updates"),
    FigureInfo::new("mao-fig9", mao::fig9::measure, Any,
        "time of each merge against the bytes that it writes, on the real store"),
    FigureInfo::new("mao-fig10", mao::fig10::measure, Any,
        "write cost over flushes, on the real store and simulated"),
    FigureInfo::new("mao-fig11", mao::fig11::measure, Any,
        "write cost on the real store against simulated write cost"),
    FigureInfo::new("mao-fig12", mao::fig12::measure, Any,
        "write cost over 100,000 and a million flushes"),
    FigureInfo::new("mao-sizes", mao::sizes::measure, Any,
        "write cost where flushes differ in size"),
    FigureInfo::new("mao-table1", mao::table1::measure, Any,
        "write and read costs of every policy and bound over flushes"),
    FigureInfo::new("msls-unique", msls::unique::measure, Nothing(OF_KEYS),
        "different keys over the number of requests"),
    FigureInfo::new("msls-wa", msls::wa::measure, Nothing(OF_FORMULAS),
        "write cost of LevelDB's design over the number of keys"),
    FigureInfo::new("msls-skew", msls::skew::measure, Nothing(OF_FORMULAS),
        "write cost of LevelDB's design over the skew of requests"),
    FigureInfo::new("msls-buffer", msls::buffer::measure, Nothing(OF_FORMULAS),
        "write cost over the write buffer, level sizes fixed and optimized"),
    FigureInfo::new("msls-levels", msls::levels::measure, Nothing(OF_FORMULAS),
        "write cost over the number of levels and the ratio of their sizes"),
    FigureInfo::new("msls-throughput", msls::throughput::measure, Nothing(OF_LEVELDB),
        "throughput of a store on a device of one bandwidth over its write cost"),
    FigureInfo::new("msls-density", msls::density::measure, Nothing(OF_ONE_LEVEL),
        "density of a level that is swept in turn, over the key space"),
    FigureInfo::new("msls-rocksdb", msls::rocksdb::measure, Nothing(OF_PICKS),
        "write cost with random choice of the table that goes down, and in turn"),
    FigureInfo::new("msls-designs", msls::designs::measure, Nothing(OF_LEVELDB),
        "the paper's designs as policies: by formula, key by key, and on the store"),
    FigureInfo::new("auto", ahead::measure, Any,
        "the policy that plans ahead, above the exact optimum at its mean number of runs"),
    FigureInfo::new("auto-reads", priced::measure, Nothing(OF_READS),
        "the policy that plans ahead, its runs priced by reads, beside the best fixed policy"),
    FigureInfo::new("auto-parts", parts::measure, Nothing(OF_OPTIMA),
        "the least that merges of parts of runs write, over the least of whole runs"),
    FigureInfo::new("auto-updates", updates::measure, Any,
        "the policy that plans ahead and others, above the exact optimum where keys repeat"),
    FigureInfo::new("frontier", frontier::measure, Any,
        "every policy with many parameters: which ones another policy beats in everything"),
    FigureInfo::new("named", named::measure, Nothing(OF_NAMED),
        "policies of Cassandra, Lucene, ClickHouse, Scylla and papers beside their figures"),
    FigureInfo::new("optimum", optimum::measure, Any,
        "write cost of every policy above the least at its mean number of runs"),
    FigureInfo::new("thonangi-fig1", thonangi::density::measure, Nothing(OF_RR),
        "density of keys in the last two levels, under rr"),
    FigureInfo::new("thonangi-fig2", thonangi::fig2::measure, InBlocks,
        "write costs of small indexes over the size of the data"),
    FigureInfo::new("thonangi-fig3", thonangi::over_time::measure_two, InBlocks,
        "blocks written into each level over time, full and choose_best"),
    FigureInfo::new("thonangi-fig4", thonangi::over_time::measure_three, InBlocks,
        "blocks written into each level over time, with test_mixed"),
    FigureInfo::new("thonangi-fig5", thonangi::fig5::measure, Nothing(OF_MIXED),
        "what mixed costs over the threshold of its second level"),
    FigureInfo::new("thonangi-fig6a", thonangi::fig6::uniform::measure, InBlocks,
        "write costs over the size of the data, uniform"),
    FigureInfo::new("thonangi-fig6b", thonangi::fig6::normal::measure, InBlocks,
        "write costs over the size of the data, normal"),
    FigureInfo::new("thonangi-fig6c", thonangi::fig6::tpc::measure, InBlocks,
        "write costs over the size of the data, TPC"),
    FigureInfo::new("thonangi-fig7", thonangi::fig7::measure, InBlocks,
        "CPU time of requests over the size of the data, normal, on the real store"),
    FigureInfo::new("thonangi-fig8", thonangi::fig8::measure, InBlocks,
        "write costs over the skew of the keys"),
    FigureInfo::new("thonangi-fig9", thonangi::fig9::measure_uniform, InBlocks,
        "write costs over the size of the records"),
    FigureInfo::new("thonangi-fig10", thonangi::fig10::measure_normal, InBlocks,
        "write costs so far of an index that grows"),
    FigureInfo::new("thonangi-caches", thonangi::caches::measure, InBlocks,
        "blocks that merges read and write with buffer caches"),
    FigureInfo::new("thonangi-growth-uniform", thonangi::fig10::measure_uniform, InBlocks,
        "write costs so far of an index that grows, uniform"),
    FigureInfo::new("thonangi-levels", thonangi::levels::measure, InBlocks,
        "write costs with three levels, and with a fourth on purpose"),
    FigureInfo::new("thonangi-payloads-normal", thonangi::fig9::measure_normal, InBlocks,
        "write costs over the size of the records, normal"),
    FigureInfo::new("thonangi-queries", thonangi::queries::measure, InBlocks,
        "blocks that lookups and range queries read"),
    FigureInfo::new("time", time::measure, Nothing(OF_TIME),
        "free runs in simulated time, beside free runs on the store"),
];

/// Returns the figure with this name.
///
/// # Errors
/// Fails if there is none; the error suggests the nearest name.
pub fn figure_named(name: &str) -> Result<&'static FigureInfo, SpecError> {
    let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    let found = FIGURES.iter().find(|figure| figure.name == name);
    found.ok_or_else(|| SpecError::unknown("figure", name, &names))
}
