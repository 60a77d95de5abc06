//! The log of compactions of Cassandra 5.0, beside what its metrics said (`metrics.txt`).

use super::{file, files};
use lsmith_doctor::{Case, Diagnosis, Replay, Store};

#[test]
fn tables_wrote_what_cassandra_counts() {
    let case = Case::read(files("cassandra")).unwrap();
    assert_eq!((case.store, case.log.damaged), (Store::Cassandra, 0));
    let diagnosis = Diagnosis::of(&case);
    let said = String::from_utf8(file("cassandra", "metrics.txt")).unwrap();
    assert_eq!(said.lines().count(), 2);
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [sstables, live, compacted, flushed] =
            [2, 4, 6, 8].map(|at| words[at].parse::<u64>().unwrap());
        let costs = diagnosis.families.iter().find(|costs| costs.name == words[0]).unwrap();
        assert_eq!(costs.flushes, 60);
        assert_eq!(costs.levels.iter().map(|level| level.files).sum::<u64>(), sstables);
        assert_eq!([costs.flushed_bytes, costs.compacted_bytes], [flushed, compacted], "{line}");
        // Live bytes have the other files of an SSTable too.
        let held: u64 = costs.levels.iter().map(|level| level.bytes).sum();
        let off = held as f64 / live as f64 - 1.0;
        assert!(off > -0.08 && off < 0.0, "{line}: {held}, not {live}");
        let family = case.families.iter().find(|family| family.name == words[0]).unwrap();
        let replay = Replay::of(&case, family).unwrap();
        let counted = (flushed + compacted) as f64 / flushed as f64;
        assert!((replay.counted - counted).abs() < 1e-9, "{line}: {}", replay.counted);
        // Leveled compactions lagged behind flushes, so they took more at once.
        let off_max = if family.name == "app.tiered" { 0.01 } else { 0.17 };
        assert!(replay.error.abs() < off_max, "{line}: {}", replay.error);
        let (now, others) = replay.rows.split_first().unwrap();
        assert!(now.is_present && now.store == "Cassandra", "{now:?}");
        for store in ["Cassandra", "lsmith"] {
            assert!(others.iter().any(|row| row.store == store && row.write < now.write / 2.0));
        }
        let ways = replay.moves.iter().filter(|way| way.store == "Cassandra");
        for way in ways {
            assert!(way.options[0].starts_with("class="), "{way:?}");
        }
    }
    let leveled = diagnosis.families.iter().find(|costs| costs.name == "app.leveled").unwrap();
    assert!(leveled.levels.iter().any(|level| level.level == 1), "{:?}", leveled.levels);
    assert!(leveled.policy.starts_with("LeveledCompactionStrategy,"), "{}", leveled.policy);
}

#[test]
fn lines_that_are_cut_are_counted() {
    let log = file("cassandra", "compaction.log");
    for at in (20..log.len()).step_by(997) {
        let cut = vec![("compaction.log".to_owned(), log[..at].to_vec())];
        let case = Case::read(cut).unwrap();
        assert_eq!(case.log.damaged, u64::from(log[at - 1] != b'\n' && log[at] != b'\n'));
        let mut changed = log.clone();
        changed[at] ^= 1 << (at % 8);
        let case = Case::read(vec![("compaction.log".to_owned(), changed)]).unwrap();
        assert!(case.log.damaged <= 2 && case.families.len() >= 2);
    }
}

/// A strategy whose rules go by time is not played, and the reason names the strategies that are.
#[test]
fn strategy_that_is_unknown_is_named() {
    let log = String::from_utf8(file("cassandra", "compaction.log")).unwrap();
    let log = log.replace("SizeTieredCompactionStrategy", "TimeWindowCompactionStrategy");
    let case = Case::read(vec![("compaction.log".to_owned(), log.into_bytes())]).unwrap();
    let family = case.families.iter().find(|family| family.name == "app.tiered").unwrap();
    let reason = Replay::of(&case, family).unwrap_err();
    assert_eq!(
        reason,
        "No replay: TimeWindowCompactionStrategy is not known; expected \
         SizeTieredCompactionStrategy, LeveledCompactionStrategy or UnifiedCompactionStrategy."
    );
}

/// What a table held before its log begins is there, and costs nothing.
#[test]
fn tables_before_the_log_are_merged_with() {
    let log = String::from_utf8(file("cassandra", "compaction.log")).unwrap();
    let before = r#"[{"generation":"before","table":{"generation":"before","size":9000000}}]"#;
    let log = log.replacen(
        "\"tables\":[],\"repaired\":false",
        &format!("\"tables\":{before},\"repaired\":false"),
        1,
    );
    let case = Case::read(vec![("compaction.log".to_owned(), log.into_bytes())]).unwrap();
    assert_eq!(case.log.damaged, 0);
    let family = case.families.iter().find(|family| family.name == "app.tiered").unwrap();
    let replay = Replay::of(&case, family).unwrap();
    assert!(replay.doubts.iter().any(|doubt| doubt.contains("held before the LOG begins")));
    // Each merge takes the 9 MB too, which the log does not show.
    assert!(replay.replayed > 7.0, "{}", replay.replayed);
}
