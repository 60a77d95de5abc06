//! Golden scripts: which plans are legal, and what edits do to trees, in `tests/scripts/`.
//!
//! [`golden`] says what a script looks like. The commands:
//!
//! | command | does |
//! |---|---|
//! | `tree ...`, `view ...` | takes this tree or view, up to the next command |
//! | `merge ...`, `move ...` | prints what `check_plan` says of this plan |
//! | `carry out PLAN`, `gives [SLICES]` | applies the edit of a plan that wrote these slices |
//! | `edit`, `take ...`, `add ...` | applies this edit, or prints why it does not fit |
//! | `check` | prints what `check_tree` says |
//! | `show` | prints the runs of the tree |

use lsmith_fuzz::golden;
use lsmith_tree::{MergePlan, Outcome, Slice, TreeEdit, TreeView, apply, check_plan, check_tree};
use std::fmt::Write;
use std::path::Path;

#[derive(Default)]
struct TreeStage {
    view: TreeView,
}

impl TreeStage {
    /// Applies the edit of a plan. The plan must be legal.
    fn carry_out(&mut self, plan: &str, slices: &str) {
        let plan: MergePlan = plan.parse().expect(plan);
        check_plan(&self.view, &plan).expect("a legal plan");
        let outcome = Outcome { slices: slices_of(slices), ..Outcome::default() };
        let edit = TreeEdit::of_plan(&self.view.tree, &plan, outcome).expect("conserved");
        apply(&mut self.view.tree, &edit).expect("a legal plan");
    }

    /// Prints what `check_plan` says. The tree must be legal.
    fn judge(&self, plan: &str, out: &mut String) {
        assert_eq!(check_tree(&self.view.tree), Ok(()), "{}", self.view);
        match check_plan(&self.view, &plan.parse().expect(plan)) {
            Ok(level) => say(out, format_args!("legal, into level {level}")),
            Err(error) => say(out, format_args!("refused: {error}")),
        }
    }

    /// Applies an edit, and prints why it does not fit. A refused edit leaves the tree as it was.
    fn apply(&mut self, edit: &str, out: &mut String) {
        let before = self.view.tree.clone();
        let edit: TreeEdit = edit.parse().expect(edit);
        if let Err(error) = apply(&mut self.view.tree, &edit) {
            assert_eq!(self.view.tree, before, "{edit}");
            say(out, format_args!("refused: {error}"));
        }
    }
}

impl golden::Stage for TreeStage {
    fn run(&mut self, command: &str, out: &mut String) {
        match command.split([' ', '\n']).next().unwrap_or_default() {
            "tree" | "view" => self.view = command.parse().expect(command),
            "merge" | "move" => self.judge(command, out),
            "carry" => {
                let (plan, slices) = command.split_once("\ngives ").expect("`gives` follows");
                self.carry_out(plan.trim_start_matches("carry out "), slices);
            }
            "edit" => self.apply(command, out),
            "check" => match check_tree(&self.view.tree) {
                Ok(()) => say(out, format_args!("legal")),
                Err(error) => say(out, format_args!("refused: {error}")),
            },
            "show" => {
                let text = self.view.tree.to_string();
                let runs = text.lines().filter(|line| line.starts_with(['m', 'L']));
                runs.for_each(|line| say(out, format_args!("{line}")));
            }
            _ => panic!("unknown command `{command}`"),
        }
    }

    fn continues(command: &str, line: &str) -> bool {
        let words: &[&str] = match command.split([' ', '\n']).next().unwrap_or_default() {
            "tree" | "view" => &["mem", "L", "count", "note", "under_way", "blocked", "tree"],
            "edit" => &["take", "add", "count", "note", "forget"],
            "carry" => &["gives"],
            _ => &[],
        };
        words.iter().any(|word| line.starts_with(word))
    }
}

/// Reads slices in brackets.
fn slices_of(text: &str) -> Vec<Slice> {
    let edit: TreeEdit = format!("edit\nadd r0 at mem {text}").parse().expect(text);
    edit.add.into_iter().flat_map(|addition| addition.slices).collect()
}

fn say(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("a string can be written to");
}

#[test]
fn scripts_print_what_they_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    golden::check::<TreeStage>(&dir, 20);
}
