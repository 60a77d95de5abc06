//! `doctor`, on directories that RocksDB wrote.

use crate::command::{fine, json, lsmith, refused, root};
use std::fs;
use std::path::PathBuf;

/// Returns the path of a file of the store `name`, or of the store itself.
fn path(name: &str, file: &str) -> PathBuf {
    root().join("crates/doctor/tests/data").join(name).join(file)
}

fn text(path: PathBuf) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_directory_is_answered_in_words_and_as_json() {
    let dir = text(path("leveled", ""));
    let words = fine(&["doctor", &dir]);
    let expected = [
        "RocksDB 7.8.3, opened once.",
        "rocksdb(l0=4, level1=2MiB, ratio=4, table=512KiB).",
        "3.21 bytes written per byte flushed.",
        "Column family column_family_name_000001",
    ];
    for part in expected {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains("held back"), "nobody was held back: {words}");
    let row = words.lines().find(|line| line.contains("RocksDB, now")).unwrap();
    assert!(row.starts_with("level, 4 files, 2MiB, x4"), "{row}");
    assert_eq!(words.matches("lsmith, nearest").count(), 2, "{words}");
    let answer = json(&["doctor", &dir]);
    let family = &answer["families"][0];
    let write = family["write_amplification"].as_f64().unwrap();
    assert!((write - 3.21).abs() < 0.005, "{write}");
    let of_levels = family["by_level"].as_array().unwrap().iter();
    let written: u64 = of_levels.map(|row| row["written_bytes"].as_u64().unwrap()).sum();
    assert_eq!(family["compacted_bytes"], written);
    assert_eq!(family["levels"][0]["files"], 3);
    let replay = &family["replay"];
    assert_eq!(replay["counted"], family["write_amplification"]);
    let now = &replay["rows"][0];
    assert_eq!([&now["is_present"], &now["write"]], [&true.into(), &replay["replayed"]]);
    let options = replay["moves"][0]["options"].as_array().unwrap();
    assert!(options.contains(&"level0_file_num_compaction_trigger=8".into()), "{options:?}");
}

/// A directory, and a pipe that nobody writes to, under names of a store's files.
#[test]
fn what_is_no_file_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = path("leveldb", "");
    for entry in fs::read_dir(&store).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, dir.path().join(from.file_name().unwrap())).unwrap();
    }
    let there = text(dir.path().to_owned());
    let before = fine(&["doctor", &there]);
    fs::create_dir(dir.path().join("compaction")).unwrap();
    let pipe = dir.path().join("LOG.old.pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(fine(&["doctor", &there]), before);
}

#[test]
fn a_leveldb_is_told_by_its_files() {
    let words = fine(&["doctor", &text(path("leveldb-reopened", ""))]);
    let expected = [
        "LevelDB, opened 2 times.",
        "leveldb(l0=4, level1=10MiB, ratio=10, table=1MiB).",
        "4.24 bytes written per byte flushed.",
        "LevelDB, now",
    ];
    for part in expected {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains("uncompressed"), "LevelDB does not say it: {words}");
    let manifest = json(&["doctor", &text(path("leveldb", "MANIFEST-000002.gz"))]);
    assert_eq!(manifest["store"], "LevelDB");
    assert!(manifest["version"].is_null());
    let family = &manifest["families"][0];
    assert_eq!(family["replay"]["rows"][0]["store"], "LevelDB");
    assert_eq!(family["compactions"], 55);
}

#[test]
fn a_pebble_is_told_by_its_files() {
    let words = fine(&["doctor", &text(path("pebble", ""))]);
    let expected = [
        "Pebble, opened once.",
        "Compactions: level, 2 sublevels in level 0, 4MiB in the first level, multiplier 10,",
        "60 flushes wrote 51.1 MB, and 147 compactions 185 MB: 4.62 bytes written per byte",
        "Pebble, now",
    ];
    for part in expected {
        assert!(words.contains(part), "{part}: {words}");
    }
    let manifest = json(&["doctor", &text(path("pebble", "MANIFEST-000001.gz"))]);
    assert_eq!(manifest["store"], "Pebble");
    assert_eq!(manifest["families"][0]["compactions"], 147);
    let why = manifest["families"][0]["no_replay"].as_str().unwrap();
    assert!(why.contains("expected the settings in OPTIONS-*"), "{why}");
}

/// Its strategies and policies of lsmith, as options of a table.
#[test]
fn a_log_of_cassandra_is_told_by_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("doctor.html");
    let log = text(path("cassandra", "compaction.log.gz"));
    let words = fine(&["doctor", &log, "--html", html.to_str().unwrap()]);
    let expected = [
        "Cassandra.\n",
        "Table app.tiered: SizeTieredCompactionStrategy,",
        "60 flushes wrote 26.7 MB, and 19 compactions 124 MB: 5.63 bytes written per byte flushed.",
        "The settings of now write 5.62 bytes per byte flushed, -0.1 % beside the LOG.",
        "  In CQL: ... WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'min",
    ];
    for part in expected {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(fs::read_to_string(&html).unwrap().contains("5.63 bytes written per byte flushed"));
}

#[test]
fn one_log_is_enough_and_rotated_logs_add_up() {
    let log = path("universal", "LOG.gz");
    let once = json(&["doctor", &text(log.clone())]);
    assert_eq!(once["families"][0]["spec"], "universal(trigger=4, size_ratio=1, space_max=200)");
    assert_eq!(once["families"][0]["levels"], serde_json::json!([]));
    let dir = tempfile::tempdir().unwrap();
    fs::copy(&log, dir.path().join("LOG.gz")).unwrap();
    fs::copy(&log, dir.path().join("LOG.old.1700000000000000.gz")).unwrap();
    let twice = json(&["doctor", dir.path().to_str().unwrap()]);
    assert_eq!(twice["openings"], 2);
    for figure in ["flushes", "flushed_bytes", "compactions", "compacted_bytes"] {
        let [once, twice] = [&once, &twice].map(|answer| &answer["families"][0][figure]);
        assert_eq!(twice.as_u64().unwrap(), 2 * once.as_u64().unwrap(), "{figure}");
    }
}

#[test]
fn files_of_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes.txt");
    fs::write(&notes, "hello\n").unwrap();
    let expected =
        "notes.txt: expected a LOG or a MANIFEST-* of RocksDB, LevelDB or Pebble, found none";
    let done = lsmith(&["doctor", &text(notes)]);
    assert!(done.code != 0 && done.err.contains(expected), "{done:?}");
    let line = refused(done.code, &["doctor", dir.path().to_str().unwrap()]);
    assert!(line.contains("expected a LOG or a MANIFEST-*"), "{line}");
    let manifest = dir.path().join("MANIFEST-000005");
    fs::write(&manifest, [7; 64]).unwrap();
    let line = refused(done.code, &["doctor", dir.path().to_str().unwrap()]);
    assert!(line.contains("MANIFEST-000005: expected a LOG or a MANIFEST-*"), "{line}");
    fs::write(&manifest, [1, 2, 3, 4, 2, 0, 1, 8, 9]).unwrap();
    let line = refused(done.code, &["doctor", dir.path().to_str().unwrap()]);
    assert!(line.contains("MANIFEST-000005, offset 0: expected the checksum"), "{line}");
}

/// Runs every command of docs/doctor.md. The sample is the beginning of what the command prints.
#[test]
fn the_page_shows_what_the_command_prints() {
    let page = fs::read_to_string(root().join("docs/doctor.md")).unwrap();
    let mut samples = page.split("```text\n$ lsmith doctor ");
    samples.next();
    let mut shown_count = 0;
    for sample in samples {
        let (sample, _) = sample.split_once("```").unwrap();
        let (dir, shown) = sample.split_once('\n').unwrap();
        let printed = fine(&["doctor", &text(root().join(dir))]);
        assert!(printed.starts_with(shown), "the command prints\n{printed}");
        shown_count += 1;
    }
    assert_eq!(shown_count, 2);
    let mut count = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("lsmith doctor /var/lib/app/")) {
        let command = line.split('#').next().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let html = text(dir.path().join("doctor.html"));
        let mut words: Vec<&str> = command
            .split_whitespace()
            .map(|word| if word == "doctor.html" { &html } else { word })
            .collect();
        let log = if words.remove(0).ends_with("LOG") { "LOG.gz" } else { "" };
        let store = text(path("rocksdict", log));
        fine(&[&["doctor", &store][..], &words].concat());
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn a_page_has_the_rows_with_their_band_and_the_trees() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("doctor.html");
    let store = text(path("rocksdbjni", ""));
    let answer = json(&["doctor", &store, "--html", html.to_str().unwrap()]);
    let page = fs::read_to_string(&html).unwrap();
    let (_, content) = page.split_once("id=\"content\">").unwrap();
    let (content, _) = content.split_once("</script>").unwrap();
    let content: serde_json::Value = serde_json::from_str(content).unwrap();
    let groups = content["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    for (group, family) in groups.iter().zip(answer["families"].as_array().unwrap()) {
        let replay = &family["replay"];
        assert_eq!([&group["name"], &group["alike"]], [&family["name"], &replay["band"]]);
        let rows = replay["rows"].as_array().unwrap();
        let names = |list: &str| -> Vec<String> {
            let items = group[list].as_array().unwrap().iter();
            items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        assert!(names("costs")[0].ends_with("(RocksDB, now)"), "{:?}", names("costs"));
        assert_eq!((names("costs").len(), names("costs")), (rows.len(), names("trees")));
        for tree in group["trees"].as_array().unwrap() {
            // Each flush is a step at least.
            assert!(tree["step_count"].as_u64() > family["flushes"].as_u64(), "{tree}");
        }
        let table = &group["table"];
        let columns = table["columns"].as_array().unwrap();
        let column = |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
        let band = replay["band"].as_f64().unwrap();
        for (cells, row) in table["rows"].as_array().unwrap().iter().zip(rows) {
            let figure = |name: &str| cells[column(name)].as_f64().unwrap();
            assert_eq!(figure("write"), row["write"].as_f64().unwrap());
            assert_eq!(figure("least"), row["least"].as_f64().unwrap());
            assert!((figure("write_from") * (1.0 + band) - figure("write")).abs() < 1e-9);
            assert!((figure("write_to") * (1.0 - band) - figure("write")).abs() < 1e-9);
        }
        let way = &replay["moves"][0];
        let place = rows.iter().position(|row| row["policy"] == way["policy"]).unwrap();
        let options = table["rows"][place][column("options")].as_str().unwrap();
        assert!(options.contains(way["options"][0].as_str().unwrap()), "{options}");
        let first = group["notes"][0].as_str().unwrap();
        let error = 100.0 * replay["error"].as_f64().unwrap();
        assert!(first.contains(&format!("is off by {error:+.1} %")), "{first}");
        let notes = group["notes"].to_string();
        for part in ["beside the LOG", "The simulation does not know", "bytes written per byte"] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
    }
}
