//! Tables from outside with entries that expire, with operands, and with prefixes in their filters.
//!
//! Promised: an entry keeps its time from one store to the next. A table that has what a keyspace
//! cannot have is refused, with an error that names the file. What a table says of its entries is
//! true, or it is refused. A table whose entries have all expired goes unread. What operands apply
//! to is in `ingest_operands`.

use crate::frame::contents::contents;
use crate::frame::file_parts::TableParts;
use crate::frame::operators::Append;
use crate::frame::small::small_at;
use crate::ingest::files::{bytes, tables};
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Builder, Clock, Error, ErrorKind, Expiry, IngestOptions, Keyspace, KeyspaceOptions, Life,
    SeqNo, Store, TableWriter, TableWriterOptions, inspect,
};
use lsmith_fuzz::fuzz;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) const DIR: &str = "/store";

/// A disk, and the clock of the stores on it.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) env: MemEnv,
    pub(crate) time: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn builder(&self, dir: &str) -> Builder {
        let time = Arc::clone(&self.time);
        let builder = small_at(dir, &self.env).operator(Append).policy("none");
        builder.clock(Clock::new("test", move || time.load(Ordering::SeqCst)))
    }

    pub(crate) fn open(&self) -> Store {
        self.builder(DIR).open().unwrap()
    }

    pub(crate) fn set(&self, time: u64) {
        self.time.store(time, Ordering::SeqCst);
    }

    pub(crate) fn options(&self, operator: Option<&str>) -> TableWriterOptions {
        TableWriterOptions {
            env: Arc::new(self.env.clone()),
            block_bytes: 200,
            operator: operator.map(str::to_string),
            ..TableWriterOptions::default()
        }
    }

    /// Writes a table by `fill`, for operands of `operator`, if one is named.
    pub(crate) fn table(
        &self,
        path: &str,
        operator: Option<&str>,
        fill: impl FnOnce(&mut TableWriter) -> lsmith::Result<()>,
    ) -> String {
        let mut writer = TableWriter::create_with(path, &self.options(operator)).unwrap();
        fill(&mut writer).unwrap();
        writer.finish().unwrap();
        path.to_string()
    }

    /// Writes a table of three entries and a delete. One of the entries has no time.
    pub(crate) fn mixed(&self, path: &str) -> String {
        self.table(path, None, |writer| {
            writer.put("a", "stays")?;
            writer.put_until("b", "ten", 10)?;
            writer.delete("c")?;
            writer.put_until("d", "twenty", 20)
        })
    }
}

pub(crate) fn expiring(after: Option<u64>) -> KeyspaceOptions {
    KeyspaceOptions {
        expiry: Some(Expiry { after: after.map(Life::Ticks) }),
        ..KeyspaceOptions::default()
    }
}

pub(crate) fn numbers(options: KeyspaceOptions) -> KeyspaceOptions {
    KeyspaceOptions { keep_numbers: Some(true), ..options }
}

pub(crate) fn with(operator: &str) -> KeyspaceOptions {
    KeyspaceOptions { operator: Some(operator.into()), ..KeyspaceOptions::default() }
}

pub(crate) fn ingest(space: &Keyspace, files: &[&str]) -> lsmith::Result<()> {
    space.store().ingest(space, files, &IngestOptions::default()).map(drop)
}

/// Returns the entries as words `key=value`.
pub(crate) fn shown(space: &Keyspace) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let entries = contents(space);
    for (key, value) in &entries {
        assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    let words = entries.iter().map(|(key, value)| format!("{}={}", text(key), text(value)));
    words.collect::<Vec<_>>().join(" ")
}

/// Asserts that ingesting `file` fails with `kind`, names the file and says `says`.
#[track_caller]
pub(crate) fn assert_refused(space: &Keyspace, file: &str, kind: ErrorKind, says: &str) {
    let before = (shown(space), tables(&**space.store().env()));
    let error: Error = ingest(space, &[file]).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.path(), Some(Path::new(file)), "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!((shown(space), tables(&**space.store().env())), before);
}

#[test]
fn ingested_entries_are_there_until_their_times() {
    let world = World::default();
    let store = world.open();
    let space = store.keyspace_with("space", &expiring(Some(5))).unwrap();
    space.put_until("b", "hidden", 100).unwrap();
    space.put_until("c", "hidden", 100).unwrap();
    let made = world.mixed("/made");
    ingest(&space, &[&made]).unwrap();
    space.put_until("d", "newer", 15).unwrap();
    let snapshot = store.snapshot();
    let lost = World { env: world.env.crash_clone(3, 0.0), time: Arc::clone(&world.time) };
    for world in [&world, &lost] {
        let is_lost = std::ptr::eq(world, &lost);
        world.set(0);
        let reopened = is_lost.then(|| world.open());
        let store = reopened.as_ref().unwrap_or(&store);
        let space = store.existing_keyspace("space").unwrap();
        let newer = if is_lost { "twenty" } else { "newer" };
        assert_eq!(shown(&space), format!("a=stays b=ten d={newer}"));
        world.set(10);
        assert_eq!(shown(&space), format!("a=stays d={newer}"));
        assert!(space.iter().rev().count() == 2);
        world.set(20);
        assert_eq!(shown(&space), "a=stays");
        space.merge().unwrap();
        assert_eq!(shown(&space), "a=stays");
        assert!(store.verify().unwrap().is_empty());
    }
    assert_eq!(snapshot.get(&space, "b").unwrap(), None);
    drop(snapshot);
    space.merge().unwrap();
    let entries: u64 = space.tree().disk_runs().map(|run| run.size().entries).sum();
    assert_eq!(entries, 1, "{}", space.tree());
}

/// Values without a time from outside stay, whatever the keyspace does with its own.
#[test]
fn times_need_a_keyspace_that_knows_them_and_values_do_not() {
    let world = World::default();
    let store = world.open();
    let plain = store.keyspace("plain").unwrap();
    plain.put("x", "kept").unwrap();
    let mixed = world.mixed("/mixed");
    let timed = world.table("/timed", None, |writer| writer.put_until("b", "ten", 10));
    for file in [&mixed, &timed] {
        assert_refused(&plain, file, ErrorKind::InvalidArgument, "keyspace `plain` cannot");
    }
    let notes = store.keyspace_with("notes", &with("append")).unwrap();
    assert_refused(&notes, &mixed, ErrorKind::InvalidArgument, "found some: make one with");
    let untimed = world.table("/untimed", None, |writer| writer.put("a", "stays"));
    for after in [None, Some(5)] {
        let space =
            store.keyspace_with(&format!("{after:?}").replace(['(', ')'], ""), &expiring(after));
        let space = space.unwrap();
        ingest(&space, &[&untimed]).unwrap();
        world.set(1000);
        assert_eq!(shown(&space), "a=stays");
        space.merge().unwrap();
        assert_eq!(shown(&space), "a=stays");
        world.set(0);
    }
    // All or none.
    let space = store.existing_keyspace("plain").unwrap();
    let error = ingest(&space, &[&untimed, &timed]).unwrap_err();
    assert_eq!(error.path(), Some(Path::new(&timed)), "{error}");
    assert_eq!(shown(&space), "x=kept");
}

#[test]
fn exported_entries_keep_their_times() {
    let world = World::default();
    let store = world.open();
    let group = KeyspaceOptions {
        group: Some("group".into()),
        policy: Some("minlatency(k=2)".into()),
        ..expiring(None)
    };
    let behind = KeyspaceOptions { expiry: None, policy: None, ..group.clone() };
    for (number, options) in [expiring(None), expiring(Some(30)), group].iter().enumerate() {
        world.set(0);
        let space = store.keyspace_with(&format!("space{number}"), options).unwrap();
        if options.group.is_some() {
            store.keyspace_with("behind", &behind).unwrap().put("n", "neighbour").unwrap();
        }
        space.put_until("a", "older", 1000).unwrap();
        space.put_until("b", "gone", 5).unwrap();
        space.put_until("c", "twenty", 20).unwrap();
        store.flush().unwrap();
        space.put_until("a", "fifty", 50).unwrap();
        space.put_until("d", "deleted", 1000).unwrap();
        space.delete("d").unwrap();
        space.put_until("e", "never", u64::MAX).unwrap();
        space.put("f", "own").unwrap();
        space.put_until("g", "erased", 1000).unwrap();
        space.delete_range("g".."h").unwrap();
        space.put_until("z", "outside", 1000).unwrap();
        world.set(5);
        let snapshot = store.snapshot();
        space.put("c", "unseen").unwrap();
        let path = format!("/exported{number}");
        let mut writer = TableWriter::create_with(&path, &world.options(None)).unwrap();
        let count = snapshot.export_newest(&space, "a".."z", &mut writer).unwrap();
        assert_eq!(count, 4);
        writer.finish().unwrap();
        let other = store.keyspace_with(&format!("other{number}"), &expiring(None)).unwrap();
        ingest(&other, &[&path]).unwrap();
        assert_eq!(shown(&other), "a=fifty c=twenty e=never f=own");
        world.set(20);
        assert_eq!(shown(&other), "a=fifty e=never f=own");
        world.set(50);
        let own = if options.expiry == Some(Expiry::after(30)) { "" } else { " f=own" };
        assert_eq!(shown(&other), format!("e=never{own}"));
    }
}

/// With numbers, what has expired is a deletion: it goes on hiding what is older.
#[test]
fn numbered_entries_keep_their_times_and_go_on_hiding() {
    let world = World::default();
    let store = world.open();
    let plain = store.keyspace_with("plain", &numbers(KeyspaceOptions::default())).unwrap();
    plain.put("a", "takes number 1").unwrap();
    let space = store.keyspace_with("space", &numbers(expiring(None))).unwrap();
    space.put_until("a", "gone", 5).unwrap();
    space.put_until("b", "ten", 10).unwrap();
    space.put("c", "stays").unwrap();
    world.set(5);
    let mut writer = TableWriter::create_with("/exported", &world.options(None)).unwrap();
    let exported = store.snapshot().export::<&str>(&space, .., &mut writer).unwrap();
    assert_eq!(exported, 3);
    writer.finish().unwrap();
    let other = store.keyspace_with("other", &numbers(expiring(None))).unwrap();
    let seq = SeqNo(store.snapshot().seq().0 + 5);
    let older = world.table("/older", None, |writer| {
        writer.put_at("a", "older", SeqNo(1))?;
        writer.put_until_at("b", "older", 100, SeqNo(1))
    });
    ingest(&other, &[&older]).unwrap();
    assert_eq!(shown(&other), "a=older b=older");
    ingest(&other, &["/exported"]).unwrap();
    assert_eq!(shown(&other), "b=ten c=stays");
    let newer = world.table("/newer", None, |writer| {
        writer.put_until_at("a", "newer", 30, seq)?;
        writer.put_until_at("b", "newer", 8, seq)
    });
    ingest(&other, &[&newer]).unwrap();
    assert_eq!(shown(&other), "a=newer b=newer c=stays");
    world.set(8);
    assert_eq!(shown(&other), "a=newer c=stays");
    other.merge().unwrap();
    assert_eq!(shown(&other), "a=newer c=stays");
    // The merge has dropped what hid this one.
    assert_refused(&other, &older, ErrorKind::InvalidArgument, "deleted keys could come back");
    assert_refused(&plain, &newer, ErrorKind::InvalidArgument, "keyspace `plain` cannot");
}

fn runs(space: &Keyspace) -> usize {
    space.tree().disk_runs().count()
}

#[test]
fn an_ingested_table_goes_unread_once_all_has_expired() {
    for linked in [false, true] {
        let world = World::default();
        let store = world.open();
        let options = expiring(None);
        let space = store.keyspace_with("space", &options).unwrap();
        let timed = world.table("/timed", None, |writer| {
            writer.put_until("a", "ten", 10)?;
            writer.delete("b")?;
            writer.put_until("c", "twenty", 20)
        });
        let link = IngestOptions::default().link(linked);
        store.ingest(&space, &[&timed], &link).unwrap();
        let stays = world.table("/stays", None, |writer| {
            writer.put_until("m", "ten", 10)?;
            writer.put("n", "stays")
        });
        store.ingest(&space, &[&stays], &link).unwrap();
        let expires = |space: &Keyspace| {
            let tree = space.tree();
            let tables = tree.disk_runs().flat_map(|run| run.slices().iter());
            tables.map(|slice| slice.table().expires).collect::<Vec<_>>()
        };
        assert_eq!(expires(&space), [0, 20]);
        drop((space, store));
        let store = world.open();
        let space = store.existing_keyspace("space").unwrap();
        assert_eq!(expires(&space), [0, 20]);
        let read = store.stats().merge_bytes_read;
        world.set(19);
        space.put("y", "19").unwrap();
        store.flush().unwrap();
        assert_eq!(runs(&space), 3);
        world.set(20);
        space.put("z", "20").unwrap();
        store.flush().unwrap();
        store.settle().unwrap();
        assert_eq!(runs(&space), 3, "{}", space.tree());
        assert_eq!(shown(&space), "n=stays y=19 z=20");
        assert_eq!(store.stats().merge_bytes_read, read);
        assert!(store.verify().unwrap().is_empty());
        // The file of the caller stays.
        assert!(inspect::is_table(&world.env, Path::new(&timed)).unwrap());
    }
}

#[test]
fn what_no_keyspace_can_have_is_refused_at_once() {
    let world = World::default();
    let refused = |result: lsmith::Result<()>, says: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let mut plain = TableWriter::create_with("/plain", &world.options(None)).unwrap();
    refused(plain.combine("a", "x"), "to name the operator of operands, found none at key `a`");
    refused(plain.combine_at("a", "x", SeqNo(0)), "expected a sequence number from 1");
    refused(plain.put_until_at("a", "x", 7, SeqNo(0)), "expected a sequence number from 1");
    let longest = vec![0; lsmith::VALUE_BYTES_MAX - 8];
    plain.put_until("a", &longest, 7).unwrap();
    refused(plain.put_until("b", [&longest[..], &[0]].concat(), 7), "a value of at most");
    refused(plain.put_until_at("b", "x", 7, SeqNo(1)), "expected all or none");
    refused(plain.put_until("a", "x", 7), "ascending");
    drop(plain);
    let mut operands = TableWriter::create_with("/made", &world.options(Some("append"))).unwrap();
    let says = "no entry that expires in a table for the operator `append`, found one at key `b`";
    refused(operands.put_until("b", "x", 7), says);
    operands.combine("a", "x").unwrap();
    refused(operands.combine("a", "y"), "ascending");
    let options = |change: fn(&mut TableWriterOptions)| {
        let mut options = world.options(None);
        change(&mut options);
        TableWriter::create_with("/refused", &options).map(drop)
    };
    refused(options(|options| options.operator = Some("a b".into())), "operator called `a b`");
    refused(options(|options| options.prefix_bytes = Some(0)), "prefixes of 0 bytes");
    refused(options(|options| options.prefix_bytes = Some(1025)), "prefixes of 1025 bytes");
    let without = |options: &mut TableWriterOptions| {
        (options.filter_bits, options.prefix_bytes) = (0, Some(4));
    };
    refused(options(without), "filters hold the prefixes");
    drop(operands);
    assert_eq!(world.env.list(Path::new("/")).unwrap(), Vec::<String>::new());
}

/// A table that says too little of its entries, or too much, has right checksums.
#[test]
fn a_table_that_lies_about_its_entries_is_damaged() {
    let world = World::default();
    let store = world.open();
    let sessions = store.keyspace_with("sessions", &expiring(None)).unwrap();
    let notes = store.keyspace_with("notes", &with("append")).unwrap();
    let plain = store.keyspace("plain").unwrap();
    let timed = world.mixed("/timed");
    let operands = world.table("/operands", Some("append"), |writer| writer.combine("a", "x"));
    let puts = world.table("/puts", None, |writer| writer.put("a", "x"));
    let flip = |path: &str, bit: u32, name: &[u8], remove: usize| {
        let mut parts = TableParts::new(&bytes(&world.env, Path::new(path)));
        let length = parts.properties.len();
        parts.properties.truncate(length - remove);
        parts.properties.extend_from_slice(name);
        let lying = format!("{path} {bit} {}", name.len());
        let mut file = world.env.create(Path::new(&lying)).unwrap();
        file.write_all(&parts.with_features(|features| features ^ bit)).unwrap();
        file.sync().unwrap();
        lying
    };
    // The features that tell of entries that expire, and of operands.
    let (expiring, operator) = (64, 128);
    let name = [&[6][..], b"append"].concat();
    let cases = [
        (flip(&timed, expiring, b"", 0), [&plain, &sessions], "do not agree with the entries"),
        (flip(&puts, expiring, b"", 0), [&sessions, &sessions], "do not agree with the entries"),
        (flip(&operands, operator, b"", 7), [&plain, &notes], "do not agree with the entries"),
        (flip(&puts, operator, &name, 0), [&notes, &notes], "do not agree with the entries"),
        (flip(&operands, operator | 1 << 10, b"", 7), [&notes, &notes], "features"),
    ];
    for (file, spaces, says) in cases {
        for space in spaces {
            let kind =
                if says == "features" { ErrorKind::Unsupported } else { ErrorKind::Corruption };
            assert_refused(space, &file, kind, says);
        }
    }
    let nameless = flip(&puts, operator, &[0], 0);
    assert_refused(&notes, &nameless, ErrorKind::Corruption, "the name of a combine operator");
    ingest(&sessions, &[&timed]).unwrap();
    ingest(&notes, &[&operands]).unwrap();
}

#[test]
fn every_flipped_byte_and_every_cut_is_found_in_what_expires_and_in_operands() {
    let world = World::default();
    let store = world.open();
    let sessions = store.keyspace_with("sessions", &expiring(None)).unwrap();
    let notes = store.keyspace_with("notes", &with("append")).unwrap();
    let timed = world.mixed("/timed");
    let operands = world.table("/operands", Some("append"), |writer| {
        writer.combine("a", "x")?;
        writer.combine("b", "y")
    });
    for (space, good) in [(&sessions, timed), (&notes, operands)] {
        let sound = bytes(&world.env, Path::new(&good));
        for at in 0..sound.len() {
            for cut in [false, true] {
                let mut damaged = sound.clone();
                match cut {
                    true => damaged.truncate(at),
                    false => damaged[at] ^= 1 << (at % 8),
                }
                let mut file = world.env.create(Path::new("/bad")).unwrap();
                file.write_all(&damaged).unwrap();
                file.sync().unwrap();
                drop(file);
                let error = ingest(space, &["/bad"]).unwrap_err();
                assert_eq!(error.path(), Some(Path::new("/bad")), "byte {at}: {error}");
                world.env.remove_file(Path::new("/bad")).unwrap();
            }
        }
        assert_eq!(shown(space), "");
        ingest(space, &[&good]).unwrap();
    }
}

/// Tables of all kinds, with and without numbers.
fn all_kinds() -> Vec<Vec<u8>> {
    let world = World::default();
    let key = |number: u32| format!("key-{number:03}");
    let timed = world.table("/timed", None, |writer| {
        (0..40).try_for_each(|number| match number % 4 {
            0 => writer.put(key(number), "stays"),
            1 => writer.delete(key(number)),
            _ => writer.put_until(key(number), "goes", u64::from(number)),
        })
    });
    let all_timed = world.table("/all", None, |writer| {
        let seq = |number: u32| SeqNo(u64::from(7 + number % 5));
        (0..40).try_for_each(|number| writer.put_until_at(key(number), "goes", 30, seq(number)))
    });
    let operands = world.table("/operands", Some("append"), |writer| {
        (0..40).try_for_each(|number| writer.combine(key(number), "operand"))
    });
    let numbered = world.table("/numbered", Some("append"), |writer| {
        (0..40).try_for_each(|number| writer.combine_at(key(number), "operand", SeqNo(7)))
    });
    let hiding = world.table("/erasing", None, |writer| {
        writer.delete_range("key-003".."key-009")?;
        writer.delete_range("key-020"..)?;
        (0..40).try_for_each(|number| writer.put(key(number), "value"))
    });
    let made = [timed, all_timed, operands, numbered, hiding];
    made.iter().map(|path| bytes(&world.env, Path::new(path))).collect()
}

#[test]
fn changed_tables_with_right_checksums_are_sound_or_refused() {
    static KINDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    fuzz!(3000, |choices| {
        let kinds = KINDS.get_or_init(all_kinds);
        let base = &kinds[choices.below(kinds.len())];
        let (changed, _) = TableParts::new(base).mutant(choices);
        let world = World::default();
        let store = world.open();
        let options = [numbers(expiring(None)), numbers(with("append"))];
        for (name, options) in ["timed", "operands"].into_iter().zip(options) {
            let space = store.keyspace_with(name, &options).unwrap();
            space.put("key-020", "beneath").unwrap();
            let mut file = world.env.create(Path::new("/bad")).unwrap();
            file.write_all(&changed).unwrap();
            file.sync().unwrap();
            drop(file);
            match ingest(&space, &["/bad"]) {
                Ok(()) => {
                    TAKEN.fetch_add(1, Ordering::Relaxed);
                    let found = contents(&space).len();
                    assert_eq!(space.iter().rev().count(), found);
                    assert!(store.verify().unwrap().is_empty());
                    space.merge().unwrap();
                    assert_eq!(contents(&space).len(), found);
                }
                Err(error) => {
                    assert_eq!(error.path(), Some(Path::new("/bad")), "{error}");
                    let kinds =
                        [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
                    assert!(kinds.contains(&error.kind()), "{error}");
                }
            }
            world.env.remove_file(Path::new("/bad")).unwrap();
        }
    });
    // A changed value, say, is no damage.
    assert!(TAKEN.load(Ordering::Relaxed) > 0);
}
