//! Chores of the workspace: `cargo xtask tidy`, `cargo xtask modules`, `cargo xtask bless`,
//! `cargo xtask ci`, `cargo xtask instructions`, `cargo xtask pages`, `cargo xtask planted`,
//! `cargo xtask schedules`, `cargo xtask plain`, `cargo xtask package`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "chores read and write files"
)]

mod chores;
mod instructions;
mod pages;
mod planted;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask tidy     sizes, layers, modules, doors, dead files, wide lines of documents
cargo xtask modules  which module of the store uses which, from the top down
cargo xtask bless    write down anew what the golden scripts print
cargo xtask ci       everything that CI runs, in the same order
cargo xtask plain    a store without codecs builds without C, and its unit tests pass
cargo xtask package  every crate compiles from what would be published of it
cargo xtask instructions [--bless]
                     what the store's hot paths take, against the record (needs valgrind)
cargo xtask pages [LSMITH]
                     opens pages of LSMITH, a binary, or of a release build, in chromium
cargo xtask planted [WORD]
                     plants bugs whose names contain WORD, and sees the tests catch each
cargo xtask schedules
                     runs a store in many orders of events (LSMITH_FULL=1: in very many)";

fn main() -> ExitCode {
    let root = chores::root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::report(&root),
        ["modules"] => tidy::print_modules(&root),
        ["bless"] => chores::bless(&root),
        ["plain"] => chores::plain(&root),
        ["package"] => chores::package(&root),
        ["ci"] => chores::ci(&root),
        ["instructions"] => instructions::instructions(&root, false),
        ["schedules"] => chores::schedules(&root),
        ["pages"] => pages::run(&root, None),
        ["pages", lsmith] => pages::run(&root, Some(lsmith.as_ref())),
        ["planted"] => planted::run(&root, ""),
        ["planted", word] => planted::run(&root, word),
        ["instructions", "--bless"] => instructions::instructions(&root, true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
