//! Policies as values.
//!
//! Promised: wherever a spec is accepted, a policy is, also one that no registry knows. The
//! manifest keeps its spec. At the next opening it comes from the builder's value with that spec,
//! or from the registry.

use crate::frame::small::{fill, small};
use lsmith::env::MemEnv;
use lsmith::policy::{MergePolicy, PolicyChoice, Shape, Spec};
use lsmith::tree::{MergePlan, Place, Reason, TreeView};
use lsmith::{ErrorKind, KeyspaceOptions, Store};
use std::sync::Arc;

/// Merges all runs as soon as there are two.
#[derive(Debug)]
struct OneRun;

/// A policy whose spec has this name.
#[derive(Debug)]
struct Named(&'static str);

impl MergePolicy for Named {
    fn spec(&self) -> Spec {
        Spec::bare(self.0)
    }

    fn choose_merge(&self, _: &TreeView) -> Option<MergePlan> {
        None
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

impl MergePolicy for OneRun {
    fn spec(&self) -> Spec {
        Spec::bare("one_run")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let all: Vec<_> = view.tree.runs().map(|(_, run)| run).collect();
        let is_free = all.iter().all(|run| !view.is_reserved(run.id()));
        let plan = || {
            let ids = all.iter().map(|run| run.id());
            MergePlan::merge(
                ids,
                Place::NewRun(0),
                Reason::new("{} runs", [all.len() as u64, 0, 0]),
            )
        };
        (all.len() > 1 && is_free).then(plan)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 1 }
    }
}

fn write_runs(store: &Store, name: &str) {
    let space = store.existing_keyspace(name).unwrap();
    for round in 0..5 {
        fill(&space, 0..20, [round; 10]);
        store.flush().unwrap();
    }
}

#[test]
fn value_is_the_policy_of_new_keyspaces_and_of_those_with_its_spec() {
    let disk = MemEnv::new();
    let store = small(&disk).policy(OneRun).open().unwrap();
    let space = store.keyspace("a").unwrap();
    assert_eq!(space.merge_policy(), "one_run");
    write_runs(&store, "a");
    assert_eq!(space.stats().runs, 1);
    drop((space, store));

    // No registry knows it.
    let error = small(&disk).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    for words in ["keyspace a", "one_run", "`Builder::policy`"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // Another policy for new keyspaces is no help.
    assert!(small(&disk).policy("tiered").open().is_err());

    let store = small(&disk).policy(OneRun).open().unwrap();
    write_runs(&store, "a");
    assert_eq!(store.existing_keyspace("a").unwrap().stats().runs, 1);
}

#[test]
fn keyspaces_take_values_beside_specs() {
    let disk = MemEnv::new();
    let store = small(&disk).policy("tiered(ratio=4)").open().unwrap();
    let with = |policy: PolicyChoice| KeyspaceOptions {
        policy: Some(policy),
        ..KeyspaceOptions::default()
    };
    let own = store.keyspace_with("own", &with(OneRun.into())).unwrap();
    assert_eq!(own.merge_policy(), "one_run");
    // The same again, and another.
    store.keyspace_with("own", &with(OneRun.into())).unwrap();
    let error = store.keyspace_with("own", &with("none".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);

    let other = store.keyspace("other").unwrap();
    write_runs(&store, "other");
    assert!(other.stats().runs > 1);
    let shared: Arc<dyn MergePolicy> = Arc::new(OneRun);
    other.set_merge_policy(shared).unwrap();
    store.settle().unwrap();
    assert_eq!((other.merge_policy().as_str(), other.stats().runs), ("one_run", 1));
    other.set_merge_policy(lsmith::policy::Registry::builtin().build("none").unwrap()).unwrap();
    other.set_merge_policy("minlatency(k=2)".parse::<Spec>().unwrap()).unwrap();
    assert_eq!(other.merge_policy(), "minlatency(k=2)");
}

/// The manifest holds the text. One that it cannot hold would make the whole store unreadable.
#[test]
fn policy_whose_spec_cannot_be_read_back_is_refused() {
    let disk = MemEnv::new();
    let store = small(&disk).open().unwrap();
    let space = store.keyspace("a").unwrap();
    for name in ["", "two\nlines", "a(b", "a policy", "none\npolicy 0 none"] {
        let error = space.set_merge_policy(Named(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:?}");
        let policy = Some(Named(name).into());
        let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
        assert!(store.keyspace_with("b", &options).is_err(), "{name:?}");
        assert!(small(&MemEnv::new()).policy(Named(name)).open().is_err(), "{name:?}");
    }
    assert_eq!(store.keyspaces(), ["a"]);
    drop((space, store));
    small(&disk).open().unwrap();
}
