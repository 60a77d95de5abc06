//! Property files: one `name=value` per line.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::WorkloadError;

/// The properties of one file. Names that nobody asks for are ignored, as YCSB does.
#[derive(Debug)]
pub(super) struct Properties<'a> {
    file: &'a str,
    /// Name, value and line; of equal names the last one counts.
    entries: Vec<(&'a str, &'a str, u64)>,
}

impl<'a> Properties<'a> {
    /// Reads the text of `file`: `name=value` or `name: value` lines, `#` or `!` for comments.
    pub(super) fn parse(file: &'a str, text: &'a [u8]) -> Result<Self, WorkloadError> {
        let mut properties = Self { file, entries: Vec::new() };
        for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
            let Ok(line) = std::str::from_utf8(line) else {
                return Err(properties.refuse(number, "not valid UTF-8".to_owned()));
            };
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            match line.split_once(['=', ':']) {
                Some((name, value)) if !name.trim().is_empty() => {
                    properties.entries.push((name.trim(), value.trim(), number));
                }
                _ => {
                    let message = format!("expected name=value, found `{line}`");
                    return Err(properties.refuse(number, message));
                }
            }
        }
        Ok(properties)
    }

    /// Returns the value of a property and its line.
    pub(super) fn text(&self, name: &str) -> Option<(&'a str, u64)> {
        let entry = self.entries.iter().rfind(|entry| entry.0 == name)?;
        Some((entry.1, entry.2))
    }

    /// Returns a whole number.
    pub(super) fn count(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, WorkloadError> {
        let Some((text, line)) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) if range.contains(&value) => Ok(Some(value)),
            Ok(_) => Err(self.out_of_range(name, text, line, &range)),
            Err(_) => {
                let message = format!("{name} = {text} is not a whole number");
                Err(self.refuse(line, message))
            }
        }
    }

    /// Returns a number from 0 to 1.
    pub(super) fn share(&self, name: &str, default: f64) -> Result<f64, WorkloadError> {
        let Some((text, line)) = self.text(name) else { return Ok(default) };
        match text.parse::<f64>() {
            Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
            Ok(_) => Err(self.out_of_range(name, text, line, &(0..=1))),
            Err(_) => Err(self.refuse(line, format!("{name} = {text} is not a number"))),
        }
    }

    /// Returns one of `known`; what YCSB knows beyond them is refused like what nobody knows.
    pub(super) fn choice(
        &self,
        name: &str,
        default: &'static str,
        known: &[&'static str],
    ) -> Result<&'static str, WorkloadError> {
        let Some((text, line)) = self.text(name) else { return Ok(default) };
        known.iter().find(|&&known| known == text).copied().ok_or_else(|| {
            let known = known.join(", ");
            self.refuse(line, format!("{name} = {text} is not supported; expected one of: {known}"))
        })
    }

    /// Returns an error about the file as a whole.
    pub(super) fn refuse_all(&self, message: impl Into<String>) -> WorkloadError {
        WorkloadError::Input { file: self.file.to_owned(), message: message.into() }
    }

    fn refuse(&self, line: u64, message: String) -> WorkloadError {
        WorkloadError::Line { file: self.file.to_owned(), line, message }
    }

    fn out_of_range(
        &self,
        name: &str,
        text: &str,
        line: u64,
        range: &RangeInclusive<impl Display>,
    ) -> WorkloadError {
        let start = range.start();
        let end = range.end();
        let message = format!("{name} = {text} is out of range: expected {start} to {end}");
        self.refuse(line, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Properties::parse("f", text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_trimmed_and_comments_skipped() {
        let text = b"# a\n! b\r\n\n  recordcount = 7 \r\nx: y=z\nrecordcount=8";
        let properties = Properties::parse("f", text).unwrap();
        assert_eq!(properties.text("recordcount"), Some(("8", 6)));
        assert_eq!(properties.text("x"), Some(("y=z", 5)));
        assert_eq!(properties.text("y"), None);
    }

    #[test]
    fn malformed_lines_and_values_are_named() {
        assert_eq!(
            refused("a=1\nrecordcount"),
            "f, line 2: expected name=value, found `recordcount`"
        );
        assert_eq!(refused("=1"), "f, line 1: expected name=value, found `=1`");
        assert!(Properties::parse("f", b"a=1\n\xff=2").is_err_and(|error| error.line() == Some(2)));

        let text = b"\nn=1e3\nshare=1.5\nother=x\nkind=odd\nlow=0";
        let properties = Properties::parse("f", text).unwrap();
        let message = |error: WorkloadError| error.to_string();
        assert_eq!(
            message(properties.count("n", 0..=9).unwrap_err()),
            "f, line 2: n = 1e3 is not a whole number"
        );
        assert_eq!(
            message(properties.share("share", 0.0).unwrap_err()),
            "f, line 3: share = 1.5 is out of range: expected 0 to 1"
        );
        assert_eq!(
            message(properties.share("other", 0.0).unwrap_err()),
            "f, line 4: other = x is not a number"
        );
        assert_eq!(
            message(properties.choice("kind", "a", &["a", "b"]).unwrap_err()),
            "f, line 5: kind = odd is not supported; expected one of: a, b"
        );
        assert_eq!(
            message(properties.count("low", 1..=9).unwrap_err()),
            "f, line 6: low = 0 is out of range: expected 1 to 9"
        );
    }
}
