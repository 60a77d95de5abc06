//! A reader of JSON, as small as specs of workloads need.

/// Deepest nesting.
const DEPTH_MAX: usize = 64;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// Names and values, in the order of the file.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a whole text. Fails with a message that has the line.
    pub(super) fn parse(text: &str) -> Result<Json, (u64, String)> {
        let mut parser = Parser { text, at: 0 };
        let parsed = parser.value(0).and_then(|value| match parser.peek() {
            None => Ok(value),
            Some(_) => Err(parser.expected("the end of the file")),
        });
        let line = || text[..parser.at].matches('\n').count() as u64 + 1;
        parsed.map_err(|message| (line(), message))
    }

    /// Returns what `name` has in an object; `None` for nothing and for null.
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        let Json::Object(fields) = self else { return None };
        let found = fields.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        found.filter(|value| **value != Json::Null)
    }

    /// Returns what kind of value it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a flag",
            Json::Number(_) => "a number",
            Json::Text(_) => "text",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    /// Returns the next letter that is no space, which is not taken.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.at += spaces;
        self.text[self.at..].chars().next()
    }

    fn expected(&mut self, what: &str) -> String {
        match self.peek() {
            Some(found) => format!("expected {what}, found `{}`", found.escape_debug()),
            None => format!("expected {what}, found the end of the file"),
        }
    }

    /// Takes `letter` if it comes next.
    fn takes(&mut self, letter: char) -> bool {
        let is_next = self.peek() == Some(letter);
        self.at += if is_next { letter.len_utf8() } else { 0 };
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > DEPTH_MAX {
            return Err(format!("expected at most {DEPTH_MAX} values in each other, found more"));
        }
        match self.peek() {
            Some('{') => self.object(depth),
            Some('[') => self.list(depth),
            Some('"') => self.string().map(Json::Text),
            Some('-' | '0'..='9') => self.number(),
            _ => {
                let words = [
                    ("null", Json::Null),
                    ("true", Json::Bool(true)),
                    ("false", Json::Bool(false)),
                ];
                for (word, value) in words {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.expected("a value"))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        self.at += 1;
        if self.takes('}') {
            return Ok(Json::Object(fields));
        }
        loop {
            if self.peek() != Some('"') {
                return Err(self.expected("a name in quotes"));
            }
            let name = self.string()?;
            if !self.takes(':') {
                return Err(self.expected("`:`"));
            }
            fields.push((name, self.value(depth + 1)?));
            if self.takes('}') {
                return Ok(Json::Object(fields));
            }
            if !self.takes(',') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        let mut values = Vec::new();
        self.at += 1;
        if self.takes(']') {
            return Ok(Json::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.takes(']') {
                return Ok(Json::List(values));
            }
            if !self.takes(',') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let rest = &self.text[self.at..];
        let is_part = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let number = rest[..end].parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| format!("`{}` is not a number", &rest[..end]))?;
        self.at += end;
        Ok(Json::Number(number))
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let mut rest = self.text[self.at..].chars();
            let letter = rest.next().ok_or("expected a quote at the end of text, found none")?;
            self.at += letter.len_utf8();
            match letter {
                '"' => return Ok(text),
                '\\' => {
                    let escaped = rest.next().ok_or("expected a letter behind `\\`, found none")?;
                    self.at += escaped.len_utf8();
                    text.push(match escaped {
                        '"' | '\\' | '/' => escaped,
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'u' => {
                            let code = self.text.get(self.at..self.at + 4);
                            let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
                            self.at += code.map_or(0, |_| 4);
                            code.and_then(char::from_u32).ok_or(
                                "expected four hexadecimal digits of a letter behind `\\u`",
                            )?
                        }
                        _ => return Err(format!("unknown escape `\\{escaped}`")),
                    });
                }
                _ => text.push(letter),
            }
        }
    }
}
