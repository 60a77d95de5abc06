//! The bounds of keys and of ranges.
//!
//! Promised: a range deletes the keys that lie in it, whatever its bounds are, also bounds longer
//! than any key. An empty range deletes nothing. A range that ends before it begins is refused, and
//! so is an empty key, at every door.

use crate::dice::Dice;
use crate::frame::small::plain;
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Batch, Expiry, Isolation, KEY_BYTES_MAX, Keyspace, KeyspaceOptions, PersistMode, Result, SeqNo,
    Store, TableWriter, TableWriterOptions,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys, and bounds of ranges that are no keys: the empty one, and those longer than any key.
fn corners(longest: usize) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let key = |byte: u8, bytes: usize| vec![byte; bytes];
    let mut keys = vec![key(0, 1), key(0, 2), b"a".to_vec(), b"a\0".to_vec(), b"b".to_vec()];
    keys.extend([key(7, longest), key(7, longest - 1), key(255, 1), key(255, longest)]);
    let mut next = key(7, longest);
    next[longest - 1] = 8;
    keys.push(next);
    let mut bounds = keys.clone();
    bounds.extend([Vec::new(), key(7, longest + 1), key(7, longest + 2), key(255, longest + 9)]);
    let mut beyond = key(7, longest + 1);
    beyond[longest] = 0;
    bounds.push(beyond);
    (keys, bounds)
}

/// Returns the first key of the range and the first behind it.
fn half_open(bounds: &Bounds) -> (Vec<u8>, Option<Vec<u8>>) {
    let above = |key: &Vec<u8>| [&key[..], &[0]].concat();
    let start = match &bounds.0 {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => above(key),
    };
    let end = match &bounds.1 {
        Bound::Unbounded => None,
        Bound::Excluded(key) => Some(key.clone()),
        Bound::Included(key) => Some(above(key)),
    };
    (start, end)
}

fn any_bound(dice: &mut Dice, bounds: &[Vec<u8>]) -> Bound<Vec<u8>> {
    match dice.below(9) {
        0 => Bound::Unbounded,
        1..5 => Bound::Included(dice.pick(bounds).clone()),
        _ => Bound::Excluded(dice.pick(bounds).clone()),
    }
}

fn delete(store: &Store, space: &Keyspace, bounds: &Bounds, in_batch: bool) -> Result<()> {
    if !in_batch {
        return space.delete_range::<Vec<u8>>(bounds.clone());
    }
    let mut batch = Batch::new();
    batch.delete_range::<Vec<u8>>(space, bounds.clone());
    store.write(batch, PersistMode::Buffer)
}

/// What broke: a range delete behind the longest key was refused. A range that ended before it
/// began was accepted if its end was empty or a zero byte.
#[test]
fn a_range_delete_deletes_what_lies_in_its_range() {
    let store = plain(&MemEnv::new()).lockstep(true);
    let store = store.memtable_bytes(4 << 20).open().unwrap();
    let member = KeyspaceOptions { group: Some("group".into()), ..KeyspaceOptions::default() };
    let plain = store.keyspace("plain").unwrap();
    let members = ["one", "two"].map(|name| store.keyspace_with(name, &member).unwrap());
    let mut dice = Dice::new(4);
    for round in 0..240 {
        let space = [&plain, &members[0], &members[1]][dice.below(3)];
        let (keys, corners) = corners(KEY_BYTES_MAX - usize::from(space.group().is_some()));
        let bounds = (any_bound(&mut dice, &corners), any_bound(&mut dice, &corners));
        keys.iter().for_each(|key| space.put(key, "value").unwrap());
        if dice.chance(10) {
            space.flush().unwrap();
        }
        let (start, end) = half_open(&bounds);
        let lies_in = |key: &Vec<u8>| *key >= start && end.as_ref().is_none_or(|end| key < end);
        let is_turned = end.as_ref().is_some_and(|end| *end < start);
        let deleted = delete(&store, space, &bounds, dice.chance(30));
        let (first, last) = (start.get(..3), end.as_ref().map(|end| end.get(..3)));
        assert_eq!(deleted.is_err(), is_turned, "round {round}, {first:?}..{last:?}: {deleted:?}");
        let left: BTreeSet<Vec<u8>> =
            keys.into_iter().filter(|key| is_turned || !lies_in(key)).collect();
        let found: BTreeSet<Vec<u8>> =
            space.iter().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert!(found == left, "round {round}, {first:?}..{last:?}");
        // The other keyspaces of the group have what they had.
    }
}

#[test]
fn an_empty_key_is_refused_at_every_door() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let store = Store::builder("/store").env(Arc::clone(&env)).open().unwrap();
    let make = |name: &str, options| store.keyspace_with(name, &options).unwrap();
    let counted = KeyspaceOptions { operator: Some("counter".into()), ..Default::default() };
    let expiring = KeyspaceOptions { expiry: Some(Expiry::default()), ..Default::default() };
    let grouped = KeyspaceOptions { group: Some("group".into()), ..Default::default() };
    let [counts, times, member] = [("counts", counted), ("times", expiring), ("member", grouped)]
        .map(|(name, options)| make(name, options));
    let made = Cell::new(0);
    let table_of = |operator: Option<&str>| {
        made.set(made.get() + 1);
        let options = TableWriterOptions { env: Arc::clone(&env), ..Default::default() };
        let options = TableWriterOptions { operator: operator.map(str::to_string), ..options };
        TableWriter::create_with(format!("/table{}", made.get()), &options).unwrap()
    };
    let table = || table_of(Some("counter"));
    let batch = |fill: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::new();
        fill(&mut batch);
        store.write(batch, PersistMode::Buffer)
    };
    let mut transaction = store.transaction(Isolation::Serializable);
    let one = 1_i64.to_le_bytes();
    let told = [
        counts.combine("", one),
        times.put_until("", "value", u64::MAX),
        member.put("", "value"),
        member.delete(""),
        batch(&|batch| batch.combine(&counts, "", one)),
        batch(&|batch| batch.put_until(&times, "", "value", u64::MAX)),
        batch(&|batch| batch.put_new_unchecked(&member, "", "value")),
        transaction.put(&member, "", "value"),
        transaction.delete(&member, ""),
        transaction.combine(&counts, "", one),
        table().put("", "value"),
        table().delete(""),
        table_of(None).put_until("", "value", u64::MAX),
        table().combine("", one),
        table().put_at("", "value", SeqNo(1)),
        table().delete_at("", SeqNo(1)),
    ];
    for (door, done) in told.into_iter().enumerate() {
        let error = done.expect_err("refused");
        let words = "expected a key of at least 1 byte, found an empty key";
        assert!(error.message().ends_with(words), "door {door}: {error}");
        assert_eq!(error.kind(), lsmith::ErrorKind::InvalidArgument, "door {door}");
    }
    for space in [&counts, &times, &member] {
        assert_eq!(space.get("").unwrap(), None);
        assert!(!space.contains("").unwrap());
        assert_eq!(transaction.get(space, "").unwrap(), None);
        assert_eq!(space.prefix("").count(), 0);
    }
}
