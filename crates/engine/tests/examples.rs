//! Promised: every program in `examples` runs, prints what is expected here, and leaves nothing
//! behind but the directory that it was given.
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]
#![allow(clippy::disallowed_methods, reason = "documents are read from files")]
#![allow(clippy::print_stdout, reason = "the first page prints")]
#![allow(dead_code, reason = "each program has a `main` of its own")]

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;

#[path = "../examples/async_writer.rs"]
mod async_writer;
#[path = "../examples/backup.rs"]
mod backup;
#[path = "../examples/change_feed.rs"]
mod change_feed;
#[path = "../examples/counters.rs"]
mod counters;
#[path = "../examples/custom_policy.rs"]
mod custom_policy;
#[path = "../examples/draw_tree.rs"]
mod draw_tree;
#[path = "../examples/hello.rs"]
mod hello;
#[path = "../examples/queue.rs"]
mod queue;
#[path = "../examples/readers.rs"]
mod readers;
#[path = "../examples/secondary_index.rs"]
mod secondary_index;
#[path = "../examples/sessions.rs"]
mod sessions;
#[path = "../examples/time_series.rs"]
mod time_series;
#[path = "../examples/typed.rs"]
mod typed;

type Run = fn(&Path, &mut dyn Write) -> Result<(), Box<dyn Error>>;

/// The variable that tells a second process where the store is.
const READER: &str = "LSMITH_EXAMPLE_READER";

/// Returns what `run` prints.
fn printed(run: Run) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    run(dir.path(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn hello_prints_both_directions() {
    let expected = "kurt is None, and was Some(b\"1906\")\ngrace: 1906\nada: 1815\n\
                    opened again, there are 2 users\n";
    assert_eq!(printed(hello::run), expected);
}

#[test]
fn secondary_index_follows_moves() {
    assert_eq!(printed(secondary_index::run), "Oslo [\"3\"], Rome [\"1\", \"2\"]\n");
}

#[test]
fn counters_count_and_keep_the_greatest() {
    let text = "help: 1, last on 2026-01-09\nhome: 2, last on 2026-03-01\n";
    assert_eq!(printed(counters::run), text);
}

#[test]
fn sessions_expire() {
    let expected = "after 59 s: ada grace kurt\nafter 60 s: ada kurt\nafter 3599 s: ada kurt\n\
                    after 3600 s: kurt\nafter 7200 s: \n";
    assert_eq!(printed(sessions::run), expected);
}

#[test]
fn queue_loses_its_front() {
    assert_eq!(printed(queue::run), "100 tasks wait, the first is 900\n");
}

#[test]
fn time_series_stays_bounded() {
    let expected = "old points of sensor 2 are gone: true\n2 points since 9998\n\
                    storage is bounded: true\n";
    assert_eq!(printed(time_series::run), expected);
}

#[test]
fn typed_values_come_back_in_the_order_of_numbers() {
    let expected = "number 1 is grace\n2: kurt, 1906\n1: grace, 1906\n0: ada, 1815\n";
    assert_eq!(printed(typed::run), expected);
}

#[test]
fn backup_is_restored() {
    let expected = "backups 1 and 2\n0 errors in the files of all backups\nrestored: 30\n\
                    removed [1]\ncheckpoint: 3000\n";
    assert_eq!(printed(backup::run), expected);
}

#[test]
fn readers_see_what_the_writer_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = Command::new(std::env::current_exe().unwrap());
    reader.args(["reader_process", "--exact", "--nocapture"]).env(READER, dir.path());
    let mut out = Vec::new();
    readers::run(dir.path(), &mut reader, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("the reader sees 10001 entries\n"), "{text}");
}

/// The second process of the test above. Alone it does nothing.
#[test]
fn reader_process() {
    if let Some(dir) = std::env::var_os(READER) {
        readers::read(Path::new(&dir), &mut std::io::stdout()).unwrap();
    }
}

#[test]
fn change_feed_makes_an_equal_copy() {
    assert_eq!(printed(change_feed::run), "2 batches\n1 batch more\ncopies are equal: true\n");
}

#[test]
fn async_writer_shares_batches() {
    assert_eq!(printed(async_writer::run), "batches were shared: true\n500 entries\n");
}

#[test]
fn custom_policy_shapes_the_tree() {
    let text = "policy geometric(ratio=3), sizes grow by 3 and more: true\n";
    assert_eq!(printed(custom_policy::run), text);
}

#[test]
fn tree_is_drawn() {
    let text = printed(draw_tree::run);
    let last = "\
wrote   0 kB: level 1 holds 49248 bytes of 49152
  level 0 |=====|=====|
  level 1 |=========|
  level 2 |=====|
";
    assert!(text.starts_with("wrote  14 kB: a sealed memtable waits for room\n"), "{text}");
    assert!(text.ends_with(last), "{text}");
}

/// The code on the first page of the repository. It cannot be a doc test, which needs a function
/// around it.
fn first_page(data: &Path) -> lsmith::Result<()> {
    use lsmith::{Batch, PersistMode, Store};

    let store = Store::builder(data).policy("minlatency(k=6)").open()?;
    let users = store.keyspace("users")?;
    users.put("ada", "1815")?;
    let mut batch = Batch::new();
    batch.put(&users, "grace", "1906");
    batch.delete(&users, "ada");
    store.write(batch, PersistMode::SyncData)?;
    for entry in users.prefix("g") {
        let (key, value) = entry?;
        println!("{} was born in {}", key.escape_ascii(), value.escape_ascii());
    }
    users.set_merge_policy("leveled(ratio=10)")?;
    Ok(())
}

/// Reads a file of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn code_of_the_first_page_runs() {
    let dir = tempfile::tempdir().unwrap();
    first_page(&dir.path().join("data")).unwrap();
    let readme = read("../../README.md");
    let (_, code) = readme.split_once("```rust\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let own = include_str!("examples.rs");
    for line in code.lines() {
        let line = line.split("//").next().unwrap().trim().replace("\"data\"", "data");
        assert!(own.contains(&line), "the first page has `{line}`");
    }
}

/// Each program is named on the first page, on the page of the crate, and by its own head.
#[test]
fn examples_are_listed() {
    let readme = read("../../README.md");
    let page = read("src/lib.rs");
    let own = include_str!("examples.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(readme.contains(&format!("\n| `{name}` |")), "README.md lists {name}");
        assert!(page.contains(&format!("\n//! | `{name}` |")), "lib.rs lists {name}");
        assert!(own.contains(&format!("printed({name}::run)")) || name == "readers", "{name} runs");
        let text = std::fs::read_to_string(&path).unwrap();
        let command = format!("//! `cargo run -p lsmith --example {name}`\n");
        assert!(text.starts_with("//! ") && text.contains(&command), "{name} says how it runs");
        count += 1;
    }
    assert_eq!(count, 13);
}
