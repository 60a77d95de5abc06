//! A store with a merge policy of one's own, an observer that keeps its plans, and a registry that
//! builds the policy from text. The only dependency is `lsmith`.

use lsmith::policy::{Eager, MergePolicy, ParamInfo, PolicyInfo, Registry, Shape, Spec, Stack, laws};
use lsmith::tree::{MergePlan, Reason, TreeView};
use lsmith::{Event, KeyspaceOptions, Observer, Store};
use std::error::Error;
use std::sync::{Arc, Mutex};

/// Merges two neighbouring runs as soon as the newer has at least `1/ratio` of the older's bytes.
#[derive(Debug)]
struct Geometric {
    ratio: u64,
}

const INFO: PolicyInfo = PolicyInfo {
    name: "geometric",
    source: "an example",
    summary: "merges neighbours until each run is more than ratio times the next newer one",
    params: &[ParamInfo { name: "ratio", default: "2", meaning: "older over newer, 2 to 100" }],
    build: |params| Ok(Arc::new(Geometric { ratio: params.count("ratio", 2, 2..=100)? })),
};

impl MergePolicy for Geometric {
    fn spec(&self) -> Spec {
        Spec::bare("geometric").with("ratio", self.ratio)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view); // newest run first
        let mut pairs = stack.runs().windows(2);
        let newer = pairs.position(|pair| pair[0].bytes * self.ratio >= pair[1].bytes)?;
        let reason = Reason::new("run {} is too large for the next", [newer as u64, 0, 0]);
        stack.merge(newer, newer + 2, Eager::Auto, reason)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 65 } // sizes at least double, and are 64-bit numbers
    }
}

/// Keeps all plans that were carried out.
#[derive(Debug, Default)]
struct Plans(Mutex<Vec<MergePlan>>);

impl Observer for Plans {
    fn on_event(&self, _keyspace: &str, event: &Event<'_>) {
        if let Event::Committed { plan, .. } = event
            && let Ok(mut plans) = self.0.lock()
        {
            plans.push(MergePlan::clone(plan));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("expected a directory for the store")?;
    laws::check(&Geometric { ratio: 2 })?;
    let plans = Arc::new(Plans::default());
    let observer: Arc<dyn Observer> = Arc::<Plans>::clone(&plans);

    // The policy is a value, for the store or for one keyspace.
    let builder = Store::builder(&dir).policy(Geometric { ratio: 3 }).observer(observer);
    let store = builder.memtable_bytes(16 << 10).open()?;
    let options = KeyspaceOptions { policy: Some("tiered(ratio=4)".into()), ..Default::default() };
    let spaces = [store.keyspace("own")?, store.keyspace_with("tiered", &options)?];
    for number in 0..10_000_u32 {
        for space in &spaces {
            space.put(number.to_be_bytes(), "a value")?;
        }
    }
    store.flush()?;
    store.settle()?;
    println!("{}, {}", spaces[0].merge_policy(), spaces[1].merge_policy());
    let count = plans.0.lock().map_err(|_| "an observer panicked")?.len();
    println!("{} plans were carried out", if count > 20 { "many" } else { "few" });
    drop((spaces, store));

    // Later, a registry builds it from the text in the manifest.
    let mut registry = Registry::builtin();
    registry.register(INFO);
    let store = Store::builder(&dir).registry(registry).open()?;
    println!("{}", store.existing_keyspace("own")?.merge_policy());
    Ok(())
}
