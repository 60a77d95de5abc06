//! Reads words, numbers and keys from a line of text.

use crate::key::{Key, key_after};
use crate::range::KeyRange;
use std::fmt;

/// Why a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, in characters counted from 1.
    pub column: usize,
    /// What was expected at this position, and what was found.
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TextError {}

/// A line that is being read, without its comment.
pub(super) struct Scanner<'a> {
    line: usize,
    text: &'a str,
    at: usize,
    /// The comment at the end of the line, trimmed; empty if there is none.
    pub(super) comment: &'a str,
}

pub(super) type Result<T> = std::result::Result<T, TextError>;

impl<'a> Scanner<'a> {
    /// Returns the lines of `text` without empty lines and lines that hold only a comment.
    pub(super) fn lines(text: &'a str) -> impl Iterator<Item = Scanner<'a>> {
        let lines = text.lines().enumerate().map(|(index, line)| Scanner::new(index + 1, line));
        lines.filter(|scanner| !scanner.text.trim().is_empty())
    }

    fn new(line: usize, text: &'a str) -> Scanner<'a> {
        let (text, comment) = split_comment(text);
        Scanner { line, text, at: 0, comment: comment.trim() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips spaces.
    pub(super) fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Returns an error that says what was expected here.
    pub(super) fn expected(&self, what: impl fmt::Display) -> TextError {
        let found: String = self.rest().trim_start().chars().take(24).collect();
        let found =
            if found.is_empty() { "the end of the line".into() } else { format!("`{found}`") };
        TextError {
            line: self.line,
            column: self.text[..self.at].chars().count() + 1,
            message: format!("expected {what}, found {found}"),
        }
    }

    /// Returns true if only spaces are left.
    pub(super) fn is_done(&mut self) -> bool {
        self.skip_spaces();
        self.rest().is_empty()
    }

    /// Fails unless only spaces are left.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.is_done() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    /// Consumes `token` and returns true if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Consumes the word `word` and returns true if it comes next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        self.skip_spaces();
        let ends = |text: &str| !text.starts_with(is_bare);
        let found = self.rest().strip_prefix(word).is_some_and(ends);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Consumes `token`. Fails if it does not come next.
    pub(super) fn want(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(format_args!("`{token}`"))) }
    }

    /// Consumes a word: letters, digits, `_`, `-` and `/`.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.word_here() {
            "" => Err(self.expected(what)),
            word => Ok(word),
        }
    }

    /// Consumes a word, which is empty if none comes next.
    fn word_here(&mut self) -> &'a str {
        self.skip_spaces();
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !is_bare(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Consumes a decimal number.
    pub(super) fn integer(&mut self, what: &str) -> Result<u64> {
        self.prefixed("", what)
    }

    /// Consumes a name of `prefix` and a number, such as `r12`.
    pub(super) fn prefixed(&mut self, prefix: &str, what: &str) -> Result<u64> {
        let start = self.at;
        let word = self.word(what)?;
        let value = word.strip_prefix(prefix).and_then(|digits| digits.parse().ok());
        value.ok_or_else(|| {
            self.at = start;
            self.expected(what)
        })
    }

    /// Consumes a number and `suffix`, such as `40e`, if they come next.
    pub(super) fn suffixed(&mut self, suffix: char) -> Option<u64> {
        let start = self.at;
        let value = self.word_here().strip_suffix(suffix).and_then(|word| word.parse().ok());
        if value.is_none() {
            self.at = start;
        }
        value
    }

    /// Consumes a size in bytes, such as `4MiB`.
    pub(super) fn bytes(&mut self) -> Result<u64> {
        let start = self.at;
        let word = self.word("a size in bytes")?;
        lsmith_spec::parse_bytes(word).map_err(|_| {
            self.at = start;
            self.expected("a size in bytes")
        })
    }

    /// Consumes a key range: two keys around `..`. Either key may be missing.
    pub(super) fn range(&mut self) -> Result<KeyRange> {
        self.skip_spaces();
        let start = self.key()?.unwrap_or_default();
        self.want("..")?;
        Ok(KeyRange { start, end: self.key()? })
    }

    /// Consumes a key if one comes next without a space before it.
    pub(super) fn key(&mut self) -> Result<Option<Key>> {
        let rest = self.rest();
        if rest.starts_with('"') {
            return self.quoted().map(|bytes| Some(Key::from(bytes)));
        }
        if rest.starts_with('#') {
            self.at += 1;
            let integer = self.integer("a number")?.to_be_bytes();
            let after = self.eat("+");
            return Ok(Some(if after {
                key_after(&integer)
            } else {
                Key::copy_from_slice(&integer)
            }));
        }
        Ok(rest
            .starts_with(is_bare)
            .then(|| self.word("a key"))
            .transpose()?
            .map(|word| Key::copy_from_slice(word.as_bytes())))
    }

    /// Consumes a word or a quoted text.
    pub(super) fn text(&mut self, what: &str) -> Result<String> {
        self.skip_spaces();
        if !self.rest().starts_with('"') {
            return self.word(what).map(str::to_string);
        }
        let bytes = self.quoted()?;
        String::from_utf8(bytes).map_err(|_| self.expected("valid UTF-8"))
    }

    fn quoted(&mut self) -> Result<Vec<u8>> {
        self.want("\"")?;
        let mut bytes = Vec::new();
        let mut rest = self.rest().as_bytes().iter();
        let mut next = || rest.next().copied();
        let unclosed = "a closing quote";
        loop {
            let consumed;
            match next().ok_or_else(|| self.expected(unclosed))? {
                b'"' => {
                    self.at += 1;
                    return Ok(bytes);
                }
                b'\\' => match next() {
                    Some(b'x') => {
                        let pair = [next().unwrap_or(b'?'), next().unwrap_or(b'?')];
                        let digits = std::str::from_utf8(&pair).unwrap_or("?");
                        let byte = u8::from_str_radix(digits, 16);
                        bytes.push(byte.map_err(|_| self.expected("two hexadecimal digits"))?);
                        consumed = 4;
                    }
                    Some(byte @ (b'"' | b'\\')) => {
                        bytes.push(byte);
                        consumed = 2;
                    }
                    _ => return Err(self.expected("an escape: \\xNN, \\\" or \\\\")),
                },
                byte => {
                    bytes.push(byte);
                    consumed = 1;
                }
            }
            self.at += consumed;
        }
    }
}

/// Returns true if `c` needs no quotes in a key or word.
pub(super) fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/')
}

/// Splits a line at the first `# ` (or a `#` that ends it) outside quotes.
fn split_comment(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '#' if !quoted && matches!(text[at + 1..].chars().next(), None | Some(' ')) => {
                return (&text[..at], &text[at + 1..]);
            }
            _ => {}
        }
    }
    (text, "")
}
