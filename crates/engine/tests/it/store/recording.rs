//! Recordings of what callers do.

use crate::dice::Dice;
use crate::frame::operators::Append;
use crate::frame::small::{fill, open, plain, small, small_on_disk, threaded};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass, RealEnv};
use lsmith::{
    Batch, Clock, ErrorKind, Event, Expiry, Isolation, Iter, Keyspace, KeyspaceOptions, Observer,
    PersistMode, RecordOptions, RecordRequest, Recording, Store,
};

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const FOLDER: &str = "/recordings";

fn one_in(one_in: u32) -> RecordOptions {
    RecordOptions { one_in, ..RecordOptions::default() }
}

fn text(env: &impl Env, path: &Path) -> String {
    let file = env.open(path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the lines of operations and keyspaces, without times.
fn lines(env: &impl Env, path: &Path) -> Vec<String> {
    let text = text(env, path);
    let others = ["lsmith ", "sample,", "counts,", "check,"];
    let lines = text.lines().filter(|line| !others.iter().any(|other| line.starts_with(other)));
    let timeless = |line: &str| match line.split_once(',') {
        Some((time, rest)) if time.parse::<u64>().is_ok() => rest.to_owned(),
        _ => line.to_owned(),
    };
    lines.map(timeless).collect()
}

fn stop(store: &Store) -> Recording {
    store.stop_recording().unwrap().expect("a recording was begun")
}

#[test]
fn every_kind_of_operation_is_recorded() {
    let env = MemEnv::new();
    let store = small(&env).operator(Append).open().unwrap();
    let options = KeyspaceOptions { operator: Some("append".into()), ..Default::default() };
    let plain = store.keyspace_with("plain", &options).unwrap();
    let member = KeyspaceOptions { group: Some("both".into()), ..Default::default() };
    let [left, right] = ["left", "right"].map(|name| store.keyspace_with(name, &member).unwrap());
    plain.put("there", "before").unwrap();
    plain.put("gone", "before").unwrap();
    plain.delete("gone").unwrap();

    let path = store.record(FOLDER, &one_in(1)).unwrap();
    plain.put("a", "12").unwrap();
    plain.put_new_unchecked("b", "").unwrap();
    plain.delete("a").unwrap();
    plain.delete_single_unchecked("b").unwrap();
    plain.combine("c", "123").unwrap();
    plain.get("a b\u{0},\\").unwrap();
    plain.delete_range("a".."c").unwrap();
    plain.delete_range::<&str>(..).unwrap();
    let mut batch = Batch::new();
    batch.put(&left, "l", "1");
    batch.put(&right, "r", "22");
    store.write(batch, PersistMode::Buffer).unwrap();
    assert_eq!(right.range("q"..).take(1).count(), 1);
    assert_eq!(left.iter().count(), 1);
    drop(left.iter());
    right.delete_range("q"..).unwrap();
    store.snapshot().get(&right, "r").unwrap();
    let recording = stop(&store);

    assert_eq!((recording.path.as_path(), recording.base_keys), (path.as_path(), 1));
    assert_eq!((recording.ops, recording.has_base, recording.ended), (14, true, None));
    assert_eq!(recording.bytes as usize, text(&env, &path).len());
    let last = "\\xff".repeat(64);
    let expected = [
        "keyspace,0,4000,plain,minlatency(k=6)",
        "load,0,there,6",
        "base",
        "put,0,a,2",
        "put,0,b,0",
        "delete,0,a,0",
        "delete,0,b,0",
        "combine,0,c,3",
        "get,0,a\\x20b\\x00\\x2c\\x5c,0",
        "delete_range,0,a,0,c",
        &format!("delete_range,0,\\x00,0,{last}"),
        "keyspace,1,4000,left,minlatency(k=6)",
        "put,1,l,1",
        "keyspace,2,4000,right,minlatency(k=6)",
        "put,2,r,2",
        "scan,2,q,1",
        // An entry, and the end.
        "scan,1,\\x00,2",
        &format!("delete_range,2,q,0,{last}"),
        "get,2,r,0",
    ];
    assert_eq!(lines(&env, &path), expected);
}

/// Also of a value that was there. By a clock that does not say how long a tick is, lives are not
/// known.
#[test]
fn lives_are_recorded_in_microseconds() {
    let env = MemEnv::new();
    let options = KeyspaceOptions { expiry: Some(Expiry::after(60)), ..Default::default() };
    for (clock, lives) in [
        (Clock::new("shown", || 100).with_tick(Duration::from_millis(20)), true),
        (Clock::new("shown", || 100), false),
    ] {
        let store = small(&env).clock(clock).open().unwrap();
        let cache = store.keyspace_with("cache", &options).unwrap();
        cache.put_until("there", "before", 150).unwrap();
        let path = store.record(FOLDER, &one_in(1)).unwrap();
        cache.put("a", "1").unwrap();
        cache.put_until("b", "12", 107).unwrap();
        cache.put_until("late", "123", 99).unwrap();
        stop(&store);
        let with = |line: &str, life: &str| match lives {
            true => format!("{line},{life}"),
            false => line.replace("load_until", "load"),
        };
        let expected = [
            "keyspace,0,4000,cache,minlatency(k=6)".to_owned(),
            with("load_until,0,there,6", "1000000"),
            "base".to_owned(),
            with("put_until,0,a,1", "1200000"),
            with("put_until,0,b,2", "140000"),
            with("put_until,0,late,3", "0"),
        ];
        assert_eq!(lines(&env, &path), expected);
        cache.delete_range("a".."m").unwrap();
    }
}

/// Of each key either everything is recorded or nothing.
#[test]
fn keys_are_picked_with_all_that_is_done_to_them() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env));
    let path = store.record(FOLDER, &one_in(8)).unwrap();
    for round in 0..3 {
        fill(&space, 0..4000, "value");
        for number in 0..4000_u32 {
            space.get(number.to_be_bytes()).unwrap();
        }
        assert_eq!(space.range(0_u32.to_be_bytes()..).take(10 + round).count(), 10 + round);
    }
    stop(&store);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines(&env, &path).iter().filter(|line| !line.starts_with("keyspace")) {
        let fields: Vec<&str> = line.split(',').collect();
        if let [op, _, key, ..] = fields[..] {
            found.entry(key.to_owned()).or_default().push(op.to_owned());
        }
    }
    // The first of the three scans is the eighth part of them.
    let scanned = found.get_mut("\\x00\\x00\\x00\\x00").unwrap();
    let scans = scanned.iter().filter(|op| *op == "scan").count();
    assert_eq!(scans, 1);
    scanned.retain(|op| op != "scan");
    found.retain(|_, ops| !ops.is_empty());
    assert!((400..600).contains(&found.len()), "{} of 4000 keys in 8", found.len());
    let all = ["put", "get"].repeat(3);
    assert!(found.values().all(|ops| *ops == all), "{found:?}");
}

/// Threads read what is there at the beginning, while writers go on.
#[test]
fn a_base_is_what_was_there_when_the_recording_began() {
    let env = MemEnv::new();
    let (store, space) = open(threaded(&env).memtable_bytes(100_000));
    fill(&space, 0..30_000, "old");
    space.delete_range(10_000_u32.to_be_bytes()..20_000_u32.to_be_bytes()).unwrap();
    let path = store.record(FOLDER, &one_in(4)).unwrap();
    fill(&space, 0..40_000, "newer");
    let patience = Instant::now() + Duration::from_secs(60);
    while !store.recording().unwrap().has_base {
        assert!(Instant::now() < patience, "{:?}", store.recording());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop((space, store));
    let lines = lines(&env, &path);
    let numbers = |op: &str, size: &str| {
        let of_op = lines.iter().filter(|line| line.starts_with(op) && line.ends_with(size));
        let keys = of_op.map(|line| key(line.split(',').nth(2).unwrap()));
        keys.map(|key| u32::from_be_bytes(key.try_into().unwrap())).collect::<BTreeSet<u32>>()
    };
    let (base, put) = (numbers("load", ",3"), numbers("put", ",5"));
    assert!((9_000..11_000).contains(&put.len()), "{} of 40,000 in 4", put.len());
    // The same keys are picked, with the values that they had.
    let was_there = |number: &&u32| **number < 10_000 || (20_000..30_000).contains(*number);
    assert_eq!(base, put.iter().filter(was_there).copied().collect::<BTreeSet<u32>>());
    assert_eq!(lines.iter().filter(|line| *line == "base").count(), 1);
}

#[test]
fn a_recording_that_cannot_be_written_ends_alone() {
    let env = FaultEnv::new(Arc::new(MemEnv::new()));
    let (store, space) = open(plain(&env));
    store.record(FOLDER, &one_in(1)).unwrap();
    fill(&space, 0..10, "value");
    let kind = std::io::ErrorKind::StorageFull;
    let class = Some(OpClass::Write);
    env.set(Fault { class, after: 0, lasting: Lasting::Forever, kind });
    for number in 0..10_000_u32 {
        space.get(number.to_be_bytes()).unwrap();
    }
    let told = store.recording().unwrap();
    let why = told.ended.clone().expect("no part can be written");
    assert!(why.contains("0001.recording"), "{why}");
    env.clear();
    fill(&space, 0..10_000, "value");
    assert_eq!(store.recording().unwrap().ops, told.ops, "it has ended");
    assert_eq!(stop(&store).ended, Some(why));
    // The next one is a new file.
    let path = store.record(FOLDER, &one_in(1)).unwrap();
    assert!(path.ends_with("0002.recording"), "{}", path.display());
}

#[test]
fn a_recording_ends_at_its_length_and_after_its_time() {
    let env = MemEnv::new();
    let (store, space) = open(plain(&env));
    store.record(FOLDER, &RecordOptions { bytes_max: 100_000, ..one_in(1) }).unwrap();
    fill(&space, 0..10_000, "value");
    let told = stop(&store);
    assert_eq!(told.ended.as_deref(), Some("it has reached 100000 bytes"));
    assert!((100_000..200_000).contains(&told.bytes), "{told:?}");
    assert_eq!(text(&env, &told.path).len() as u64, told.bytes);

    let time_max = Some(Duration::ZERO);
    store.record(FOLDER, &RecordOptions { time_max, ..one_in(1) }).unwrap();
    fill(&space, 0..10, "value");
    let told = stop(&store);
    assert_eq!((told.ended.as_deref(), told.ops), (Some("its time is over"), 1));
}

#[test]
fn a_recording_that_makes_no_sense_is_refused() {
    let env = MemEnv::new();
    let (store, _space) = open(small(&env));
    let refused = |store: &Store, options: &RecordOptions| {
        let error = store.record(FOLDER, options).unwrap_err();
        (error.kind(), error.to_string())
    };
    for share in [0, (1 << 20) + 1] {
        let (kind, message) = refused(&store, &one_in(share));
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert!(message.contains("expected 1 to 1048576"), "{message}");
    }
    store.record(FOLDER, &one_in(2)).unwrap();
    let (kind, message) = refused(&store, &one_in(2));
    assert_eq!(kind, ErrorKind::InvalidArgument);
    assert!(message.contains("0001.recording"), "{message}");
    let reader = plain(&env).read_only(true).open().unwrap();
    assert_eq!(refused(&reader, &one_in(2)).0, ErrorKind::ReadOnly);
    assert_eq!(env.list(Path::new(FOLDER)).unwrap(), ["0001.recording"]);
}

/// A builder records from the opening on, and each life has a file of its own.
#[test]
fn a_store_can_be_recorded_in_each_life() {
    let env = MemEnv::new();
    for life in 1..=3_u32 {
        let (store, space) = open(small(&env).record(FOLDER, one_in(1)));
        fill(&space, [life], "value");
        let told = store.recording().unwrap();
        assert_eq!((told.ops, told.base_keys), (1, u64::from(life) - 1));
        drop((space, store));
        assert!(lines(&env, &told.path).contains(&format!("put,0,\\x00\\x00\\x00\\x0{life},5")));
    }
    drop(plain(&env).read_only(true).record(FOLDER, one_in(1)).open().unwrap());
    assert_eq!(env.list(Path::new(FOLDER)).unwrap().len(), 3);
}

#[test]
fn another_process_can_ask_for_a_recording() {
    let env = RealEnv::new();
    let parent = tempfile::tempdir().unwrap();
    let (dir, folder) = (&*parent.path().join("store"), parent.path().join("recordings"));
    let request = RecordRequest { folder: folder.clone(), options: one_in(1) };
    assert_eq!(request.put(&env, dir).unwrap_err().kind(), ErrorKind::NotFound);
    let (store, space) = open(small_on_disk(dir).lockstep(false));
    request.put(&env, dir).unwrap();
    let again = request.put(&env, dir).unwrap_err().to_string();
    assert!(again.contains("--stop"), "{again}");
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let patience = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < patience, "{what}: {:?}", store.recording());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait("it begins", &|| store.recording().is_some());
    fill(&space, [7], "value");
    assert!(RecordRequest::withdraw(&env, dir).unwrap());
    wait("it ends", &|| store.recording().is_none());
    assert!(!RecordRequest::withdraw(&env, dir).unwrap());
    let path = folder.join("0001.recording");
    assert!(lines(&env, &path).contains(&"put,0,\\x00\\x00\\x00\\x07,5".to_owned()));
    // What is no request does nothing.
    env.create(&dir.join("RECORD")).unwrap().write_all(b"record please").unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    assert!(store.recording().is_none());
    // A request is a file of the store.
    assert_eq!(store.left_out().unwrap(), []);
    drop((space, store));
    assert!(Store::builder(dir).destroy().unwrap().is_empty());
    assert!(!dir.exists());
}

/// Returns the bytes of a key.
fn key(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (byte, taken) = match rest.strip_prefix("\\x") {
            Some(digits) => (u8::from_str_radix(&digits[..2], 16).unwrap(), 4),
            None => (first as u8, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    bytes
}

/// Returns the keys of each keyspace at the end of a recording, with the lengths of their values.
fn replayed(lines: &[String]) -> BTreeMap<String, BTreeMap<Vec<u8>, usize>> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut spaces: BTreeMap<String, BTreeMap<Vec<u8>, usize>> = BTreeMap::new();
    // The base comes first, wherever its lines stand.
    for is_base in [true, false] {
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            if let ["keyspace", number, _, name, ..] = fields[..] {
                names.insert(number, name);
                continue;
            }
            let [op, number, bytes, size, ref end @ ..] = fields[..] else { continue };
            if (op == "load") != is_base {
                continue;
            }
            let space = spaces.entry(names[number].to_owned()).or_default();
            match op {
                "load" | "put" => drop(space.insert(key(bytes), size.parse().unwrap())),
                "delete" => drop(space.remove(&key(bytes))),
                "delete_range" => {
                    let range = key(bytes)..key(end[0]);
                    space.retain(|key, _| !range.contains(key));
                }
                "get" | "scan" => {}
                op => panic!("unknown op {op}"),
            }
        }
    }
    spaces.retain(|_, keys| !keys.is_empty());
    spaces
}

/// Whatever several threads write in whatever way, a recording of all keys leads to the same keys.
#[test]
fn recordings_of_busy_stores_lead_to_what_is_there() {
    let env = MemEnv::new();
    for life in 0..4_u64 {
        let builder = threaded(&env).record(FOLDER, one_in(1));
        let store = builder.open().unwrap();
        let group = KeyspaceOptions { group: Some("both".into()), ..Default::default() };
        let options = [KeyspaceOptions::default(), group.clone(), group];
        let names = ["alone", "left", "right"];
        let open = |(name, options)| store.keyspace_with(name, options).unwrap();
        let spaces: Vec<_> = names.into_iter().zip(&options).map(open).collect();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (store, spaces) = (&store, &spaces);
                scope.spawn(move || work(store, spaces, &mut Dice::new(10 * life + thread)));
            }
        });
        // The base of a short life may be unread at its end.
        let patience = Instant::now() + Duration::from_secs(60);
        while !store.recording().unwrap().has_base {
            assert!(Instant::now() < patience, "{:?}", store.recording());
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut there = BTreeMap::new();
        for (name, space) in names.iter().zip(&spaces) {
            let entries = space.iter().map(|entry| entry.unwrap());
            let keys = entries.map(|(key, value)| (key.to_vec(), value.len()));
            there.insert((*name).to_owned(), keys.collect::<BTreeMap<_, _>>());
        }
        there.retain(|_, keys| !keys.is_empty());
        let path = store.recording().unwrap().path;
        drop((spaces, store));
        assert_eq!(replayed(&lines(&env, &path)), there, "life {life}");
    }
}

fn work(store: &Store, spaces: &[Keyspace], dice: &mut Dice) {
    for _ in 0..400 {
        let space = dice.pick(spaces);
        let key = (dice.below(300) as u16).to_be_bytes();
        let value = vec![0; dice.below(50)];
        match dice.below(8) {
            0..3 => space.put(key, value).unwrap(),
            3 => space.delete(key).unwrap(),
            4 => {
                let end = (u16::from_be_bytes(key) + 7).to_be_bytes();
                space.delete_range(key..end).unwrap();
            }
            5 => {
                let mut batch = Batch::new();
                for space in spaces {
                    batch.put(space, key, &value);
                    batch.delete(space, [key[1], key[0]]);
                }
                batch.delete_range(&spaces[1], [200_u8]..);
                store.write(batch, PersistMode::Buffer).unwrap();
            }
            6 => {
                let mut transaction = store.transaction(Isolation::Snapshot);
                let _ = transaction.put(space, key, &value);
                let _ = transaction.delete_range(space, ..[0_u8, 3]);
                // Another thread may have written the key.
                let _ = transaction.commit(PersistMode::Buffer);
            }
            _ => drop(space.get(key).unwrap()),
        }
    }
}

/// Lets go of an iterator when something happens, under the locks of the store.
#[derive(Debug, Default)]
struct Dropper(Mutex<Option<Iter>>);

impl Observer for Dropper {
    fn on_event(&self, _: &str, _: &Event<'_>) {
        drop(self.0.lock().unwrap().take());
    }
}

/// The first that is recorded of the keyspace is a scan that an observer ends.
#[test]
fn an_observer_may_drop_a_recorded_scan() {
    let env = MemEnv::new();
    let dropper = Arc::new(Dropper::default());
    let (store, space) = open(small(&env).observer(Arc::clone(&dropper) as _));
    fill(&space, 0..10, "value");
    store.record(FOLDER, &RecordOptions { base: false, ..one_in(1) }).unwrap();
    let mut entries = space.iter();
    entries.next().unwrap().unwrap();
    *dropper.0.lock().unwrap() = Some(entries);
    space.flush().unwrap();
    let told = stop(&store);
    assert_eq!((told.ops, lines(&env, &told.path)[1].as_str()), (1, "scan,0,\\x00,1"));
}
