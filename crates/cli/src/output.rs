//! Printing to standard output. The reader may close it at any time.

use serde_json::Value;
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

/// Buffered standard output. [`finish`](Output::finish) flushes it, so that a closed pipe is an
/// error and not a panic.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Output {
        Output(BufWriter::new(io::stdout().lock()))
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.0, "{text}")
    }

    /// Prints `bytes` unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Flushes all output.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
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

/// Returns a key or value as text. Printable UTF-8 is unchanged; in any other `bytes`, backslashes
/// and unprintable bytes become `\xNN`.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let printable = |c: char| !c.is_control();
    if let Ok(text) = std::str::from_utf8(bytes)
        && text.chars().all(printable)
    {
        return text.to_owned();
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\x5c"),
                c if printable(c) => text.push(c),
                c => escape(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

/// Returns a key or value as a JSON string.
pub(crate) fn json_text(bytes: &[u8]) -> Value {
    Value::String(readable(bytes))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn printable_bytes_are_not_escaped() {
        assert_eq!(readable("a/b ä\\x".as_bytes()), "a/b ä\\x");
        assert_eq!(readable(b"a\tb\\"), "a\\x09b\\x5c");
        assert_eq!(readable(b"\xff\x00k"), "\\xff\\x00k");
        assert_eq!(readable(b""), "");
    }
}
