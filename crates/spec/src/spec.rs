//! The grammar of a spec: `name`, `name(value, param=value, ...)`.

use std::fmt;
use std::str::FromStr;

use crate::SpecError;

/// A name with its arguments, as written: `leveled(ratio=10, pick=oldest)`, `trace(a.csv, ops=5)`.
///
/// A name is a letter followed by letters, digits, `_` and `-`. An argument is `param=value` or a
/// bare value; a value is any text without spaces at its ends, without a comma outside
/// parentheses, and with balanced parentheses, so paths and whole specs are values. Spaces between
/// the parts don't matter. `name()` is the same as `name`.
///
/// Printing what was parsed and parsing that again gives an equal spec.
///
/// ```
/// use lsmith_spec::Spec;
///
/// let spec: Spec = "ycsb( a, records=100k )".parse()?;
/// assert_eq!(spec.positional, ["a"]);
/// assert_eq!(spec.param("records"), Some("100k"));
/// assert_eq!(spec.to_string(), "ycsb(a, records=100k)");
/// # Ok::<(), lsmith_spec::SpecError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The name before the parentheses.
    pub name: String,
    /// Arguments without a name, in order.
    pub positional: Vec<String>,
    /// Arguments with a name, in order, no name twice.
    pub params: Vec<(String, String)>,
}

impl Spec {
    /// Returns a spec without arguments.
    #[must_use]
    pub fn bare(name: impl Into<String>) -> Self {
        Self { name: name.into(), positional: Vec::new(), params: Vec::new() }
    }

    /// Returns the same spec with one more parameter at its end.
    #[must_use]
    pub fn with(mut self, param: impl Into<String>, value: impl fmt::Display) -> Self {
        self.params.push((param.into(), value.to_string()));
        self
    }

    /// Returns the value of the parameter `name` as written, if given.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Parses several specs separated by `;`. A `;` inside parentheses belongs to its spec. Empty
    /// specs are skipped.
    ///
    /// # Errors
    /// As for parsing one spec; also if there is no spec at all.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, SpecError> {
        let mut parser = Parser { text, at: 0 };
        let mut specs = Vec::new();
        loop {
            parser.skip_spaces();
            match parser.peek() {
                Some(';') => parser.at += 1,
                None if !specs.is_empty() => return Ok(specs),
                _ => specs.push(parser.spec("`;` or end of text", Some(';'))?),
            }
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Parser { text, at: 0 }.spec("end of text", None)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut separator = "(";
        for value in &self.positional {
            write!(f, "{separator}{value}")?;
            separator = ", ";
        }
        for (name, value) in &self.params {
            write!(f, "{separator}{name}={value}")?;
            separator = ", ";
        }
        f.write_str(if separator == "(" { "" } else { ")" })
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Byte offset of the next character.
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_spaces(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn unexpected(&self, expected: &'static str) -> SpecError {
        let found = self.peek().map_or("end of text".to_owned(), |c| format!("`{c}`"));
        SpecError::Syntax { at: self.at, found, expected }
    }

    /// Parses one spec and the spaces around it, up to the end of the text or up to `end`.
    fn spec(&mut self, follow: &'static str, end: Option<char>) -> Result<Spec, SpecError> {
        self.skip_spaces();
        let name_len = name_len(&self.text[self.at..]);
        if name_len == 0 {
            return Err(self.unexpected("a name"));
        }
        let mut spec = Spec::bare(&self.text[self.at..self.at + name_len]);
        self.at += name_len;
        self.skip_spaces();
        let bare = self.peek() != Some('(');
        if !bare {
            self.at += 1;
            self.arguments(&mut spec)?;
            self.skip_spaces();
        }
        match self.peek() {
            None => Ok(spec),
            Some(next) if Some(next) == end => Ok(spec),
            Some(_) if bare => Err(self.unexpected("`(` or the end of the spec")),
            Some(_) => Err(self.unexpected(follow)),
        }
    }

    /// Parses everything after `(`, up to and including its `)`.
    fn arguments(&mut self, spec: &mut Spec) -> Result<(), SpecError> {
        self.skip_spaces();
        if self.peek() == Some(')') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_spaces();
            let start = self.at;
            let (argument, last) = self.argument()?;
            match split_param(argument) {
                Some((name, _)) if spec.param(name).is_some() => {
                    return Err(SpecError::Duplicate { at: start, param: name.to_owned() });
                }
                Some((_, "")) => return Err(self.empty_at(start + argument.len())),
                Some((name, value)) => spec.params.push((name.to_owned(), value.to_owned())),
                None if argument.is_empty() => return Err(self.empty_at(start)),
                None => spec.positional.push(argument.to_owned()),
            }
            if last {
                return Ok(());
            }
        }
    }

    fn empty_at(&mut self, at: usize) -> SpecError {
        self.at = at;
        self.skip_spaces();
        self.unexpected("a value")
    }

    /// Returns the text up to the next `,` or `)` outside inner parentheses, and whether it was the
    /// `)`.
    fn argument(&mut self) -> Result<(&'a str, bool), SpecError> {
        let rest = &self.text[self.at..];
        let mut depth = 0usize;
        for (offset, c) in rest.char_indices() {
            match c {
                ',' | ')' if depth == 0 => {
                    self.at += offset + 1;
                    return Ok((rest[..offset].trim_end(), c == ')'));
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
        }
        self.at = self.text.len();
        Err(self.unexpected("`)`"))
    }
}

/// Returns the length in bytes of the name at the start of the text; 0 if there is none.
fn name_len(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return 0;
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.find(|c| !part(c)).unwrap_or(text.len())
}

/// Splits `name = value`. Returns `None` if the text before the first `=` is not a name.
fn split_param(argument: &str) -> Option<(&str, &str)> {
    let (name, value) = argument.split_once('=')?;
    let name = name.trim_end();
    (name_len(name) == name.len() && !name.is_empty()).then(|| (name, value.trim_start()))
}

#[cfg(test)]
mod tests;
