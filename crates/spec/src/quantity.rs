//! Sizes and counts with units, exact in both directions.

use crate::SpecError;

/// A unit suffix and what it multiplies by.
type Unit = (&'static str, u64);

/// Units of sizes that are printed. The first has factor 1, so every size can be printed.
const BYTE_UNITS: [Unit; 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// Units of counts. Sizes take them too, as decimal units, but are not printed with them.
const COUNT_UNITS: [Unit; 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// Parses a size in bytes: `4096`, `100B`, `4MiB`, `1.5 GB`, `64mb`, `1e6`, `10_000`. Units may be
/// in capital or small letters. The suffixes `k`, `M` and `G` are decimal.
///
/// # Errors
/// If the text is not a number with one of the units `B KiB MiB GiB kB MB GB k M G`, is not a whole
/// number of bytes, or does not fit 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, SpecError> {
    parse(text, BYTE_UNITS.iter().chain(&COUNT_UNITS))
        .map_err(|fault| fault.refuse(text, "a size such as 100B, 64KiB, 4MiB or 1GB", "B"))
}

/// Prints a size in bytes in its shortest exact spelling: `4MiB`, `1MB`, `1234567B`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    shortest(bytes, &BYTE_UNITS)
}

/// Reads a count: `5`, `100k`, `2M`, `1.5M`, `1G`, `1e6`, `10_000`. The units are decimal, in
/// capital or small letters.
///
/// # Errors
///
/// If the text is not a number with none or one of the units `k M G`, is not a whole number, or
/// does not fit 64 bits.
pub fn parse_count(text: &str) -> Result<u64, SpecError> {
    parse(text, COUNT_UNITS.iter())
        .map_err(|fault| fault.refuse(text, "a whole number such as 5, 100k or 2M", ""))
}

/// Prints a count in its shortest exact spelling: `7`, `100k`, `2M`, `1500k`.
#[must_use]
pub fn format_count(count: u64) -> String {
    shortest(count, &COUNT_UNITS)
}

/// Why a text is refused.
enum Fault {
    /// It is no quantity, or a fraction.
    Malformed,
    /// It does not fit 64 bits.
    TooLarge,
}

impl Fault {
    fn refuse(self, text: &str, expected: &str, unit: &str) -> SpecError {
        let param = String::new();
        let found = text.to_owned();
        match self {
            Fault::Malformed => SpecError::Value { param, found, expected: expected.to_owned() },
            Fault::TooLarge => {
                SpecError::TooLarge { param, found, most: format!("{}{unit}", u64::MAX) }
            }
        }
    }
}

fn parse<'a>(text: &str, units: impl Iterator<Item = &'a Unit>) -> Result<u64, Fault> {
    let (number, suffix) = split(text);
    let mut units = units.filter(|unit| unit.0.eq_ignore_ascii_case(&suffix));
    if let Some(value) = units.next().and_then(|unit| scaled(&number, unit.1)) {
        return Ok(value);
    }
    Err(if is_too_large(&number, &suffix) { Fault::TooLarge } else { Fault::Malformed })
}

/// Divides `text` into a number, without the `_` between its digits, and a unit.
fn split(text: &str) -> (String, String) {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    let mut end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let exponent = text[end..].strip_prefix(['e', 'E']).unwrap_or_default();
    let digits = exponent.find(|c: char| !c.is_ascii_digit()).unwrap_or(exponent.len());
    if digits > 0 {
        end += 1 + digits;
    }
    let (number, suffix) = text.split_at(end);
    let stray = number.starts_with('_') || number.ends_with('_') || number.contains("__");
    let number = if stray { number.to_owned() } else { number.replace('_', "") };
    (number, suffix.trim_start().to_owned())
}

/// Returns `number`, which may have an exponent, times `factor`, if that is whole and fits 64 bits.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let Some((number, exponent)) = number.split_once(['e', 'E']) else {
        return exact(number, factor);
    };
    let power = 10_u64.checked_pow(exponent.parse().ok()?)?;
    exact(number, factor.checked_mul(power)?)
}

/// Returns true if `number` is one of at least 2^64, with or without a unit.
fn is_too_large(number: &str, suffix: &str) -> bool {
    let mut units = BYTE_UNITS.iter().chain(&COUNT_UNITS);
    let Some((_, factor)) = units.find(|unit| unit.0.eq_ignore_ascii_case(suffix)) else {
        return false;
    };
    // 2^64 is exact as a float, and so is every factor.
    number.parse::<f64>().is_ok_and(|value| value * *factor as f64 >= 2f64.powi(64))
}

/// Returns `number`, which is digits with or without a fraction, times `factor`, if that is whole
/// and fits 64 bits.
fn exact(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = match number.split_once('.') {
        None => (number, ""),
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction.trim_end_matches('0')),
        Some(_) => return None,
    };
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    whole.checked_add(exact_fraction(fraction, factor)?)
}

/// Returns `0.<digits>` of `factor`, if the product is whole.
fn exact_fraction(digits: &str, factor: u64) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    // A factor has at most 30 twos (GiB), so an exact fraction has at most 30 digits; 18 are as
    // many as keep the product below within 128 bits, and more than anyone writes.
    if digits.len() > 18 {
        return None;
    }
    let numerator = digits.parse::<u64>().ok()?;
    let denominator = 10u128.pow(u32::try_from(digits.len()).ok()?);
    let product = u128::from(numerator) * u128::from(factor);
    product.is_multiple_of(denominator).then_some(())?;
    u64::try_from(product / denominator).ok()
}

fn shortest(value: u64, units: &[Unit]) -> String {
    let mut best = format!("{value}{}", units[0].0);
    for &(suffix, factor) in units {
        if value != 0 && value.is_multiple_of(factor) {
            let candidate = format!("{}{suffix}", value / factor);
            // If lengths are equal, the greater unit wins, since it comes later.
            if candidate.len() <= best.len() {
                best = candidate;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("100B", 100),
            ("4MiB", 4 << 20),
            (" 4 MiB ", 4 << 20),
            ("1.5KiB", 1536),
            ("1MB", 1_000_000),
            ("2M", 2_000_000),
            ("0.250kB", 250),
            ("3GiB", 3 << 30),
            ("64mb", 64_000_000),
            ("4mib", 4 << 20),
            ("1KB", 1000),
            ("1e6", 1_000_000),
            ("1.5e3 kB", 1_500_000),
            ("10_000", 10_000),
            ("1_000.5_0kB", 1_000_500),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size() {
        for text in [
            "", "B", "MiB", "-1B", "1.B", ".5kB", "1.5B", "0.0001kB", "1 2B", "1..5kB", "1TiB",
            "½MB", "1e", "e6", "1e-3", "1.55e1", "_1", "1_", "1__0", "1_kB", "1e6e6",
        ] {
            let error = parse_bytes(text).unwrap_err();
            assert!(matches!(error, SpecError::Value { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_too_large() {
        for text in ["18446744073709551616", "99999999999GiB", "1e30", "1e30B", "20000000000.5 GB"]
        {
            let message = parse_bytes(text).unwrap_err().to_string();
            let expected = format!("`{text}` is too large: expected at most {}B", u64::MAX);
            assert_eq!(message, expected);
        }
        let message = parse_count("1e30").unwrap_err().to_string();
        assert_eq!(message, "`1e30` is too large: expected at most 18446744073709551615");
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn shortest_exact_spelling() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (1000, "1kB"),
            (1024, "1KiB"),
            (4 << 20, "4MiB"),
            (1_000_000, "1MB"),
            (1_234_567, "1234567B"),
            (1_024_000, "1024kB"),
            (u64::MAX, "18446744073709551615B"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
        for (count, text) in [(0, "0"), (999, "999"), (100_000, "100k"), (1_500_000, "1500k")] {
            assert_eq!(format_count(count), text);
        }
    }

    #[test]
    fn the_message_names_both_sides() {
        let error = parse_count("many").unwrap_err();
        assert_eq!(error.to_string(), "`many` is not a whole number such as 5, 100k or 2M");
    }

    proptest! {
        #[test]
        fn round_trips(value: u64, shift in 0u32..64) {
            for value in [value >> shift, (value >> shift).wrapping_mul(1000), value << shift] {
                prop_assert_eq!(parse_bytes(&format_bytes(value)), Ok(value));
                prop_assert_eq!(parse_count(&format_count(value)), Ok(value));
            }
        }

        #[test]
        fn garbage_never_panics(text in "[0-9._e]{0,40}[ kKmMGiB]{0,4}", other: String) {
            for text in [text, other] {
                if let Ok(value) = parse_bytes(&text) {
                    prop_assert_eq!(parse_bytes(&format_bytes(value)), Ok(value));
                }
                let _refused_or_not = parse_count(&text);
            }
        }
    }
}
