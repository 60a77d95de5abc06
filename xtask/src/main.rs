//! Chores of the workspace: `cargo xtask tidy`, `cargo xtask modules`, `cargo xtask bless`,
//! `cargo xtask ci`, `cargo xtask instructions`, `cargo xtask pages`, `cargo xtask planted`,
//! `cargo xtask schedules`, `cargo xtask plain`, `cargo xtask package`, `cargo xtask c`,
//! `cargo xtask python`, `cargo xtask jvm`, `cargo xtask platforms`,
//! `cargo xtask wasm`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "chores read and write files"
)]

mod c;
mod chores;
mod ci;
mod commands;
mod instructions;
mod jvm;
mod machines;
mod pages;
mod planted;
mod platforms;
mod python;
mod tidy;
mod wasm;

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask tidy [--bless]
                     sizes, layers, modules, doors, dead files, wide lines of documents, phrases
                     against their record, which `--bless` lowers
cargo xtask modules  which module of a crate uses which, from the top down
cargo xtask bless    write down anew what the golden scripts print
cargo xtask ci       everything that CI runs, in the same order
cargo xtask commands [all]
                     documented commands name what there is, and every feature of every workspace
                     compiles; `all`: also features that take long, such as RocksDB
cargo xtask plain    a store without codecs builds without C, and its tests of codecs pass
cargo xtask package  every crate compiles from what would be published of it
cargo xtask instructions [--bless]
                     what the store's hot paths take, against the record (needs valgrind)
cargo xtask pages [LSMITH]
                     opens pages of LSMITH, a binary, or of a release build, in chromium
cargo xtask c        compiles what is in C and C++, and runs it (needs cc; valgrind if there is one)
cargo xtask python   builds the Python package and runs its tests (needs python3)
cargo xtask jvm      builds the packages for the JVM and runs their tests (needs mvn, Java 17, cc)
cargo xtask platforms [quick]
                     checks the store for other systems, and unless `quick` runs tests with 32
                     bits, with the other order of bytes and under Wine; says what it leaves out,
                     and how to get it
cargo xtask wasm     builds lsmith for browsers and WASI, and runs it (needs two targets of rustup,
                     node, chromium for the page; says what it leaves out)
cargo xtask planted [WORD]
                     plants bugs whose names contain WORD, and sees the tests catch each
cargo xtask schedules
                     runs a store in many orders of events (LSMITH_FULL=1: in very many)";

/// What a chore does at the root of the repository.
type Chore = Box<dyn FnOnce(&Path) -> Result<()>>;

/// Returns the chore that `words` name; `None` if there is none.
fn chore(words: &[&str]) -> Option<Chore> {
    let chore: Chore = match words {
        ["tidy"] => Box::new(tidy::report),
        ["tidy", "--bless"] => Box::new(tidy::bless),
        ["modules"] => Box::new(tidy::print_modules),
        ["bless"] => Box::new(chores::bless),
        ["commands"] => Box::new(|root| commands::check(root, false)),
        ["commands", "all"] => Box::new(|root| commands::check(root, true)),
        ["plain"] => Box::new(chores::plain),
        ["package"] => Box::new(chores::package),
        ["c"] => Box::new(c::c),
        ["python"] => Box::new(python::python),
        ["jvm"] => Box::new(jvm::jvm),
        ["ci"] => Box::new(ci::ci),
        ["instructions"] => Box::new(|root| instructions::instructions(root, false)),
        ["instructions", "--bless"] => Box::new(|root| instructions::instructions(root, true)),
        ["schedules"] => Box::new(chores::schedules),
        ["pages"] => Box::new(|root| pages::run(root, None)),
        ["pages", lsmith] => {
            let lsmith = PathBuf::from(lsmith);
            Box::new(move |root| pages::run(root, Some(&lsmith)))
        }
        ["wasm"] => Box::new(wasm::wasm),
        ["platforms"] => Box::new(|root| platforms::platforms(root, false)),
        ["platforms", "quick"] => Box::new(|root| platforms::platforms(root, true)),
        ["planted"] => Box::new(|root| planted::run(root, "")),
        ["planted", word] => {
            let word = (*word).to_owned();
            Box::new(move |root| planted::run(root, &word))
        }
        _ => return None,
    };
    Some(chore)
}

fn main() -> ExitCode {
    let root = chores::root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(chore) = chore(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match chore(&root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
