//! `jungle` comes to rest on any tree, whatever interpreters make of its plans.

use lsmith_policy::laws::outcome;
use lsmith_policy::{Load, MergePolicy, Registry};
use lsmith_spec::random;
use lsmith_tree::{MergePlan, Slice, Table, TreeEdit, TreeView, apply, check_plan};
use std::fmt::Write;
use std::sync::Arc;

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        random::next(&mut self.0) % bound
    }
}

/// Returns levels of trees and sorted tables of all sizes, with dead bytes, old and new.
fn view(random: &mut Random) -> TreeView {
    let flushes = random.below(20);
    let memtable = 1 + random.below(2000);
    let mut text = format!("view memtable {memtable}B\ntree flushes {flushes}\n");
    let mut table = 0;
    for level in 0..1 + random.below(4) {
        let slices: Vec<String> = (0..1 + random.below(8))
            .map(|at| {
                table += 1;
                let bytes = 1 + random.below(6 * memtable);
                let born = random.below(flushes + 1);
                let tree = match random.below(4) {
                    0 => String::new(),
                    1 => " root 1".to_string(),
                    _ => format!(" root 2 dead {}B", 1 + random.below(4 * bytes)),
                };
                let born = if tree.is_empty() || born == 0 {
                    String::new()
                } else {
                    format!(" born {born}")
                };
                format!("t{table}:k{at}0..k{at}5 {bytes}B{tree}{born}")
            })
            .collect();
        let run = 100 - level;
        writeln!(text, "L{level} r{run}[{}]", slices.join(", ")).expect("a string takes all");
    }
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Adds a memtable to the tree.
fn seal(random: &mut Random, view: &mut TreeView) {
    let whole: TreeView = format!(
        "view\ntree\nL0 r1[t1:k{:02}..k{:02} {}B]",
        random.below(40),
        40 + random.below(50),
        view.memtable_bytes
    )
    .parse()
    .expect("a legal tree");
    let slice =
        whole.tree.disk_runs().next().expect("a run").slices().get(0).expect("a slice").clone();
    let table = Table { id: view.tree.next_table(), ..Table::clone(slice.table()) };
    let edit = TreeEdit::seal(view.tree.next_run(), Slice::whole(table));
    apply(&mut view.tree, &edit).expect("the names are new");
}

/// Carries out plans until there are none. If it is `stubborn`, nothing is ever cut.
fn settle(policy: &dyn MergePolicy, view: &mut TreeView, stubborn: bool) {
    let start = view.to_string();
    for _ in 0..2000 {
        let Some(plan) = policy.next_merge(view) else {
            assert_eq!(policy.pressure(view, &Load::default()), 0.0, "at rest: {view}");
            return;
        };
        check_plan(view, &plan).unwrap_or_else(|error| panic!("{plan}: {error}\n{view}"));
        let cut_bytes = plan.cut_bytes.filter(|_| !stubborn);
        let made = outcome(&view.tree, &MergePlan { cut_bytes, ..plan.clone() });
        let edit = TreeEdit::of_plan(&view.tree, &plan, made).expect("a legal plan");
        apply(&mut view.tree, &edit).expect("a legal edit");
    }
    panic!("no rest after 2000 plans: {start}");
}

/// What broke: where a split left a tree as large as it was, as with expected sizes of less than
/// two entries, it was split again and again.
#[test]
fn plans_end_even_if_nothing_is_ever_cut() {
    for spec in ["jungle", "jungle(c=1, ratio=2)", "jungle(space=1.2, ratio=3, table=100B)"] {
        let policy: Arc<dyn MergePolicy> = Registry::builtin().build(spec).expect(spec);
        for seed in 0..300 {
            let random = &mut Random(seed);
            for stubborn in [true, false] {
                let mut view = view(random);
                settle(&*policy, &mut view, stubborn);
                for _ in 0..5 {
                    seal(random, &mut view);
                    settle(&*policy, &mut view, stubborn);
                }
            }
        }
    }
}
