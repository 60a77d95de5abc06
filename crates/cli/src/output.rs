//! Printing to standard output. The reader may close it at any time.
//!
//! With `--csv` the rows of tables are printed and the text around them is not. A table marks its
//! rows for that, with characters that no text has.

use crate::table::is_csv;
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

/// The first character of the header of a table in CSV.
pub(crate) const CSV_HEAD: char = '\u{1d}';

/// The first character of any other row of a table in CSV.
pub(crate) const CSV_ROW: char = '\u{1e}';

/// Buffered standard output. [`finish`](Output::finish) flushes it, so that a closed pipe is an
/// error and not a panic.
pub(crate) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    /// True once a row of CSV was printed.
    has_rows: bool,
}

impl Output {
    pub(crate) fn new() -> Output {
        Output { stdout: BufWriter::new(io::stdout().lock()), has_rows: false }
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        if is_csv() { self.rows(&text.to_string()) } else { writeln!(self.stdout, "{text}") }
    }

    /// Prints the rows of tables in `text`. An empty line separates two tables.
    fn rows(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            if let Some(row) = line.strip_prefix(CSV_HEAD) {
                if self.has_rows {
                    writeln!(self.stdout)?;
                }
                self.has_rows = true;
                writeln!(self.stdout, "{row}")?;
            } else if let Some(row) = line.strip_prefix(CSV_ROW) {
                writeln!(self.stdout, "{row}")?;
            }
        }
        Ok(())
    }

    /// Prints `bytes` unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// Flushes all output.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Prints one line and flushes it.
pub(crate) fn print(text: impl Display) -> io::Result<()> {
    let mut output = Output::new();
    output.line(text)?;
    output.finish()
}

/// Prints the JSON object of a command with `--json`.
pub(crate) fn print_json(object: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(print(serde_json::to_string(object)?)?)
}

/// Returns true if `term` shows colours. `NO_COLOR` forbids them, `CLICOLOR_FORCE` asks for them.
pub(crate) fn has_colours(term: &console::Term) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let forced = || std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    !is_set("NO_COLOR") && (forced() || term.features().colors_supported())
}

/// Wraps `text` to lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_texts_are_wrapped() {
        let text = wrapped(&"word ".repeat(60), 100);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(text.split_whitespace().count(), 60);
    }
}
