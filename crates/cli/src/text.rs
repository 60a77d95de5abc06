//! Keys and values as text, and back: any bytes that are printed and parsed are the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How keys and values are written as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Printable UTF-8 as it is, a backslash as `\\`, and any other byte as `\xNN`.
    #[default]
    Escaped,
    /// Two hexadecimal digits for each byte.
    Hex,
    /// Input is the bytes themselves. Output is escaped.
    Raw,
}

impl Coding {
    /// Returns the bytes that `text` stands for. Fails with a message if it stands for none.
    pub(crate) fn parse(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Coding::Escaped => unescaped(text),
            Coding::Hex => of_hex(text),
            Coding::Raw => Ok(text.to_vec()),
        }
    }

    /// Returns `bytes` as text without control characters.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        match self {
            Coding::Hex => hex(bytes),
            Coding::Escaped | Coding::Raw => escaped(bytes),
        }
    }

    /// Adds `bytes` to a JSON object: as `name` if they are UTF-8, else in base64 as `name_base64`;
    /// with hexadecimal digits as `name_hex`.
    pub(crate) fn add(self, fields: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
        let (name, text) = match (self, std::str::from_utf8(bytes)) {
            (Coding::Hex, _) => (format!("{name}_hex"), hex(bytes)),
            (_, Ok(text)) => (name.to_owned(), text.to_owned()),
            (_, Err(_)) => (format!("{name}_base64"), STANDARD.encode(bytes)),
        };
        fields.insert(name, Value::String(text));
    }

    /// Returns a JSON object with `fields`, each as [`Coding::add`] adds it.
    pub(crate) fn object(self, fields: &[(&str, &[u8])]) -> Value {
        let mut object = Map::new();
        fields.iter().for_each(|(name, bytes)| self.add(&mut object, name, bytes));
        Value::Object(object)
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _infallible = write!(text, "\\x{byte:02x}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => escape(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => text.push(c),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

/// Parses what [`escaped`] prints. Bytes that it would escape stand for themselves.
fn unescaped(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let behind = &rest[at + 1..];
        let (byte, length) = match behind {
            [b'\\', ..] => (b'\\', 1),
            [b'x', digits @ ..] if digits.len() >= 2 => match byte_of(&digits[..2]) {
                Some(byte) => (byte, 3),
                None => return Err(bad_escape(behind)),
            },
            _ => return Err(bad_escape(behind)),
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

/// Returns the message for `behind`, what follows a backslash.
fn bad_escape(behind: &[u8]) -> String {
    let found = escaped(&behind[..behind.len().min(3)]);
    let expected = "expected `\\\\` for a backslash, or `\\xNN` for a byte";
    format!("{expected}, found `\\{found}`; `--raw` takes keys and values as they are")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn of_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    let parsed: Option<Vec<u8>> = text.chunks(2).map(byte_of).collect();
    parsed.ok_or_else(|| {
        format!("expected two hexadecimal digits for each byte, found `{}`", escaped(text))
    })
}

/// Returns the byte of two hexadecimal digits.
fn byte_of(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match digits {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backslashes_and_unprintable_bytes_are_escaped() {
        assert_eq!(escaped("a/b ä".as_bytes()), "a/b ä");
        assert_eq!(escaped(b"a\tb\\"), "a\\x09b\\\\");
        assert_eq!(escaped(b"a\\x09b"), "a\\\\x09b");
        assert_eq!(escaped(b"\xff\x00k"), "\\xff\\x00k");
        assert_eq!(escaped(b""), "");
    }

    #[test]
    fn what_is_no_escape_is_named() {
        let refused = |text: &[u8]| unescaped(text).unwrap_err();
        let end = "; `--raw` takes keys and values as they are";
        for (text, found) in [("a\\", "\\"), ("\\n", "\\n"), ("\\x4g", "\\x4g"), ("\\xa", "\\xa")] {
            let message = refused(text.as_bytes());
            assert!(message.ends_with(&format!("found `{found}`{end}")), "{message}");
        }
        assert_eq!(unescaped(b"a\xff\t\\xFf").unwrap(), b"a\xff\t\xff");
        let message = of_hex(b"abc").unwrap_err();
        assert_eq!(message, "expected two hexadecimal digits for each byte, found `abc`");
        assert!(of_hex(b"+1").is_err());
    }

    #[test]
    fn json_has_text_or_base64() {
        let fields = [("key", &b"a\t\\x09"[..]), ("value", b"\xff\0")];
        let object = Coding::Escaped.object(&fields);
        assert_eq!(object, serde_json::json!({ "key": "a\t\\x09", "value_base64": "/wA=" }));
        let object = Coding::Hex.object(&fields[1..]);
        assert_eq!(object, serde_json::json!({ "value_hex": "ff00" }));
    }

    /// Returns bytes that an escape could lose, as often as any other.
    fn bytes_of(choices: &mut lsmith_fuzz::Choices<'_>) -> Vec<u8> {
        const HARD: &[u8] = b"\\\\\\x09\t\n\r\0 \xff\xc3\xa4\xe2\x80\xa8\x7f\xc2\x85";
        let length = choices.below(30);
        let byte = |choices: &mut lsmith_fuzz::Choices<'_>| match choices.below(2) {
            0 => choices.pick(HARD),
            _ => choices.below(256) as u8,
        };
        (0..length).map(|_| byte(choices)).collect()
    }

    #[test]
    fn fuzz_bytes_printed_and_parsed_are_the_same() {
        lsmith_fuzz::fuzz!(20_000, |choices| {
            let bytes = bytes_of(choices);
            for coding in [Coding::Escaped, Coding::Hex] {
                let text = coding.show(&bytes);
                assert!(!text.chars().any(char::is_control), "{text:?}");
                assert_eq!(coding.parse(text.as_bytes()), Ok(bytes.clone()), "{text}");
            }
            // Text from outside is refused, or it is the text of its bytes in other words.
            if let Ok(parsed) = unescaped(&bytes) {
                assert_eq!(unescaped(escaped(&parsed).as_bytes()), Ok(parsed));
            }
        });
    }
}
