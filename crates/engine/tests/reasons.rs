//! Promised: every merge says why it is made, to observers and in the log of the program. The log
//! names no keys.
//!
//! A process of its own: `tracing` remembers for the whole process whether anybody listens to an
//! event. A store on another thread, which has no listener, may first log the event just while this
//! test begins to listen, and the answer "nobody" is then kept for good.
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

use lsmith::env::MemEnv;
use lsmith::policy::{Load, MergePolicy, PolicyInfo, Registry, Shape};
use lsmith::{Combine, CombineError, Event, KeyspaceOptions, Observer, Store};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, Reason, TreeView};
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

/// All fields that are logged, each as `name=value`.
#[derive(Clone, Debug, Default)]
struct Logged(Arc<Mutex<Vec<String>>>);

impl Logged {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Logged {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields(&self.0));
        Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Fields(&self.0));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Fields<'a>(&'a Mutex<Vec<String>>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push(format!("{}={value:?}", field.name()));
    }
}

/// An operator that fails for every key.
#[derive(Debug)]
struct Fails;

impl Combine for Fails {
    fn name(&self) -> &str {
        "fails"
    }

    fn combine(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Vec<u8>, CombineError> {
        Err("never".into())
    }
}

/// Makes plans with a range that the tree does not allow.
#[derive(Debug)]
struct Illegal;

const ILLEGAL: PolicyInfo = PolicyInfo {
    name: "illegal",
    source: "this test",
    summary: "breaks the law",
    params: &[],
    build: |_| Ok(Arc::new(Illegal)),
};

impl MergePolicy for Illegal {
    fn spec(&self) -> Spec {
        Spec::bare("illegal")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let (_, run) = view.tree.runs().last()?;
        let reason = Reason::new("against the law", [0; 3]);
        let mut plan = MergePlan::merge([run.id(), run.id()], Place::Oldest, reason);
        plan.inputs[0].range.start = b"planted 3".to_vec().into();
        (view.tree.runs().count() > 1).then_some(plan)
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        0.0
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

#[test]
fn log_lines_name_no_keys() {
    let logged = Logged::default();
    tracing::subscriber::with_default(logged.clone(), || {
        for policy in ["tiered(ratio=2)", "leveled(ratio=2, table=4KiB)", "rr(ratio=2)", "illegal"]
        {
            let mut registry = Registry::builtin();
            registry.register(ILLEGAL);
            let store = Store::builder("/store").env(Arc::new(MemEnv::new())).operator(Fails);
            let store = store.registry(registry).policy(policy).memtable_bytes(4096);
            let store = store.lockstep(true).open().unwrap();
            let options = KeyspaceOptions { operator: Some("fails".into()), ..Default::default() };
            let keyspace = store.keyspace_with("default", &options).unwrap();
            for number in 0..400_u32 {
                let key = format!("planted {}", number * 7919 % 1000);
                keyspace.put(&key, [0; 100]).unwrap();
                keyspace.combine(&key, "planted operand").unwrap();
            }
            drop(keyspace.merge());
        }
    });
    let lines = logged.lines();
    for expected in ["a merge policy made an illegal plan", "over a part of the keys", "Callback"] {
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected}: {lines:?}");
    }
    let planted: Vec<_> = lines.iter().filter(|line| line.contains("planted")).collect();
    assert!(planted.is_empty(), "{planted:?}");
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
    let lines = logged.lines();
    let reasons: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("reason=")).collect();
    assert_eq!(reasons, observed);
    for expected in ["a sealed memtable waits for room", "level 0 has 2 runs of 2"] {
        assert!(observed.iter().any(|reason| reason == expected), "{observed:?}");
    }
    assert!(observed.last().unwrap().starts_with("asked for by hand: "), "{observed:?}");
}
