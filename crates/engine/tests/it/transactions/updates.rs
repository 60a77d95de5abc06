//! Calls that read and write in one step.
//!
//! Promised: no two calls take the same entry, none takes an entry while a key that was written
//! before is nearer to the end, and a swap happens only over the value that was expected, whatever
//! other threads write.

use crate::frame::contents::get;
use crate::frame::operators::Append;
use crate::frame::small::small;
use crate::transactions::commits::{conflicts, pairs};
use lsmith::env::MemEnv;
use lsmith::{Combine, CombineError, Isolation, Keyspace, KeyspaceOptions, PersistMode, Store};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

type Entry = Option<(bytes::Bytes, bytes::Bytes)>;

fn text(entry: lsmith::Result<Entry>) -> Option<String> {
    let (key, value) = entry.unwrap()?;
    Some(format!("{}={}", key.escape_ascii(), value.escape_ascii()))
}

/// A keyspace alone, and one in a group beside full neighbours.
fn both() -> [(Store, Keyspace); 2] {
    [None, Some("g".to_string())].map(|group| {
        let store = small(&MemEnv::new()).operator(Append).open().unwrap();
        let operator = Some("append".into());
        let options = KeyspaceOptions { group, operator, ..KeyspaceOptions::default() };
        let spaces = ["x", "a", "z"].map(|name| store.keyspace_with(name, &options).unwrap());
        for space in &spaces {
            space.put("key", "of the neighbour").unwrap();
        }
        let [_, space, _] = spaces;
        space.delete("key").unwrap();
        (store, space)
    })
}

#[test]
fn both_ends_are_read_and_taken() {
    for (store, space) in both() {
        assert_eq!((text(space.first()), text(space.last())), (None, None));
        assert_eq!((text(space.pop_first()), text(space.pop_last())), (None, None));
        for key in ["b", "d", "f"] {
            space.put(key, "1").unwrap();
        }
        store.flush().unwrap();
        space.put("e", "2").unwrap();
        space.delete("f").unwrap();
        let snapshot = store.snapshot();
        let mut one = store.transaction(Isolation::Snapshot);
        one.put(&space, "a", "own").unwrap();
        one.delete_range(&space, "e"..).unwrap();
        assert_eq!(text(space.pop_first()).as_deref(), Some("b=1"));
        assert_eq!(text(space.first()).as_deref(), Some("d=1"));
        assert_eq!(text(space.pop_last()).as_deref(), Some("e=2"));
        assert_eq!(text(space.last()).as_deref(), Some("d=1"));
        assert_eq!(text(snapshot.first(&space)).as_deref(), Some("b=1"));
        assert_eq!(text(snapshot.last(&space)).as_deref(), Some("e=2"));
        assert_eq!(text(one.first(&space)).as_deref(), Some("a=own"));
        assert_eq!(text(one.last(&space)).as_deref(), Some("d=1"));
        assert_eq!(text(one.pop_first(&space)).as_deref(), Some("a=own"));
        assert_eq!(text(one.pop_last(&space)).as_deref(), Some("d=1"));
        assert_eq!(text(one.pop_last(&space)).as_deref(), Some("b=1"));
        assert_eq!(text(one.pop_last(&space)), None);
        drop(one);
        space.combine("d", "+").unwrap();
        assert_eq!(text(space.pop_last()).as_deref(), Some("d=1+"));
        assert!(space.is_empty().unwrap());
    }
}

#[test]
fn two_transactions_do_not_take_the_same_entry() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let [(store, space), _] = both();
        for key in ["a", "b"] {
            space.put(key, "1").unwrap();
        }
        let [mut one, mut two] = [(); 2].map(|()| store.transaction(isolation));
        assert_eq!(text(one.pop_first(&space)), text(two.pop_first(&space)));
        one.commit(PersistMode::Buffer).unwrap();
        conflicts(two.commit(PersistMode::Buffer), "a");
    }
}

#[test]
fn a_value_is_swapped_if_it_is_the_expected_one() {
    for (_store, space) in both() {
        let swap = |expected: Option<&str>, new: Option<&str>| {
            let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
            let (expected, new) = (bytes(expected), bytes(new));
            let swapped = space.compare_and_swap("k", expected.as_deref(), new.as_deref()).unwrap();
            swapped.map_err(|found| found.map(|value| String::from_utf8(value.to_vec()).unwrap()))
        };
        assert_eq!(swap(Some("1"), Some("2")), Err(None));
        assert_eq!(swap(None, Some("1")), Ok(()));
        assert_eq!(swap(None, Some("2")), Err(Some("1".into())));
        assert_eq!(swap(Some("2"), None), Err(Some("1".into())));
        assert_eq!(get(&space, "k").as_deref(), Some("1"));
        space.combine("k", "+").unwrap();
        assert_eq!(swap(Some("1+"), Some("3")), Ok(()));
        assert_eq!(get(&space, "k").as_deref(), Some("3"));
        assert_eq!(swap(Some("3"), None), Ok(()));
        assert_eq!(get(&space, "k"), None);
        assert_eq!(swap(None, None), Ok(()));
        let refused = space.compare_and_swap("", None, Some(b"x")).unwrap_err();
        assert_eq!(refused.kind(), lsmith::ErrorKind::InvalidArgument);
    }
}

/// What somebody else does while a call reads.
type Deed = Box<dyn FnOnce() + Send>;

/// As [`Append`]. The first value that it is asked for lets somebody else act first.
#[derive(Clone, Default)]
struct Interrupted(Arc<Mutex<Option<Deed>>>);

impl Combine for Interrupted {
    fn name(&self) -> &str {
        "interrupted"
    }

    fn combine(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        let deed = self.0.lock().unwrap().take();
        deed.into_iter().for_each(|deed| deed());
        Append.combine(key, value, operands)
    }
}

/// Returns what `call` returns if `deed` is done after it has begun to read. The keyspace has one
/// key, `k`, with the value `1+`.
fn interrupted<T>(call: impl FnOnce(&Keyspace) -> T, deed: fn(&Keyspace)) -> (Keyspace, T) {
    let operator = Interrupted::default();
    let store = small(&MemEnv::new()).operator(operator.clone()).open().unwrap();
    let options =
        KeyspaceOptions { operator: Some("interrupted".into()), ..KeyspaceOptions::default() };
    let space = store.keyspace_with("a", &options).unwrap();
    space.put("k", "1").unwrap();
    space.combine("k", "+").unwrap();
    let other = space.clone();
    *operator.0.lock().unwrap() = Some(Box::new(move || deed(&other)));
    let returned = call(&space);
    assert!(operator.0.lock().unwrap().is_none(), "nobody came in between");
    (space, returned)
}

#[test]
fn a_key_that_comes_in_front_of_an_entry_is_taken_first() {
    let (space, first) =
        interrupted(|space| text(space.pop_first()), |space| space.put("a", "new").unwrap());
    assert_eq!(first.as_deref(), Some("a=new"));
    assert_eq!(text(space.pop_first()).as_deref(), Some("k=1+"));
    let (space, last) =
        interrupted(|space| text(space.pop_last()), |space| space.put("z", "new").unwrap());
    assert_eq!(last.as_deref(), Some("z=new"));
    assert_eq!(text(space.pop_last()).as_deref(), Some("k=1+"));
}

#[test]
fn an_entry_that_somebody_else_takes_meanwhile_is_not_taken_twice() {
    let take = |space: &Keyspace| assert_eq!(text(space.pop_last()).as_deref(), Some("k=1+"));
    assert_eq!(interrupted(|space| text(space.pop_first()), take).1, None);
    let delete = |space: &Keyspace| space.delete_range("a".."z").unwrap();
    assert_eq!(interrupted(|space| text(space.pop_last()), delete).1, None);
}

#[test]
fn a_value_that_changes_during_a_swap_is_not_the_expected_one() {
    for new in [Some(&b"2"[..]), None] {
        let swap = |space: &Keyspace| space.compare_and_swap("k", Some(b"1+"), new).unwrap();
        let (space, swapped) = interrupted(swap, |space| space.put("k", "other").unwrap());
        assert_eq!(swapped.unwrap_err().as_deref(), Some(&b"other"[..]));
        assert_eq!(get(&space, "k").as_deref(), Some("other"));
        // What is written to other keys is in nobody's way.
        let (space, swapped) = interrupted(swap, |space| space.put("l", "other").unwrap());
        assert_eq!(swapped, Ok(()));
        assert_eq!(get(&space, "k").map(String::into_bytes).as_deref(), new);
    }
}

/// They are as durable as the puts of the store.
#[test]
fn updates_survive_power_loss_if_puts_do() {
    let env = MemEnv::new();
    let store = small(&env).persist(PersistMode::SyncData).open().unwrap();
    let space = store.keyspace("a").unwrap();
    for key in ["a", "b", "c"] {
        space.put(key, "1").unwrap();
    }
    let after_loss = || {
        let store = small(&env.crash_clone(7, 0.0)).open().unwrap();
        pairs(store.existing_keyspace("a").unwrap().iter())
    };
    space.pop_first().unwrap();
    assert_eq!(after_loss(), pairs(space.iter()));
    space.pop_last().unwrap();
    assert_eq!(after_loss(), pairs(space.iter()));
    space.compare_and_swap("b", Some(b"1"), Some(b"2")).unwrap().unwrap();
    assert_eq!(after_loss(), [("b".to_string(), "2".to_string())]);
}

const THREADS: usize = 4;
const ENTRIES: usize = 200;

fn key(number: usize) -> String {
    format!("{number:04}")
}

/// Threads take from both ends while one writes between them, and merges go on.
#[test]
fn threads_take_each_entry_once() {
    let env = MemEnv::new();
    let store = small(&env).lockstep(false).open().unwrap();
    let space = store.keyspace("a").unwrap();
    let (early, late) = (0..ENTRIES / 2, ENTRIES / 2..ENTRIES);
    early.for_each(|number| space.put(key(number), "task").unwrap());
    let start = Barrier::new(THREADS + 1);
    let mut taken: Vec<Vec<String>> = thread::scope(|scope| {
        let take = |is_back: bool| {
            let next = || if is_back { space.pop_last() } else { space.pop_first() };
            let mut taken = Vec::new();
            start.wait();
            while let Some((key, value)) = next().unwrap() {
                assert_eq!(value, "task");
                taken.push(String::from_utf8(key.to_vec()).unwrap());
            }
            taken
        };
        let takers: Vec<_> =
            (0..THREADS).map(|number| scope.spawn(move || take(number % 2 == 1))).collect();
        start.wait();
        for number in late {
            space.put(key(number), "task").unwrap();
        }
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    let rest = space.iter().map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap());
    taken.push(rest.collect());
    let mut all: Vec<String> = taken.concat();
    all.sort();
    assert_eq!(all, (0..ENTRIES).map(key).collect::<Vec<_>>());
    drop((space, store));
    let left = taken.last().map_or(0, Vec::len);
    let store = small(&env).open().unwrap();
    assert_eq!(store.existing_keyspace("a").unwrap().iter().count(), left);
}

/// The takers of one end find the keys in their order.
#[test]
fn threads_take_what_is_first() {
    let store = small(&MemEnv::new()).lockstep(false).open().unwrap();
    let space = store.keyspace("a").unwrap();
    (0..ENTRIES).for_each(|number| space.put(key(number), "task").unwrap());
    let taken: Vec<Vec<bytes::Bytes>> = thread::scope(|scope| {
        let take = || std::iter::from_fn(|| space.pop_first().unwrap()).map(|(key, _)| key);
        let takers: Vec<_> = (0..THREADS).map(|_| scope.spawn(move || take().collect())).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    assert!(taken.iter().all(|keys| keys.is_sorted()));
    assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), ENTRIES);
}

/// A counter of ids: each is given out once.
#[test]
fn threads_swap_one_after_the_other() {
    let store = small(&MemEnv::new()).lockstep(false).open().unwrap();
    let space = store.keyspace("a").unwrap();
    let next = || loop {
        let old = space.get("next").unwrap();
        let id = old.as_deref().map_or(0, |old| u64::from_be_bytes(old.try_into().unwrap()));
        let new = (id + 1).to_be_bytes();
        if space.compare_and_swap("next", old.as_deref(), Some(&new)).unwrap().is_ok() {
            return id;
        }
    };
    let mut ids: Vec<u64> = thread::scope(|scope| {
        let some = || (0..ENTRIES / THREADS).map(|_| next()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    ids.sort_unstable();
    assert_eq!(ids, (0..ENTRIES as u64).collect::<Vec<_>>());
}
