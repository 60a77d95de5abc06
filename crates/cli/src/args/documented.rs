//! Every command of `lsmith` that a document or a help shows can be parsed.

use super::Cli;
use super::examples::{EXAMPLES, command};
use crate::specs;
use clap::Parser;
use lsmith_spec::Spec;
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

/// Returns all commands with the words that name them, each ready to print its help.
fn all_commands() -> Vec<(String, clap::Command)> {
    let mut root = command();
    root.build();
    let mut found = vec![(String::new(), root)];
    let mut at = 0;
    while let Some((words, outer)) = found.get(at) {
        let words = words.clone();
        let inner = outer.get_subcommands().filter(|inner| inner.get_name() != "help").cloned();
        let named = |inner: clap::Command| {
            (format!("{words} {}", inner.get_name()).trim_start().to_owned(), inner)
        };
        found.extend(inner.map(named).collect::<Vec<_>>());
        at += 1;
    }
    found
}

#[test]
fn every_command_has_examples_that_are_right() {
    let commands = all_commands();
    assert_eq!(commands.len(), EXAMPLES.len(), "every command has examples");
    for (words_of, mut command) in commands {
        let found = EXAMPLES.iter().find(|(name, _)| *name == words_of);
        let (_, examples) = found.unwrap_or_else(|| panic!("{words_of}: no examples"));
        assert!((1..=2).contains(&examples.len()), "{words_of}");
        let help = command.render_long_help().to_string();
        for example in *examples {
            assert!(help.contains(example), "{words_of}: {help}");
            let whole = example.replace("\\\n", " ");
            for part in whole.split(" | ") {
                let line = words(part);
                let parsed = Cli::try_parse_from(&line);
                assert!(parsed.is_ok(), "{part}: {}", parsed.unwrap_err());
                check_specs(&line);
            }
            let last = words(whole.rsplit(" | ").next().unwrap());
            let is_named =
                words_of.split(' ').all(|word| word.is_empty() || last.contains(&word.to_owned()));
            assert!(is_named, "{words_of}: {example}");
        }
    }
}

/// Builds the policies and the workload that a command line names.
fn check_specs(line: &[String]) {
    for pair in line.windows(2) {
        match pair[0].as_str() {
            "--workload" => drop(specs::workload(&pair[1]).unwrap()),
            "--policy" | "--policies" if line[1] != "model" => {
                let specs = Spec::parse_list(&pair[1]).unwrap();
                specs.iter().for_each(|spec| drop(specs::registry().build_spec(spec).unwrap()));
            }
            _ => {}
        }
    }
}

#[test]
fn short_help_has_one_line_for_each_command_and_option() {
    for (words_of, mut command) in all_commands() {
        let help = command.render_help().to_string();
        let is_head = |line: &&str| line.ends_with(':') && !line.starts_with([' ', 'U']);
        let listed = help.lines().skip_while(|line| !is_head(line));
        let goes_on = |line: &&str| line.starts_with("        ") && !line.trim().starts_with('-');
        let long: Vec<&str> = listed.filter(goes_on).collect();
        assert!(long.is_empty(), "{words_of}: {long:#?}\n{help}");
        assert!(!help.contains("Example"), "{words_of}: examples are in --help");
    }
}
