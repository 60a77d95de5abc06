//! Golden scripts: trees and plans as text, one file per claim, in `tests/scripts/`.
//!
//! [`golden`] says what a script looks like. The commands:
//!
//! | command | does |
//! |---|---|
//! | `policy SPEC` | takes this policy from now on |
//! | `tree ...`, `view ...` | takes this tree or view, up to the next command |
//! | `plan` | prints the next plan, or `none` |
//! | `explain` | prints it with the runners-up and why they lost |
//! | `reserve` | prints the next plan and reserves it |
//! | `commit` | carries out the oldest plan that is reserved |
//! | `seal SLICE` | a memtable is sealed and waits |
//! | `flush SLICE` | a memtable becomes a run of its own in level 0 |
//! | `rest` | prints and carries out plans until there are none; memtables that wait are flushed |
//! | `fill N SLICE` | `N` times: a memtable like this is sealed, and the tree comes to rest |
//! | `show` | prints the runs of the tree |
//! | `sizes` | prints the bytes of the runs on storage, newest first |
//! | `pressure` | prints how hard writers are held back while no memtable waits |

use lsmith_fuzz::golden;
use lsmith_policy::{Load, MergePolicy, Registry, laws};
use lsmith_spec::format_bytes;
use lsmith_tree::{
    MergePlan, Reservation, ReservationState, TreeEdit, TreeView, apply, check_plan,
};
use std::path::Path;
use std::sync::Arc;

/// What a script has built up so far.
struct PolicyStage {
    policy: Arc<dyn MergePolicy>,
    view: TreeView,
}

impl Default for PolicyStage {
    fn default() -> PolicyStage {
        let policy = Registry::builtin().build("none").expect("a policy of this crate");
        PolicyStage { policy, view: TreeView::default() }
    }
}

impl PolicyStage {
    fn plan(&self) -> Option<MergePlan> {
        let plan = self.policy.next_merge(&self.view)?;
        assert_eq!(check_plan(&self.view, &plan).err(), None, "{plan}");
        Some(plan)
    }

    fn carry_out(&mut self, plan: &MergePlan) {
        let outcome = laws::outcome(&self.view.tree, plan);
        let edit = TreeEdit::of_plan(&self.view.tree, plan, outcome).expect("conserved");
        apply(&mut self.view.tree, &edit).expect("a legal plan");
    }

    fn seal(&mut self, slice: &str) {
        let run = self.view.tree.next_run();
        let table = self.view.tree.next_table();
        let slice = match slice.split_once(':') {
            Some((_, rest)) => format!("{table}:{rest}"),
            None => panic!("expected a slice such as t1:a..z 1MB, found {slice}"),
        };
        let edit = format!("edit\nadd {run} at mem [{slice}]");
        apply(&mut self.view.tree, &edit.parse().expect(&edit)).expect("a new name");
    }

    fn rest(&mut self, out: &mut String) {
        loop {
            let plan = self.plan().or_else(|| MergePlan::flush(&self.view.tree));
            let Some(plan) = plan else { break };
            say(out, plan.to_string());
            self.carry_out(&plan);
        }
    }
}

impl golden::Stage for PolicyStage {
    fn run(&mut self, command: &str, out: &mut String) {
        let (word, rest) = command.split_once([' ', '\n']).unwrap_or((command, ""));
        match word {
            "policy" => self.policy = Registry::builtin().build(rest).expect(rest),
            "tree" | "view" => self.view = command.parse().expect(command),
            "plan" => say(out, words(self.plan())),
            "explain" => {
                let explanation = self.policy.explain(&self.view);
                say(out, words(explanation.plan));
                for (plan, why) in explanation.runners_up {
                    say(out, format!("not {plan}: {why}"));
                }
            }
            "reserve" => {
                let plan = self.plan();
                say(out, words(plan.clone()));
                let state = ReservationState::UnderWay;
                self.view.reservations.extend(plan.map(|plan| Reservation { plan, state }));
            }
            "commit" => {
                let plan = self.view.reservations.remove(0).plan;
                assert_eq!(check_plan(&self.view, &plan).err(), None, "{plan}");
                self.carry_out(&plan);
            }
            "seal" => self.seal(rest),
            "flush" => {
                self.seal(rest);
                let plan = MergePlan::flush(&self.view.tree).expect("just sealed");
                self.carry_out(&plan);
            }
            "rest" => self.rest(out),
            "fill" => {
                let (count, slice) = rest.split_once(' ').expect("fill N SLICE");
                for _ in 0..count.parse().expect("a number") {
                    self.seal(slice);
                    self.rest(&mut String::new());
                }
            }
            "show" => {
                let text = self.view.tree.to_string();
                let runs = text.lines().filter(|line| line.starts_with(['m', 'L']));
                runs.for_each(|line| say(out, line.to_string()));
            }
            "sizes" => {
                let runs = self.view.tree.disk_runs();
                let sizes: Vec<String> = runs.map(|run| format_bytes(run.bytes())).collect();
                say(out, sizes.join(" "));
            }
            "pressure" => {
                let load = Load::default();
                say(out, format!("{:.2}", self.policy.pressure(&self.view, &load)));
            }
            _ => panic!("unknown command `{command}`"),
        }
    }

    /// A tree or a view goes on with its levels, counters, notes and reservations.
    fn continues(command: &str, line: &str) -> bool {
        let words = ["mem", "L", "count", "note", "under_way", "blocked", "tree"];
        let is_tree = command.starts_with("tree") || command.starts_with("view");
        is_tree && words.iter().any(|word| line.starts_with(word))
    }
}

fn say(out: &mut String, line: String) {
    out.push_str(&line);
    out.push('\n');
}

fn words(plan: Option<MergePlan>) -> String {
    plan.map_or_else(|| "none".to_string(), |plan| plan.to_string())
}

#[test]
fn scripts_print_what_they_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    golden::check::<PolicyStage>(&dir, 16);
}
