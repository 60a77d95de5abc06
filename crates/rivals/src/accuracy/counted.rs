//! What a store says that it has written.

use super::design::Design;
use crate::stores::Store;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// What a store has counted since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// Bytes of all flushes.
    pub(crate) flush_bytes: f64,
    /// Bytes that merges have written into each level from 1 on; one sum where the store does not
    /// tell them apart.
    pub(crate) merge_bytes: Vec<f64>,
    /// Flushes.
    pub(crate) flushes: u64,
}

impl Counted {
    /// Asks `store`, whose folder is `dir`.
    pub(crate) fn read(design: Design, store: &dyn Store, dir: &Path) -> Result<Counted> {
        let log = std::fs::read_to_string(dir.join("LOG")).context("the store's log of events")?;
        let ask = |name: &str| {
            let answer = store.property(name)?;
            answer.with_context(|| format!("{} does not know {name}", design.store))
        };
        let (flush_bytes, merge_bytes) = match design.store {
            "leveldb" => of_leveldb(&ask("leveldb.stats")?)?,
            "rocksdb" => of_rocksdb(&ask("rocksdb.options-statistics")?)?,
            other => bail!("{other} does not count what it writes"),
        };
        Ok(Counted { flush_bytes, merge_bytes, flushes: flushes(&log) })
    }

    /// What was added since `earlier`.
    pub(crate) fn since(&self, earlier: &Counted) -> Counted {
        let before = earlier.merge_bytes.iter().copied().chain(std::iter::repeat(0.0));
        Counted {
            flush_bytes: self.flush_bytes - earlier.flush_bytes,
            merge_bytes: self.merge_bytes.iter().zip(before).map(|(now, old)| now - old).collect(),
            flushes: self.flushes - earlier.flushes,
        }
    }
}

/// Both stores log the begin of each flush alike.
fn flushes(log: &str) -> u64 {
    // RocksDB tells of the commit of a flush, too, without the colon.
    let is_flush =
        |line: &&str| line.contains("Level-0 ") && line.trim_end().ends_with(": started");
    log.lines().filter(is_flush).count() as u64
}

/// Reads LevelDB's table of levels, whose last column is megabytes of 2^20 bytes written.
fn of_leveldb(stats: &str) -> Result<(f64, Vec<f64>)> {
    let mut levels = vec![0.0; 7];
    for line in stats.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The heading has words, and the rule under it one.
        let [level, _, _, _, _, written] = words[..] else { continue };
        if let (Ok(level), Ok(written)) = (level.parse::<usize>(), written.parse::<f64>()) {
            let slot = levels.get_mut(level).context("LevelDB has seven levels")?;
            *slot = written * f64::from(1 << 20);
        }
    }
    let flushed = levels.remove(0);
    Ok((flushed, levels))
}

fn of_rocksdb(statistics: &str) -> Result<(f64, Vec<f64>)> {
    let count = |name: &str| -> Result<f64> {
        let line = statistics.lines().find(|line| line.split(' ').next() == Some(name));
        let line = line.with_context(|| format!("RocksDB counts no {name}"))?;
        let number = line.rsplit(' ').next().unwrap_or_default();
        Ok(number.parse()?)
    };
    Ok((count("rocksdb.flush.write.bytes")?, vec![count("rocksdb.compact.write.bytes")?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leveldb_tells_levels_apart() {
        let stats = "                               Compactions\n\
            Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
            --------------------------------------------------\n\
            \u{20} 0        2        8         1        0        16\n\
            \u{20} 2       20       40         3       10        32\n";
        let (flushed, merged) = of_leveldb(stats).unwrap();
        assert_eq!(flushed, 16.0 * 1048576.0);
        assert_eq!(merged[..3], [0.0, 32.0 * 1048576.0, 0.0]);
    }

    #[test]
    fn rocksdb_counts_by_name() {
        let statistics = "rocksdb.remote.compact.write.bytes COUNT : 5\n\
            rocksdb.compact.write.bytes COUNT : 70\nrocksdb.flush.write.bytes COUNT : 11\n";
        assert_eq!(of_rocksdb(statistics).unwrap(), (11.0, vec![70.0]));
        assert!(of_rocksdb("").is_err());
    }

    #[test]
    fn flushes_are_counted_by_their_begin() {
        let log = "2026/01/01-00:00:00.0 1 Level-0 table #5: started\n\
            2026/01/01-00:00:00.1 1 Level-0 table #5: 100 bytes OK\n\
            x [flush_job.cc:994] [default] [JOB 3] Level-0 flush table #9: started\n\
            x [memtable_list.cc:670] [default] Level-0 commit flush result of table #9 started\n";
        assert_eq!(flushes(log), 2);
    }
}
