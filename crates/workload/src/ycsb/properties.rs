//! Property files, in the syntax of Java's `Properties`.
//!
//! A line is a name and a value, with `=`, `:` or blanks between. `#` or `!` begins a comment. A
//! backslash at its end continues a line. `\t`, `\n`, `\r`, `\f` and `\uXXXX` are characters, and
//! any other character behind a backslash is itself.

use std::fmt::Display;
use std::ops::RangeInclusive;

use lsmith_spec::nearest;

use crate::WorkloadError;

/// The properties of one file.
#[derive(Debug)]
pub(super) struct Properties<'a> {
    file: &'a str,
    /// Of equal names the last one counts.
    entries: Vec<Property>,
}

#[derive(Debug)]
struct Property {
    name: String,
    value: String,
    /// The line on which it begins.
    line: u64,
}

impl<'a> Properties<'a> {
    /// Reads the text of `file`.
    pub(super) fn parse(file: &'a str, text: &[u8]) -> Result<Self, WorkloadError> {
        let mut properties = Self { file, entries: Vec::new() };
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        // What a backslash continues, with the line on which it begins.
        let mut begun: Option<(u64, String)> = None;
        let ends = |byte: &u8| *byte == b'\n';
        for (line, at) in text.split(ends).zip(1..) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Ok(line) = std::str::from_utf8(line) else {
                return Err(properties.refuse(at, "not valid UTF-8".to_owned()));
            };
            let line = line.trim_start_matches(is_blank);
            if begun.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
                continue;
            }
            let (first, mut logical) = begun.take().unwrap_or((at, String::new()));
            logical.push_str(line);
            let backslashes = line.chars().rev().take_while(|c| *c == '\\').count();
            if backslashes % 2 == 1 {
                logical.pop();
                begun = Some((first, logical));
            } else {
                properties.add(first, &logical)?;
            }
        }
        begun.map_or(Ok(()), |(first, logical)| properties.add(first, &logical))?;
        Ok(properties)
    }

    /// Adds the property of a line. If the line was continued, `text` has all of it.
    fn add(&mut self, line: u64, text: &str) -> Result<(), WorkloadError> {
        let mut escaped = false;
        let ends_name = |c: char| {
            let ends = !escaped && (is_blank(c) || c == '=' || c == ':');
            escaped = !escaped && c == '\\';
            ends
        };
        let (name, rest) = text.split_at(text.find(ends_name).unwrap_or(text.len()));
        let rest = rest.trim_start_matches(is_blank);
        let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(is_blank);
        let parse = |text: &str| unescaped(text).map_err(|message| self.refuse(line, message));
        let (name, value) = (parse(name)?, parse(value.trim_end_matches(is_blank))?);
        if name.is_empty() {
            return Err(self.refuse(line, format!("expected name=value, found `{text}`")));
        }
        self.entries.push(Property { name, value, line });
        Ok(())
    }

    /// Fails if a name is none of `known`. A name with a dot belongs to a database.
    pub(super) fn check_names(&self, known: &[&str]) -> Result<(), WorkloadError> {
        let is_foreign = |name: &str| name.contains('.') && !name.starts_with("exponential.");
        let is_known = |name: &str| known.contains(&name) || is_foreign(name);
        let Some(unknown) = self.entries.iter().find(|entry| !is_known(&entry.name)) else {
            return Ok(());
        };
        let name = &unknown.name;
        let rest = match nearest(name, known) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "remove it if it is for a database".to_owned(),
        };
        Err(self.refuse(unknown.line, format!("unknown property `{name}`; {rest}")))
    }

    /// Returns the value of a property and its line.
    pub(super) fn text(&self, name: &str) -> Option<(&str, u64)> {
        let entry = self.entries.iter().rfind(|entry| entry.name == name)?;
        Some((&entry.value, entry.line))
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
        self.real(name, default, 0.0..=1.0)
    }

    /// Returns a number of a range.
    pub(super) fn real(
        &self,
        name: &str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, WorkloadError> {
        let Some((text, line)) = self.text(name) else { return Ok(default) };
        match text.parse::<f64>() {
            Ok(value) if range.contains(&value) => Ok(value),
            Ok(_) => Err(self.out_of_range(name, text, line, &range)),
            Err(_) => Err(self.refuse(line, format!("{name} = {text} is not a number"))),
        }
    }

    /// Returns one of `known`.
    pub(super) fn choice(
        &self,
        name: &str,
        default: &'static str,
        known: &[&'static str],
    ) -> Result<&'static str, WorkloadError> {
        let Some((text, line)) = self.text(name) else { return Ok(default) };
        known.iter().find(|&&known| known == text).copied().ok_or_else(|| {
            let meant = nearest(text, known).map(|nearest| format!("; did you mean `{nearest}`?"));
            let (known, meant) = (known.join(", "), meant.unwrap_or_default());
            let message = format!("{name} = {text} is not supported; expected one of: {known}");
            self.refuse(line, message + &meant)
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

/// Returns true for what Java skips around names and values.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// Returns `text` with the characters that its escapes stand for.
fn unescaped(text: &str) -> Result<String, String> {
    // Two escapes may make one character.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        match escaped {
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let is_hex = digits.len() == 4 && digits.chars().all(|c| c.is_ascii_hexdigit());
                let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
                let expected = || format!("expected four hexadecimal digits, found `\\u{digits}`");
                units.push(unit.ok_or_else(expected)?);
            }
            Some('t') => units.push(u16::from(b'\t')),
            Some('n') => units.push(u16::from(b'\n')),
            Some('r') => units.push(u16::from(b'\r')),
            Some('f') => units.push(0x0c),
            escaped => {
                units.extend_from_slice(escaped.unwrap_or(c).encode_utf16(&mut [0; 2]));
            }
        }
    }
    String::from_utf16(&units).map_err(|_| "half of a surrogate pair".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Properties::parse("f", text.as_bytes()).unwrap_err().to_string()
    }

    fn value(text: &str, name: &str) -> String {
        let properties = Properties::parse("f", text.as_bytes()).unwrap();
        properties.text(name).unwrap_or_else(|| panic!("{name} in {properties:?}")).0.to_owned()
    }

    #[test]
    fn lines_are_trimmed_and_comments_skipped() {
        let text = b"# a\n! b\r\n\n  recordcount = 7 \r\nx: y=z\nrecordcount=8";
        let properties = Properties::parse("f", text).unwrap();
        assert_eq!(properties.text("recordcount"), Some(("8", 6)));
        assert_eq!(properties.text("x"), Some(("y=z", 5)));
        assert_eq!(properties.text("y"), None);
    }

    /// As `java.util.Properties` reads them.
    #[test]
    fn syntax_is_that_of_java() {
        assert_eq!(value("\u{feff}a=1", "a"), "1");
        assert_eq!(value("a 1", "a"), "1");
        assert_eq!(value("a\t:\t1 2", "a"), "1 2");
        assert_eq!(value("a==1", "a"), "=1");
        assert_eq!(value("a", "a"), "");
        assert_eq!(value("a=1\\\n   2\\\r\n\t3\nb=4", "a"), "123");
        assert_eq!(value("a=1\\\n# no comment\nb=4", "a"), "1# no comment");
        assert_eq!(value("a=1\\\\\nb=4", "b"), "4");
        assert_eq!(value("a=1\\", "a"), "1");
        assert_eq!(value("a\\=\\ b=c\\:\\t\\u0064\\ud83d\\ude00\\q", "a= b"), "c:\td\u{1f600}q");
        assert_eq!(
            refused("a=\\u12"),
            "f, line 1: expected four hexadecimal digits, found `\\u12`"
        );
        assert_eq!(refused("a=\\ud83d"), "f, line 1: half of a surrogate pair");
    }

    #[test]
    fn slip_in_a_name_is_refused() {
        let properties = Properties::parse("f", b"\ndb.url=x\nrecordcont=1").unwrap();
        let error = properties.check_names(&["recordcount"]).unwrap_err().to_string();
        let expected = "f, line 3: unknown property `recordcont`; did you mean `recordcount`?";
        assert_eq!(error, expected);
    }

    #[test]
    fn malformed_lines_and_values_are_named() {
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
