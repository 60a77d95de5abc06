//! Printing to standard output. The reader may close it at any time.
//!
//! With `--csv` the rows of tables are printed and the text around them is not. A table marks its
//! rows for that, with characters that no text has.

use crate::layout::{CSV_HEAD, CSV_ROW, is_csv};
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

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
