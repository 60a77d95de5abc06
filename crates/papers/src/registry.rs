//! The registry of all figures.

use super::FigureInfo;
use super::{
    advice, jungle, jungle_fig6, jungle_nodes, jungle_reads, jungle_tuned, lsmtk, mao, msls,
    optimum, thonangi,
};
use lsmith_spec::SpecError;

/// All figures, by paper and number.
pub const FIGURES: &[FigureInfo] = &[
    FigureInfo {
        name: "advice",
        title: "what tune advises, against every policy simulated on all writes",
        measure: advice::measure,
    },
    FigureInfo {
        name: "jungle-costs",
        title: "writes, space and lookups of leveling, tiering and Jungle by their table of costs",
        measure: jungle::measure,
    },
    FigureInfo {
        name: "jungle-fig6",
        title: "bytes written and held by leveling, tiering and Jungle, after many updates",
        measure: jungle_fig6::measure,
    },
    FigureInfo {
        name: "jungle-nodes",
        title: "bytes of nodes that Jungle writes and holds, predicted and in the store",
        measure: jungle_nodes::measure,
    },
    FigureInfo {
        name: "jungle-reads",
        title: "lookups and range reads of leveling, tiering and Jungle, between many updates",
        measure: jungle_reads::measure,
    },
    FigureInfo {
        name: "jungle-tuned",
        title: "bytes written over bytes held by Jungle, with one threshold and with many",
        measure: jungle_tuned::measure,
    },
    FigureInfo {
        name: "lsmtk-wa",
        title: "write cost of triangular merges over the tables ingested",
        measure: lsmtk::measure,
    },
    FigureInfo {
        name: "mao-compression",
        title: "bytes written by policies over how well values compress, on the real store",
        measure: mao::compression,
    },
    FigureInfo {
        name: "mao-count",
        title: "write cost of counting flushes by size over that of counting them",
        measure: mao::count,
    },
    FigureInfo {
        name: "mao-deletes",
        title: "write cost over flushes where keys are deleted",
        measure: mao::deletes,
    },
    FigureInfo {
        name: "mao-fig3",
        title: "write cost over flushes, policies with at most k runs",
        measure: mao::fig3,
    },
    FigureInfo {
        name: "mao-fig4",
        title: "write cost over flushes, tiered and leveled",
        measure: mao::fig4,
    },
    FigureInfo { name: "mao-fig5", title: "mean read cost against write cost", measure: mao::fig5 },
    FigureInfo {
        name: "mao-fig6",
        title: "space taken while merges run, over data flushed",
        measure: mao::fig6,
    },
    FigureInfo {
        name: "mao-fig7",
        title: "write cost over flushes where 70 % of the writes are updates",
        measure: mao::fig7,
    },
    FigureInfo {
        name: "mao-fig8",
        title: "write cost of leveled where new keys come in order and 70 % are updates",
        measure: mao::fig8,
    },
    FigureInfo {
        name: "mao-fig9",
        title: "time of each merge against the bytes that it writes, on the real store",
        measure: mao::fig9,
    },
    FigureInfo {
        name: "mao-fig10",
        title: "write cost over flushes, on the real store and simulated",
        measure: mao::fig10,
    },
    FigureInfo {
        name: "mao-fig11",
        title: "write cost on the real store against simulated write cost",
        measure: mao::fig11,
    },
    FigureInfo {
        name: "mao-fig12",
        title: "write cost over 100,000 and a million flushes",
        measure: mao::fig12,
    },
    FigureInfo {
        name: "mao-sizes",
        title: "write cost where flushes differ in size",
        measure: mao::sizes,
    },
    FigureInfo {
        name: "mao-table1",
        title: "write and read costs of every policy and bound over flushes",
        measure: mao::table1,
    },
    FigureInfo {
        name: "msls-unique",
        title: "different keys over the number of requests",
        measure: msls::unique,
    },
    FigureInfo {
        name: "msls-wa",
        title: "write cost of LevelDB's design over the number of keys",
        measure: msls::wa,
    },
    FigureInfo {
        name: "msls-skew",
        title: "write cost of LevelDB's design over the skew of requests",
        measure: msls::skew,
    },
    FigureInfo {
        name: "msls-buffer",
        title: "write cost over the write buffer, level sizes fixed and optimized",
        measure: msls::buffer,
    },
    FigureInfo {
        name: "msls-levels",
        title: "write cost over the number of levels and the ratio of their sizes",
        measure: msls::levels,
    },
    FigureInfo {
        name: "msls-throughput",
        title: "throughput of a store on a device of one bandwidth over its write cost",
        measure: msls::throughput,
    },
    FigureInfo {
        name: "msls-density",
        title: "density of a level that is swept in turn, over the key space",
        measure: msls::density,
    },
    FigureInfo {
        name: "msls-rocksdb",
        title: "write cost with random choice of the table that goes down, and in turn",
        measure: msls::rocksdb,
    },
    FigureInfo {
        name: "msls-designs",
        title: "the paper's designs as policies: by formula, key by key, and on the store",
        measure: msls::designs,
    },
    FigureInfo {
        name: "optimum",
        title: "write cost of every policy above the least at its mean number of runs",
        measure: optimum::measure,
    },
    FigureInfo {
        name: "thonangi-fig1",
        title: "density of keys in the last two levels, under rr",
        measure: thonangi::fig1,
    },
    FigureInfo {
        name: "thonangi-fig2",
        title: "write costs of small indexes over the size of the data",
        measure: thonangi::fig2,
    },
    FigureInfo {
        name: "thonangi-fig3",
        title: "blocks written into each level over time, full and choose_best",
        measure: thonangi::fig3,
    },
    FigureInfo {
        name: "thonangi-fig4",
        title: "blocks written into each level over time, with test_mixed",
        measure: thonangi::fig4,
    },
    FigureInfo {
        name: "thonangi-fig5",
        title: "what mixed costs over the threshold of its second level",
        measure: thonangi::fig5,
    },
    FigureInfo {
        name: "thonangi-fig6a",
        title: "write costs over the size of the data, uniform",
        measure: thonangi::fig6a,
    },
    FigureInfo {
        name: "thonangi-fig6b",
        title: "write costs over the size of the data, normal",
        measure: thonangi::fig6b,
    },
    FigureInfo {
        name: "thonangi-fig6c",
        title: "write costs over the size of the data, TPC",
        measure: thonangi::fig6c,
    },
    FigureInfo {
        name: "thonangi-fig7",
        title: "CPU time of requests over the size of the data, normal, on the real store",
        measure: thonangi::fig7,
    },
    FigureInfo {
        name: "thonangi-fig8",
        title: "write costs over the skew of the keys",
        measure: thonangi::fig8,
    },
    FigureInfo {
        name: "thonangi-fig9",
        title: "write costs over the size of the records",
        measure: thonangi::fig9,
    },
    FigureInfo {
        name: "thonangi-fig10",
        title: "write costs so far of an index that grows",
        measure: thonangi::fig10,
    },
    FigureInfo {
        name: "thonangi-caches",
        title: "blocks that merges read and write with buffer caches",
        measure: thonangi::caches,
    },
    FigureInfo {
        name: "thonangi-growth-uniform",
        title: "write costs so far of an index that grows, uniform",
        measure: thonangi::growth_uniform,
    },
    FigureInfo {
        name: "thonangi-levels",
        title: "write costs with three levels, and with a fourth on purpose",
        measure: thonangi::levels,
    },
    FigureInfo {
        name: "thonangi-payloads-normal",
        title: "write costs over the size of the records, normal",
        measure: thonangi::payloads_normal,
    },
    FigureInfo {
        name: "thonangi-queries",
        title: "blocks that lookups and range queries read",
        measure: thonangi::queries,
    },
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
