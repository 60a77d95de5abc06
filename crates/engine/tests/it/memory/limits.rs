//! The memory of a whole process.
//!
//! Promised: a process that does nothing but use a store stays within the limit of the store to a
//! tenth, also while it fills, overwrites, scans and reads several keyspaces at full speed. If
//! nothing is said of memory, the store takes half of what its control group leaves, and a group
//! that kills at its limit does not kill it. Four stores stay within one limit as one store does.
//!
//! The child process is this test binary, with its orders in environment variables. It samples its
//! own memory without pages of files, and tells the most that it held.

use lsmith::{Builder, Keyspace, KeyspaceOptions, Memory, Store, Threads};
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The environment variables of the child: the directory, the options, and the number of keys.
const DIR: &str = "LSMITH_LIMIT_DIR";
const OPTIONS: &str = "LSMITH_LIMIT_OPTIONS";
const KEYS: &str = "LSMITH_LIMIT_KEYS";

const MIB: u64 = 1 << 20;

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the bytes of memory that this process holds, without pages of files.
fn anon_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Calls `work`, and returns the most bytes of memory that this process held meanwhile.
fn most_during(work: impl FnOnce()) -> u64 {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                most = anon_bytes().max(most);
                thread::sleep(Duration::from_millis(2));
            }
            most
        });
        work();
        over.store(true, Ordering::Relaxed);
        sampler.join().unwrap()
    })
}

/// Returns four keyspaces under different policies: of `stores` in turns.
fn spaces_of(stores: &[Store]) -> [Keyspace; 4] {
    let with = |index: usize, name: &str, policy: Option<&str>| {
        let policy = policy.map(Into::into);
        let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
        stores[index % stores.len()].keyspace_with(name, &options).unwrap()
    };
    [
        with(0, "default", None),
        with(1, "packed", Some("tiered(ratio=4)")),
        with(2, "levels", Some("leveled(ratio=4, l0=4)")),
        with(3, "rare", Some("minlatency(k=3)")),
    ]
}

/// Fills, overwrites and reads keyspaces of `stores`, with `keys` keys in all.
fn use_all(stores: &[Store], keys: u64) {
    let spaces = spaces_of(stores);
    // Its blocks are in the cache.
    spaces[1].set_compression("lz4").unwrap();
    let each = keys / 8;
    let space = |number: u64| -> &Keyspace {
        match number % 8 {
            0..4 => &spaces[0],
            4..6 => &spaces[1],
            6 => &spaces[2],
            _ => &spaces[3],
        }
    };
    let value = |number: u64, round: u64| {
        let mut value = [b'v'; 100];
        value[..8].copy_from_slice(&(number ^ round << 32).to_le_bytes());
        value
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !over.load(Ordering::Relaxed) {
                for _ in 0..2000 {
                    number += 1;
                    let at = number.wrapping_mul(0x9e37_79b9) % keys;
                    space(at).get(key(at)).unwrap();
                }
                let from = key(number);
                let entries = spaces[number as usize % 4].range(from..).take(2000);
                entries.for_each(|entry| drop(entry.unwrap()));
            }
        });
        for round in 0..2 {
            for number in 0..keys {
                space(number).put(key(number), value(number, round)).unwrap();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    stores.iter().for_each(|store| store.settle().unwrap());
    for number in (0..each * 8).step_by(5) {
        let found = space(number).get(key(number)).unwrap().unwrap();
        assert_eq!(found, value(number, 1)[..]);
    }
    assert_eq!(spaces.iter().map(|space| space.iter().count() as u64).sum::<u64>(), keys);
}

/// Opens one store, or four within one limit.
fn open_all(dir: &Path, options: &str) -> (Vec<Store>, Option<Memory>) {
    let Some(bytes) = options.strip_prefix("four ") else {
        return (vec![builder(dir, options).open().unwrap()], None);
    };
    let memory = Memory::new(bytes.parse().unwrap());
    let threads = Threads::new(2).unwrap();
    let open = |index: usize| {
        let builder = Store::builder(dir.join(index.to_string()));
        builder.memory(&memory).shared_threads(&threads).open().unwrap()
    };
    ((0..4).map(open).collect(), Some(memory))
}

fn builder(dir: &Path, options: &str) -> Builder {
    let builder = Store::builder(dir);
    match options.parse() {
        Ok(bytes) => builder.memory_bytes(bytes),
        Err(_) if options == "large" => builder.memtable_bytes(56 << 20).cache_bytes(64 << 20),
        Err(_) => builder,
    }
}

/// The child: waits for a byte, uses a store, and tells the most memory that it held, the most that
/// the store counted, and its limit.
#[test]
fn child() {
    let Some(dir) = env::var_os(DIR) else { return };
    let keys = env::var(KEYS).unwrap().parse().unwrap();
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let (stores, memory) = open_all(Path::new(&dir), &env::var(OPTIONS).unwrap());
    let count =
        || memory.as_ref().map_or_else(|| stores[0].memory().total(), |memory| memory.bytes());
    let counted = AtomicBool::new(false);
    let mut most_counted = 0;
    let most = most_during(|| {
        thread::scope(|scope| {
            let counter = scope.spawn(|| {
                let mut most = 0;
                while !counted.load(Ordering::Relaxed) {
                    most = count().max(most);
                    thread::sleep(Duration::from_millis(10));
                }
                most
            });
            use_all(&stores, keys);
            counted.store(true, Ordering::Relaxed);
            most_counted = counter.join().unwrap();
        });
    });
    let held = stores[0].memory();
    thread::sleep(Duration::from_millis(500));
    eprintln!("at the end: {} of the process, {held:?}", anon_bytes());
    println!("told: {most} {most_counted} {}", held.limit.unwrap_or(0));
}

/// What a child has told.
#[derive(Debug)]
struct Told {
    most: u64,
    counted: u64,
    limit: u64,
}

/// Runs a child in the group behind `door`, if there is one.
fn run(options: &str, keys: u64, door: Option<&Path>) -> (ExitStatus, Option<Told>) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "memory::limits::child", "--nocapture"]).env(DIR, dir.path());
    command.env(OPTIONS, options).env(KEYS, keys.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    if let Some(door) = door {
        fs::write(door, child.id().to_string()).unwrap();
    }
    child.stdin.take().unwrap().write_all(b"!").unwrap();
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let told = text.lines().find_map(|line| line.split_once("told: ")).map(|(_, told)| {
        let numbers: Vec<u64> = told.split(' ').map(|number| number.parse().unwrap()).collect();
        Told { most: numbers[0], counted: numbers[1], limit: numbers[2] }
    });
    (done.status, told)
}

#[test]
fn process_stays_within_the_limit() {
    for (stores, limit, keys) in
        [("", 64 * MIB, 1_200_000), ("", 32 * MIB, 600_000), ("four ", 64 * MIB, 1_200_000)]
    {
        let (status, told) = run(&format!("{stores}{limit}"), keys, None);
        let told = told.unwrap_or_else(|| panic!("the child has failed: {status}"));
        println!("{stores}a limit of {limit}: {told:?}");
        assert_eq!(told.limit, limit);
        assert!(told.most <= limit / 10 * 11, "{told:?}");
        assert!(told.counted <= limit, "{told:?}");
        assert!(told.counted > limit / 2, "what there is is used: {told:?}");
    }
}

/// A group of our own; it goes away when dropped, after its processes have ended.
struct Group(PathBuf);

impl Group {
    /// Returns a group whose processes have `bytes` of memory, or why there is none.
    fn new(bytes: u64) -> Result<Group, String> {
        let mut refused = String::new();
        for (folder, file) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let group = Group(Path::new(folder).join(format!("lsmith-{}", std::process::id())));
            let made = fs::create_dir(&group.0).and_then(|()| {
                fs::metadata(group.door())?;
                fs::write(group.0.join(file), bytes.to_string())
            });
            match made {
                Ok(()) => return Ok(group),
                Err(error) => refused.push_str(&format!("{}: {error}; ", group.0.display())),
            }
        }
        Err(refused)
    }

    fn door(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It may not have been made.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn store_lives_in_a_group_that_kills_at_its_limit() {
    const GROUP: u64 = 96 * MIB;
    let group = match Group::new(GROUP) {
        Ok(group) => group,
        Err(refused) => {
            eprintln!("SKIPPED: no control group can be made here: {refused}");
            return;
        }
    };
    let (status, told) = run("none", 600_000, Some(&group.door()));
    let told = told.unwrap_or_else(|| panic!("the child was killed or has failed: {status}"));
    println!("in a group of {GROUP}: {told:?}");
    assert_eq!(told.limit, GROUP / 2);
    assert!(told.most <= GROUP / 20 * 11, "{told:?}");
    // The group does kill.
    let (status, told) = run("large", 1_200_000, Some(&group.door()));
    assert!(!status.success() && told.is_none(), "{told:?}");
}
