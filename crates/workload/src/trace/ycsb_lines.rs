//! What YCSB's binding `basic` prints: one line for each operation, among others.

use super::op::TraceOpKind;
use super::record::{Record, checked_size};

/// Returns true if a file that starts with `line` is the output of YCSB.
pub(super) fn starts(line: &str) -> bool {
    line.starts_with("***************** properties *")
        || line.contains("site.ycsb.Client")
        || line.contains("com.yahoo.ycsb.Client")
        || matches!(operation(line), Ok(Some(_)))
}

/// Parses a line; `None` if it shows no operation.
pub(super) fn operation(line: &str) -> Result<Option<Record<'_>>, String> {
    let mut words = line.split(' ');
    let kind = match words.next() {
        Some("READ") => TraceOpKind::Get,
        Some("SCAN") => TraceOpKind::Scan,
        Some("INSERT" | "UPDATE") => TraceOpKind::Put,
        Some("DELETE") => TraceOpKind::Delete,
        _ => return Ok(None),
    };
    words.next().filter(|table| !table.is_empty()).ok_or("expected a table, found none")?;
    let key = words.next().filter(|key| !key.is_empty()).ok_or("expected a key, found none")?;
    if kind == TraceOpKind::Delete {
        return match words.next() {
            None => Ok(Some(Record::new(kind, key.as_bytes(), 0))),
            Some(word) => Err(format!("expected the end behind the key, found `{word}`")),
        };
    }
    let count = if kind == TraceOpKind::Scan { words.next().unwrap_or_default() } else { "" };
    let inner = line.split_once(" [ ").and_then(|(_, rest)| rest.strip_suffix(']'));
    let inner = inner.ok_or_else(|| {
        let end: String = line.chars().skip(line.chars().count().saturating_sub(20)).collect();
        format!("expected fields in brackets, [ to ], found `{end}` at the end")
    })?;
    let size = match kind {
        TraceOpKind::Put => field_bytes(inner)?,
        TraceOpKind::Scan => {
            let items = count.parse::<u32>().ok().filter(|items| *items > 0);
            items.ok_or_else(|| format!("expected the entries to read, from 1, found `{count}`"))?
        }
        _ => 0,
    };
    Ok(Some(Record::new(kind, key.as_bytes(), size)))
}

/// Returns the bytes of the values in `field0=value field1=value `. A value has any letters, blanks
/// among them; a name has the letters of the first one, and digits.
fn field_bytes(fields: &str) -> Result<u32, String> {
    if fields.is_empty() {
        return Ok(0);
    }
    let (name, _) =
        fields.split_once('=').ok_or("expected fields such as field0=..., found none")?;
    let prefix = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let mut bytes = fields.len();
    for word in fields.split(' ') {
        let Some(behind) = word.strip_prefix(prefix) else { continue };
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        if behind[digits..].starts_with('=') {
            // A field has its name, the `=`, and a blank behind its value.
            bytes = bytes.saturating_sub(prefix.len() + digits + 2);
        }
    }
    checked_size("value", bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_is_left_without_names() {
        assert_eq!(field_bytes(""), Ok(0));
        assert_eq!(field_bytes("field0=abc "), Ok(3));
        assert_eq!(field_bytes("field0=a c field12=%field3=! "), Ok(3 + 9));
        assert_eq!(field_bytes("f=abc g "), Ok(5));
        assert!(field_bytes("abc").is_err());
    }
}
