//! Printing on standard output, where a reader may go away at any time.

use serde_json::Value;
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

/// Standard output, buffered. Flushed by [`finish`](Output::finish), so that a reader who has gone
/// shows as an error and not as a panic.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Output {
        Output(BufWriter::new(io::stdout().lock()))
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.0, "{text}")
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Makes sure that everything is out.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints one line and nothing else.
pub(crate) fn print(text: impl Display) -> io::Result<()> {
    let mut output = Output::new();
    output.line(text)?;
    output.finish()
}

/// Prints the one object of a command that was given `--json`.
pub(crate) fn print_json(object: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(print(serde_json::to_string(object)?)?)
}

/// Bytes of a key or a value as text: as they are where they are printable UTF-8, else with `\xNN`
/// for each byte that is not, and for backslashes.
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

/// A key or value in JSON.
pub(crate) fn json_text(bytes: &[u8]) -> Value {
    Value::String(readable(bytes))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn bytes_are_printed_as_they_are_if_they_can_be() {
        assert_eq!(readable("a/b ä\\x".as_bytes()), "a/b ä\\x");
        assert_eq!(readable(b"a\tb\\"), "a\\x09b\\x5c");
        assert_eq!(readable(b"\xff\x00k"), "\\xff\\x00k");
        assert_eq!(readable(b""), "");
    }
}
