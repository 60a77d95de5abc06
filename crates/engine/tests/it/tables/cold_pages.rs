//! Mapped tables that are only partly in memory.
//!
//! Promised: while access to blocks takes as long as a device does, every block is requested as a
//! whole before it is read, and a seek requests the blocks of all runs before it reads one. While
//! access takes as long as memory does, nothing is requested. Answers are the same.

use crate::frame::small::plain_at;
use crate::frame::watched::{Look, Watch, Watched, announces};
use lsmith::{DEFAULT_KEYSPACE, Keyspace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const KEYS: u32 = 4000;
const RUNS: u32 = 4;
const BLOCK_BYTES: u64 = 500;

/// More blocks than are requested after a slow access, and more than are read between two timed
/// ones.
const MANY: u32 = 200;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Returns a key of the run that holds every fourth key from `run` on. All runs have keys on both
/// sides of it, in several blocks.
fn key_of(run: u32, index: u32) -> u32 {
    KEYS / 4 + index * 37 % (KEYS / 8) * RUNS + run
}

/// Makes a store of one table per run, whose keys alternate.
fn open(dir: &Path, env: &Watched) -> Keyspace {
    let builder = plain_at(dir, env).policy("none").lockstep(true);
    let store = builder.block_bytes(BLOCK_BYTES as usize).log_bytes(64 << 10).open().unwrap();
    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    for run in 0..RUNS {
        for number in (run..KEYS).step_by(RUNS as usize) {
            space.put(key(number), [number as u8; 30]).unwrap();
        }
        space.flush().unwrap();
    }
    assert_eq!(space.tree().disk_run_count(), RUNS as usize);
    space
}

fn get(space: &Keyspace, number: u32) {
    assert_eq!(space.get(key(number)).unwrap().as_deref(), Some(&[number as u8; 30][..]));
}

/// Gets keys of all runs.
fn get_many(space: &Keyspace) {
    (0..MANY).for_each(|index| get(space, key_of(index % RUNS, index)));
}

fn seek(space: &Keyspace, number: u32) {
    let mut entries = space.range(key(number)..);
    assert_eq!(entries.next().unwrap().unwrap().0[..], key(number));
}

fn seek_back(space: &Keyspace, number: u32) {
    let mut entries = space.range(..key(number));
    assert_eq!(entries.next_back().unwrap().unwrap().0[..], key(number - 1));
}

#[test]
fn nothing_is_asked_for_while_looks_are_fast() {
    let dir = tempfile::tempdir().unwrap();
    let env = Watch::new();
    let space = open(dir.path(), &env);
    env.all_takes(Duration::from_micros(2));
    let calls = env.calls(|| {
        get_many(&space);
        for index in 0..MANY {
            seek(&space, key_of(index % RUNS, index));
            seek_back(&space, key_of(index % RUNS, index));
        }
    });
    assert_eq!(announces(&calls), 0);
    // Few looks are timed, at two looks at the clock each; a seek looks into all runs.
    let looks = (MANY * (1 + 2 * RUNS)) as usize;
    assert!((1..looks / 4).contains(&calls.len()), "{} of {looks}", calls.len());
}

/// Makes a store in which readers have waited for some blocks.
fn cold() -> (tempfile::TempDir, Watched, Keyspace) {
    let dir = tempfile::tempdir().unwrap();
    let env = Watch::new();
    let space = open(dir.path(), &env);
    env.all_takes(Duration::from_millis(1));
    get_many(&space);
    (dir, env, space)
}

#[test]
fn a_seek_asks_for_a_block_of_each_run_before_it_looks_at_one() {
    let (_dir, env, space) = cold();
    for index in 0..MANY {
        let number = key_of(index % RUNS, index);
        for calls in [env.calls(|| seek(&space, number)), env.calls(|| seek_back(&space, number))] {
            // Where the key lies behind all of a block, that behind it is asked for later.
            let at_once = calls.iter().map_while(|call| match call {
                Look::Announce(path, _) => Some(path),
                Look::Clock => None,
            });
            let tables: BTreeSet<_> = at_once.clone().collect();
            assert_eq!((at_once.count(), tables.len()), (RUNS as usize, RUNS as usize));
            assert!(calls.len() > announces(&calls), "looks are timed: {calls:?}");
        }
    }
}

#[test]
fn a_get_asks_for_all_of_its_block_before_it_looks_at_it() {
    let (_dir, env, space) = cold();
    for index in 0..MANY {
        let calls = env.calls(|| get(&space, key_of(index % RUNS, index)));
        // More than one where a filter lets a key pass that its table has not got.
        for look in calls.chunks(3) {
            let [Look::Announce(_, block), Look::Clock, Look::Clock] = look else {
                panic!("{calls:?}");
            };
            let bytes = block.end - block.start;
            assert!((BLOCK_BYTES / 2..BLOCK_BYTES * 2).contains(&bytes), "{bytes} bytes");
        }
        assert!(announces(&calls) >= 1);
    }
}

/// Returns how many blocks were asked for one after the other, with no look between them.
fn asked_together(calls: &[Look]) -> Vec<usize> {
    let parts = calls.split(|call| *call == Look::Clock);
    parts.map(<[Look]>::len).filter(|count| *count > 1).collect()
}

#[test]
fn a_read_of_many_keys_asks_for_the_blocks_of_16_before_it_looks_at_one() {
    let (_dir, env, space) = cold();
    let numbers: Vec<u32> = (0..MANY).map(|index| key_of(index % RUNS, index)).collect();
    let read = || {
        let values = space.multi_get(numbers.iter().copied().map(key)).unwrap();
        for (number, value) in numbers.iter().zip(values) {
            assert_eq!(value.as_deref(), Some(&[*number as u8; 30][..]));
        }
    };
    // The first read of each 16 waits, and the others find their blocks there.
    let calls = env.calls(read);
    let together = asked_together(&calls);
    assert_eq!(together.len(), numbers.len().div_ceil(16), "{together:?}");
    assert!(together[..together.len() - 1].iter().all(|count| *count >= 16), "{together:?}");
    env.all_takes(Duration::ZERO);
    read();
    assert_eq!(announces(&env.calls(read)), 0, "looks are fast again");
}

#[test]
fn a_scan_asks_for_no_block_twice() {
    let (_dir, env, space) = cold();
    let calls = env.calls(|| assert_eq!(space.iter().count(), KEYS as usize));
    let mut asked: BTreeMap<&Path, u64> = BTreeMap::new();
    for call in &calls {
        let Look::Announce(path, range) = call else { continue };
        let upto = asked.entry(path).or_default();
        assert!(range.start >= *upto, "{calls:?}");
        *upto = range.end;
    }
    assert_eq!(asked.len(), RUNS as usize);
}

#[test]
fn asking_ends_when_looks_are_fast_again() {
    let (_dir, env, space) = cold();
    env.all_takes(Duration::ZERO);
    let asked = announces(&env.calls(|| get_many(&space)));
    assert!((1..MANY as usize / 2).contains(&asked), "{asked}");
    assert_eq!(announces(&env.calls(|| get_many(&space))), 0);
    // And begins again.
    env.all_takes(Duration::from_millis(1));
    get_many(&space);
    assert!(announces(&env.calls(|| get_many(&space))) >= MANY as usize);
}

/// Makes a store whose entries all lie in one tree, to which each batch added every tenth key.
fn open_tree(dir: &Path, env: &Watched) -> Keyspace {
    let tree = "jungle(c=1000, ratio=10, table=1GiB)";
    let builder = plain_at(dir, env).policy(tree).lockstep(true);
    let store = builder.block_bytes(BLOCK_BYTES as usize).log_bytes(64 << 10).open().unwrap();
    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    for batch in 0..10 {
        for number in (batch..KEYS).step_by(10) {
            space.put(key(number), [number as u8; 100]).unwrap();
        }
        space.flush().unwrap();
    }
    let tree = space.tree();
    let trees: Vec<_> = tree.disk_runs().flat_map(|run| run.slices().to_vec()).collect();
    assert!(trees.len() == 1 && trees[0].is_append(), "{tree}");
    space
}

fn scan_tree(space: &Keyspace) {
    let entries = space.iter().map(|entry| entry.unwrap());
    assert!(entries.enumerate().all(|(n, entry)| entry.1[..] == [n as u8; 100]));
}

#[test]
fn a_scan_of_a_tree_asks_for_a_window_of_values_before_it_looks_at_them() {
    let dir = tempfile::tempdir().unwrap();
    let env = Watch::new();
    let space = open_tree(dir.path(), &env);
    env.all_takes(Duration::from_micros(2));
    scan_tree(&space);
    // While looks are fast nothing is asked for.
    assert_eq!(announces(&env.calls(|| scan_tree(&space))), 0);
    env.all_takes(Duration::from_millis(1));
    scan_tree(&space);
    let calls = env.calls(|| scan_tree(&space));
    let asked = calls.iter().filter_map(|call| match call {
        Look::Announce(_, range) => Some(range.end - range.start),
        Look::Clock => None,
    });
    let asked: Vec<u64> = asked.collect();
    let blocks = u64::from(KEYS) * 100 / BLOCK_BYTES;
    // Windows of up to half a megabyte, each with a piece for each of ten batches, and leaves.
    assert!(asked.len() as u64 * 4 < blocks, "{} of {blocks} blocks", asked.len());
    let bytes: u64 = asked.iter().sum();
    let file = space.stats().table_bytes;
    assert!(bytes > file / 2 && bytes < file * 2, "{bytes} of {file} bytes");
    env.all_takes(Duration::ZERO);
    scan_tree(&space);
    scan_tree(&space);
    assert_eq!(announces(&env.calls(|| scan_tree(&space))), 0);
}
