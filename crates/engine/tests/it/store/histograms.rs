//! Histograms.
//!
//! Promised: there are none unless they are turned on. Then each lookup, each write, each first
//! step of an iterator and each committed plan is recorded once.

use crate::frame::small::{open, plain};
use lsmith::env::MemEnv;
use lsmith::{Batch, PersistMode};

#[test]
fn everything_is_counted_once() {
    let builder = plain(&MemEnv::new()).lockstep(true);
    let builder = builder.memtable_bytes(2000).block_bytes(200);
    let quiet = builder.clone().open().unwrap();
    assert_eq!(quiet.histograms(), None);
    drop(quiet);
    let (store, space) = open(builder.histograms(true));
    for number in 0..300u32 {
        space.put(number.to_be_bytes(), [1; 20]).unwrap();
    }
    let mut batch = Batch::new();
    batch.put(&space, "key", "value");
    batch.delete(&space, "other");
    store.write(batch, PersistMode::SyncData).unwrap();
    store.flush().unwrap();
    for number in 0..100u32 {
        assert!(space.get(number.to_be_bytes()).unwrap().is_some());
    }
    assert_eq!(space.iter().count(), 301);
    let mut backward = space.iter();
    while backward.next_back_ref().is_some() {}
    let stats = store.stats();
    let found = store.histograms().unwrap();
    assert_eq!((found.get_nanos.count(), found.get_blocks.count()), (100, 100));
    assert!(found.get_blocks.mean() >= 1.0 && found.get_blocks.quantile(0.5) >= 1);
    assert_eq!((found.write_nanos.count(), found.seek_nanos.count()), (301, 2));
    assert!(found.merge_nanos.count() == stats.plans && stats.plans > 2);
    let bytes = stats.flush_bytes + stats.merge_bytes_written;
    assert_eq!(found.merge_bytes.mean() * stats.plans as f64, bytes as f64);
    assert!(found.fields().all(|(_, histogram)| histogram.quantile(1.0) == histogram.max()));
}
