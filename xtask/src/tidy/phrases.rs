//! Counts phrases that make sentences long and hard to read, in comments and documents.
//!
//! `phrases.txt` holds the number of such phrases in each file. It may only shrink: one phrase more
//! than recorded is a violation, and `cargo xtask tidy --bless` lowers what is recorded too high.

use super::finding::Finding;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The path of the record.
const RECORD: &str = "xtask/phrases.txt";

/// The phrases. A noun and an active verb replace each of them.
const PHRASES: [&str; 7] =
    ["of which", "those that", "those of", "those who", "that of", "goes on to", "does the same"];

/// A doc comment that begins like this does not say what its item does. No record excuses it.
const EMPTY_START: &str = "Does the same";

/// The comments on neighbouring lines, without their slashes.
#[derive(Debug, PartialEq, Eq)]
struct Comment {
    /// The first line, counted from 1.
    line: usize,
    is_doc: bool,
    text: String,
}

/// A string literal, or a comment between stars, that may reach over several lines.
enum Open {
    /// Ends at a quotation mark that is not escaped.
    Escaped,
    /// Ends at this text.
    Until(String),
}

/// The number of phrases in each file that has some.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<String, usize>);

impl Counts {
    /// Reads the record below `root`.
    fn read(root: &Path) -> Result<Self> {
        Self::parse(&fs::read_to_string(root.join(RECORD)).context(RECORD)?)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut counts = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (path, count) = line.rsplit_once(' ').context("expected a path and a count")?;
            counts.insert(path.to_owned(), count.parse().context(RECORD)?);
        }
        Ok(Self(counts))
    }

    fn print(&self) -> String {
        let head = "# Phrases that xtask/src/tidy/phrases.rs counts, per file. Counts only shrink.";
        let mut text = format!("{head}\n\n");
        for (path, count) in &self.0 {
            writeln!(text, "{path} {count}").expect("a string takes every write");
        }
        text
    }

    /// Counts the phrases in a source file or a Markdown file.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let count = if !is_counted(path) {
            0
        } else if path.ends_with(".md") {
            count(&without_code(text))
        } else {
            comments(text).iter().map(|comment| count(&comment.text)).sum()
        };
        if count > 0 {
            self.0.insert(path.to_owned(), count);
        }
    }

    /// Returns the files with more phrases than `record` allows, and with fewer than it says.
    fn compare(&self, record: &Self) -> Vec<Finding> {
        let paths = self.0.keys().chain(record.0.keys().filter(|path| !self.0.contains_key(*path)));
        let mut findings = Vec::new();
        for path in paths {
            let found = self.0.get(path).copied().unwrap_or(0);
            let recorded = record.0.get(path).copied().unwrap_or(0);
            let what = if found > recorded {
                let phrases = PHRASES.map(|phrase| format!("\"{phrase}\"")).join(", ");
                format!(
                    "{found} phrases, {recorded} recorded: say it with a noun and an active verb, \
                     without {phrases}"
                )
            } else if found < recorded {
                format!(
                    "{found} phrases, {recorded} recorded in {RECORD}: `cargo xtask tidy --bless` \
                     lowers the record"
                )
            } else {
                continue;
            };
            findings.push(Finding { place: path.clone(), what, excuse: None });
        }
        findings
    }

    /// Returns `record` with each count lowered to this one.
    fn lower(&self, record: &Self) -> Self {
        let mut lowered = BTreeMap::new();
        for (path, recorded) in &record.0 {
            if let Some(found) = self.0.get(path) {
                lowered.insert(path.clone(), *found.min(recorded));
            }
        }
        Self(lowered)
    }
}

/// Compares `counts` with the record.
pub(super) fn check(root: &Path, counts: &Counts) -> Result<Vec<Finding>> {
    Ok(counts.compare(&Counts::read(root)?))
}

/// Lowers the record to `counts`; raises none.
pub(super) fn bless(root: &Path, counts: &Counts) -> Result<()> {
    let record = counts.lower(&Counts::read(root)?);
    fs::write(root.join(RECORD), record.print()).context(RECORD)
}

/// Returns the doc comments of a source file that do not say what their item does.
pub(super) fn check_docs(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Comment { line, is_doc, text } in comments(code) {
        if is_doc && text.trim_start().starts_with(EMPTY_START) {
            findings.push(Finding {
                place: format!("{path}:{line}"),
                what: format!("begins with \"{EMPTY_START}\": say what the item does"),
                excuse: None,
            });
        }
    }
    findings
}

/// Returns false for documents about the past, which are not rewritten.
fn is_counted(path: &str) -> bool {
    !path.starts_with("docs/notes/") && path != "CHANGELOG.md"
}

/// Returns the number of phrases in `text`. A phrase may reach over the end of a line.
fn count(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").to_lowercase();
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '\'');
    let is_whole = |(start, phrase): (usize, &str)| {
        let after = &text[start + phrase.len()..];
        !text[..start].ends_with(is_part) && !after.starts_with(is_part)
    };
    let found = PHRASES.iter().flat_map(|phrase| text.match_indices(phrase));
    found.filter(|place| is_whole(*place)).count()
}

/// Returns a Markdown text without fenced code.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let mark = super::prose::fence_mark(line.trim_start());
        fence = match (fence, mark) {
            (None, Some(mark)) => Some(mark),
            (Some(open), Some(mark)) if open == mark => None,
            (None, None) => {
                prose.push_str(line);
                None
            }
            (open, _) => open,
        };
        prose.push('\n');
    }
    prose
}

/// Returns the line comments of Rust code. Comments that follow each other alone on their lines
/// are one.
fn comments(code: &str) -> Vec<Comment> {
    let mut found: Vec<Comment> = Vec::new();
    let mut open = None;
    let mut last = 0;
    for (index, line) in code.lines().enumerate() {
        let Some(column) = comment_start(line, &mut open) else { continue };
        let body = &line[column + 2..];
        let is_doc = body.starts_with('!') || body.starts_with('/') && !body.starts_with("//");
        let text = body.trim_start_matches(['/', '!']);
        let is_alone = line[..column].trim().is_empty();
        match found.last_mut() {
            Some(before) if last == index && is_alone && before.is_doc == is_doc => {
                before.text.push('\n');
                before.text.push_str(text);
            }
            _ => found.push(Comment { line: index + 1, is_doc, text: text.to_owned() }),
        }
        last = index + 1;
    }
    found
}

/// Returns the column at which a line comment begins. `open` is what reaches into the line from
/// the one before, then what reaches out of it.
fn comment_start(line: &str, open: &mut Option<Open>) -> Option<usize> {
    let mut at = 0;
    loop {
        if let Some(inside) = open {
            at += end_of(&line[at..], inside)?;
            *open = None;
        }
        at += line[at..].find(['/', '"', '\''])?;
        let rest = &line[at..];
        if rest.starts_with("//") {
            return Some(at);
        }
        if rest.starts_with('\'') {
            at += quoted_len(rest);
            continue;
        }
        if rest.starts_with("/*") {
            *open = Some(Open::Until("*/".to_owned()));
            at += 1;
        } else if rest.starts_with('"') {
            let before = line[..at].trim_end_matches('#');
            let hashes = "#".repeat(at - before.len());
            let is_raw = before.ends_with('r');
            *open = Some(if is_raw { Open::Until(format!("\"{hashes}")) } else { Open::Escaped });
        }
        at += 1;
    }
}

/// Returns the bytes of `text` up to the end of what is open; `None` if it does not end there.
fn end_of(text: &str, open: &Open) -> Option<usize> {
    match open {
        Open::Until(end) => text.find(end).map(|start| start + end.len()),
        Open::Escaped => {
            let mut is_escaped = false;
            let ends = |letter| {
                let ends = letter == '"' && !is_escaped;
                is_escaped = letter == '\\' && !is_escaped;
                ends
            };
            text.find(ends).map(|quote| quote + 1)
        }
    }
}

/// Returns the bytes of the character literal that `text` begins with; 1 if it is a lifetime.
fn quoted_len(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    let is_escaped = letters.next().is_some_and(|(_, letter)| letter == '\\');
    if is_escaped {
        letters.next(); // may be a quotation mark
        return letters.find(|(_, letter)| *letter == '\'').map_or(1, |(end, _)| end + 1);
    }
    letters.next().filter(|(_, letter)| *letter == '\'').map_or(1, |(end, _)| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(files: &[(&str, &str)]) -> Counts {
        let mut counts = Counts::default();
        for (path, text) in files {
            counts.add(path, text);
        }
        counts
    }

    fn count_of(path: &str, text: &str) -> usize {
        counts(&[(path, text)]).0.get(path).copied().unwrap_or(0)
    }

    #[test]
    fn phrases_are_whole_words_in_any_case_and_on_any_line() {
        assert_eq!(count("Those of them, and (those who) wait: that of it."), 3);
        assert_eq!(count("those\n  that are"), 1);
        assert_eq!(count("those, that are; those offered; a hat of wool"), 0);
    }

    #[test]
    fn comments_are_counted_and_code_is_not() {
        assert_eq!(count_of("a.rs", "/// The keys, those\n/// of one table.\nfn of() {}\n"), 1);
        assert_eq!(count_of("a.rs", "//! That of a head.\n\nlet a = 1; // that of a line\n"), 2);
        assert_eq!(count_of("a.rs", "let that = those\n    .of_which(\"that of\");\n"), 0);
        // Comments on lines that are not neighbours are no sentence.
        assert_eq!(count_of("a.rs", "// those\nlet a = 1;\n// of it\n"), 0);
    }

    #[test]
    fn strings_end_where_they_do() {
        for code in [
            "let a = \"a \\\" // that of\";",
            "let a = \"a\n // that of\n\";",
            "let a = r\"\\\"; let b = r#\"a \" // that of\"#;",
            "let a = b\"// that of\";",
            "/* that of */ let a = '\\\\';",
        ] {
            assert_eq!(count_of("a.rs", code), 0, "{code}");
            assert_eq!(count_of("a.rs", &format!("{code} // that of")), 1, "{code}");
        }
        for code in ["let a = '\"';", "let a = '\\'';", "let a: &'static str = b;", "a / 'ä'"] {
            assert_eq!(count_of("a.rs", &format!("{code} // that of")), 1, "{code}");
        }
    }

    #[test]
    fn documents_are_counted_but_for_code_and_the_past() {
        let text = "Those of\n\n```\nthat of\n~~~\n```\n\n| that of |\n";
        assert_eq!(count_of("docs/a.md", text), 2);
        assert_eq!(count_of("docs/notes/a.md", text), 0);
        assert_eq!(count_of("CHANGELOG.md", text), 0);
    }

    #[test]
    fn a_phrase_more_than_recorded_is_found_and_one_less_asks_to_lower_the_record() {
        let record = Counts::parse("# head\n\na.rs 2\nb.rs 1\n").unwrap();
        let line = "// that of\n";
        let whats = |files: &[(&str, &str)]| -> Vec<(String, String)> {
            let found = counts(files).compare(&record).into_iter();
            found.map(|finding| (finding.place, finding.what[..21].to_owned())).collect()
        };
        assert_eq!(whats(&[("a.rs", &line.repeat(2)), ("b.rs", line)]), []);
        let found = whats(&[("a.rs", &line.repeat(3)), ("c.rs", line)]);
        let expected = [
            ("a.rs", "3 phrases, 2 recorded"),
            ("c.rs", "1 phrases, 0 recorded"),
            ("b.rs", "0 phrases, 1 recorded"),
        ];
        assert_eq!(found, expected.map(|(path, what)| (path.to_owned(), what.to_owned())));
    }

    #[test]
    fn blessing_lowers_the_record_and_raises_nothing() {
        let record = Counts::parse("a.rs 2\nb.rs 2\nc.rs 1\n").unwrap();
        let line = "// that of\n";
        let found = counts(&[("a.rs", line), ("b.rs", &line.repeat(3)), ("d.rs", line)]);
        let lowered = found.lower(&record);
        assert_eq!(lowered, Counts::parse("a.rs 1\nb.rs 2\n").unwrap());
        assert_eq!(Counts::parse(&lowered.print()).unwrap(), lowered);
    }

    #[test]
    fn a_doc_comment_that_begins_with_does_the_same_is_found() {
        let places = |code: &str| -> Vec<String> {
            check_docs("a.rs", code).into_iter().map(|finding| finding.place).collect()
        };
        assert_eq!(places("fn a() {}\n\n/// Does the same, twice.\nfn b() {}\n"), ["a.rs:3"]);
        assert_eq!(places("//! Does\n//! the same.\n"), [""; 0]);
        assert_eq!(places("/// Reads.\n// Does the same here.\n"), [""; 0]);
    }
}
