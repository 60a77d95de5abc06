//! Promised: every merge says why it is made, to observers and in the log of the program.
//!
//! A process of its own: `tracing` remembers for the whole process whether anybody listens to an
//! event. A store on another thread, which has no listener, may first log the event just while this
//! test begins to listen, and the answer "nobody" is then kept for good.
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

use lsmith::env::MemEnv;
use lsmith::{Event, Observer, Store};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// The reasons of merges, as an observer gets them.
#[derive(Debug, Default)]
struct Observed(Mutex<Vec<String>>);

impl Observer for Observed {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { plan, .. } = event {
            self.0.lock().unwrap().push(plan.reason.to_string());
        }
    }
}

/// The reasons of merges, as they are logged.
#[derive(Clone, Debug, Default)]
struct Logged(Arc<Mutex<Vec<String>>>);

impl Subscriber for Logged {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Reasons(&self.0));
        Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Reasons(&self.0));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Reasons<'a>(&'a Mutex<Vec<String>>);

impl Visit for Reasons<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "reason" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

#[test]
fn every_merge_says_why() {
    let observed = Arc::new(Observed::default());
    let logged = Logged::default();
    tracing::subscriber::with_default(logged.clone(), || {
        let store = Store::builder("/store").env(Arc::new(MemEnv::new())).policy("tiered(ratio=2)");
        let store = store.memtable_bytes(4096).lockstep(true);
        let store = store.observer(Arc::<Observed>::clone(&observed)).open().unwrap();
        let keyspace = store.keyspace("default").unwrap();
        for key in 0..200_u32 {
            keyspace.put(key.to_be_bytes(), [0; 100]).unwrap();
        }
        keyspace.merge().unwrap();
    });
    let observed = observed.0.lock().unwrap().clone();
    assert_eq!(*logged.0.lock().unwrap(), observed);
    for expected in ["a sealed memtable waits for room", "level 0 has 2 runs of 2"] {
        assert!(observed.iter().any(|reason| reason == expected), "{observed:?}");
    }
    assert!(observed.last().unwrap().starts_with("asked for by hand: "), "{observed:?}");
}
