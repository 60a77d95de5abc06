//! Every command of `lsmith` that a document shows can be parsed.

use super::Cli;
use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the documents of the main workspace, without notes and decisions of the past.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    found.push(root.join("CONTRIBUTING.md"));
    let crates = fs::read_dir(root.join("crates")).unwrap().flatten();
    let crates = crates.filter(|entry| entry.file_name() != "rivals");
    found.extend(crates.map(|entry| entry.path().join("README.md")));
    let pages = fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path());
    found.extend(pages.filter(|path| path.extension().is_some_and(|end| end == "md")));
    found
}

/// Returns what `text` shows as code: lines of blocks, and spans within lines.
fn code(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let mut shown = Vec::new();
    for (at, part) in text.split("```").enumerate() {
        match at % 2 {
            1 => shown.extend(part.lines().skip(1).map(str::to_owned)),
            _ => {
                shown.extend(part.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")))
            }
        }
    }
    shown
}

/// Splits a command line at spaces outside quotes. A `#` or a `>` ends it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            '#' | '>' | '|' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn documented_commands_can_be_parsed() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for document in documents() {
        let Ok(text) = fs::read_to_string(&document) else { continue };
        let mut elsewhere = false;
        for line in code(&text) {
            let line = line.trim_start_matches("$ ");
            elsewhere |= line.starts_with("cd ");
            let ours = line.strip_prefix("lsmith ");
            let ours = ours.or_else(|| line.strip_prefix("cargo run --release -- "));
            let Some(line) = ours.filter(|_| !elsewhere || line.starts_with("lsmith ")) else {
                continue;
            };
            // Words in capitals stand for a command. The first line of a file is text.
            let words = words(line);
            let is_text = words.first().is_some_and(|word| word == "=" || word.ends_with(','));
            if is_text
                || words.iter().all(|word| word.starts_with('-') || *word == word.to_uppercase())
            {
                continue;
            }
            let parsed = Cli::try_parse_from([&["lsmith".to_owned()], &words[..]].concat());
            let is_fine = parsed.as_ref().is_err_and(|error| !error.use_stderr()) || parsed.is_ok();
            // What only names a command leaves its arguments out.
            let is_name = words.len() <= 2 && words.iter().all(|word| !word.starts_with('-'));
            // Prose leaves out what does not matter, and has words in capitals for values.
            let is_part = parsed.as_ref().is_err_and(|error| {
                use clap::error::ErrorKind as Kind;
                matches!(
                    error.kind(),
                    Kind::InvalidValue | Kind::MissingRequiredArgument | Kind::ValueValidation
                )
            });
            let shown = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            if !is_fine && !is_name && !is_part {
                wrong.push(format!("{}: lsmith {line}: {shown}", document.display()));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count} commands");
}
