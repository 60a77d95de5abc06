//! The clock by which entries expire.
//!
//! Promised: a store knows the name of its clock, and opens with no other. A fixed clock, or a
//! repair, lets nothing expire that has not. A duration that is taken for a time is refused. If the
//! clock goes back, what no merge has dropped comes back.

use crate::frame::contents::get;
use crate::frame::small::{DIR, small, small_at};
use lsmith::env::MemEnv;
use lsmith::{
    Batch, Clock, Error, ErrorKind, Expiry, Keyspace, KeyspaceOptions, PersistMode, RepairOptions,
    Store, repair,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A clock with other numbers than the default one, as long as that shows less than `u64::MAX`.
fn hours() -> Clock {
    Clock::new("hours", || 10).with_tick(Duration::from_secs(3600))
}

fn expiring(store: &Store) -> Keyspace {
    let expiry = Some(Expiry::default());
    store.keyspace_with("k", &KeyspaceOptions { expiry, ..Default::default() }).unwrap()
}

fn check_refused(opened: Result<Store, Error>) {
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let told = "the store has the clock `hours`, not `unix_seconds`: expected the clock of this \
                name at `Builder::clock`";
    assert!(error.to_string().starts_with(told), "{error}");
}

/// What broke: seconds since 1970 were taken for the time of a store whose clock counted otherwise,
/// by each opening without the clock. The next merge dropped all its values.
#[test]
fn store_opens_with_no_other_clock() {
    let env = MemEnv::new();
    let store = small(&env).clock(hours()).open().unwrap();
    let space = expiring(&store);
    space.put_until("key", "value", 11).unwrap();
    space.put_until("gone", "value", 9).unwrap();
    drop((space, store));
    check_refused(small(&env).open());
    check_refused(small(&env).read_only(true).open());
    // Whoever does not have the clock can look, and write, and drops nothing.
    let store = small(&env).clock(Clock::fixed(0)).open().unwrap();
    let space = expiring(&store);
    assert_eq!(get(&space, "gone").as_deref(), Some("value"), "nothing has expired at 0");
    space.put("other", "value").unwrap();
    space.merge().unwrap();
    drop((space, store));
    let store = small(&env).clock(hours()).open().unwrap();
    let space = store.existing_keyspace("k").unwrap();
    assert_eq!(get(&space, "key").as_deref(), Some("value"));
    assert_eq!(get(&space, "other").as_deref(), Some("value"));
    assert_eq!(get(&space, "gone"), None);
    // A checkpoint has the clock too.
    store.checkpoint("/copy").unwrap();
    check_refused(small_at("/copy", &env).open());
    let error = Store::builder("/new").clock(Clock::new("two words", || 1)).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// What broke: a repair made a store that took seconds since 1970 for the time, and its next merge
/// dropped all values. The report was exact.
#[test]
fn repaired_store_has_the_clock_of_the_old_one() {
    let env = MemEnv::new();
    let store = small(&env).clock(hours()).open().unwrap();
    let space = expiring(&store);
    space.put_until("key", "value", 11).unwrap();
    drop((space, store));
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    assert!(repair(&options, DIR, "/saved").unwrap().is_exact());
    check_refused(small_at("/saved", &env).open());
    let store = small_at("/saved", &env).clock(hours()).open().unwrap();
    let space = store.existing_keyspace("k").unwrap();
    space.merge().unwrap();
    assert_eq!(get(&space, "key").as_deref(), Some("value"));
}

/// A store of an earlier version does not name its clock. One that was made beside a fixed clock
/// does not either.
#[test]
fn store_without_the_name_of_its_clock_takes_the_first_that_is_chosen() {
    let env = MemEnv::new();
    let store = small(&env).clock(Clock::fixed(7)).open().unwrap();
    expiring(&store).put_until("key", "value", 11).unwrap();
    drop(store);
    drop(small(&env).read_only(true).open().unwrap());
    // The default clock is assumed, and not noted.
    drop(small(&env).open().unwrap());
    drop(small(&env).clock(hours()).open().unwrap());
    check_refused(small(&env).open());
}

#[test]
fn store_without_expiry_opens_with_any_clock() {
    let env = MemEnv::new();
    for clock in [hours(), Clock::default(), Clock::new("other", || 1)] {
        let store = small(&env).clock(clock).open().unwrap();
        store.keyspace("plain").unwrap().put("key", "value").unwrap();
    }
}

/// What broke: `put_until` with a duration was accepted, and the value was gone at once.
#[test]
fn durations_are_no_times_and_have_calls_of_their_own() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let space = expiring(&store);
    let told = "expected a time in seconds since 1970, found 60, which lies before 2001: \
                `put_with_ttl` takes a duration";
    let error = space.put_until("key", "value", 60).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, told));
    let mut batch = Batch::new();
    batch.put_until(&space, "key", "value", 60);
    let error = store.write(batch, PersistMode::Buffer).unwrap_err();
    assert!(error.message().ends_with(told), "{error}");
    space.put_with_ttl("key", "value", Duration::from_secs(60)).unwrap();
    space.put_with_ttl("at once", "value", Duration::ZERO).unwrap();
    let mut batch = Batch::new();
    batch.put_with_ttl(&space, "batch", "value", Duration::MAX);
    store.write(batch, PersistMode::Buffer).unwrap();
    assert_eq!(get(&space, "key").as_deref(), Some("value"));
    assert_eq!(get(&space, "batch").as_deref(), Some("value"));
    assert_eq!(get(&space, "at once"), None);
    let plain = store.keyspace("plain").unwrap();
    let error = plain.put_with_ttl("key", "value", Duration::MAX).unwrap_err();
    assert!(error.message().contains("cannot expire"), "{error}");
    let other = small_at("/other", &env).clock(Clock::new("steps", || 7)).open().unwrap();
    let error = expiring(&other).put_with_ttl("key", "value", Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("`Clock::with_tick`"), "{error}");
    expiring(&other).put_until("key", "value", 8).unwrap();
}

/// A clock that jumps ahead takes what merges drop meanwhile, and nothing else.
#[test]
fn what_no_merge_has_dropped_comes_back_with_the_clock() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(100));
    let shown = Arc::clone(&time);
    let clock = Clock::new("steps", move || shown.load(SeqCst));
    let store = small(&env).clock(clock.with_tick(Duration::from_secs(1))).open().unwrap();
    let space = expiring(&store);
    let put = |key: &str| space.put_with_ttl(key, "value", Duration::from_secs(10)).unwrap();
    put("merged");
    space.flush().unwrap();
    time.store(1 << 40, SeqCst);
    assert_eq!(get(&space, "merged"), None);
    space.merge().unwrap();
    time.store(100, SeqCst);
    put("kept");
    space.flush().unwrap();
    time.store(1 << 40, SeqCst);
    assert_eq!(get(&space, "kept"), None);
    put("late");
    time.store(100, SeqCst);
    assert_eq!(get(&space, "merged"), None, "a merge has dropped it");
    assert_eq!(get(&space, "kept").as_deref(), Some("value"));
    time.store(1000, SeqCst);
    assert_eq!(get(&space, "late").as_deref(), Some("value"), "it lives until the jump, and 10");
}
