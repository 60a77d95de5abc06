//! Formatting of numbers.

use crate::layout::is_csv;

/// Formats a cost with two decimals, or `-` if it is no number. In CSV it has all decimals.
pub(crate) fn cost(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_owned(),
        value if is_csv() => value.to_string(),
        value => format!("{value:.2}"),
    }
}

/// Formats a cost, or `-` if it is unknown.
pub(crate) fn cost_if_known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), cost)
}

/// Formats a relative error as percent with a sign, or `-` if it is unknown.
pub(crate) fn percent(value: Option<f64>) -> String {
    // Adding 0 turns a negative zero into a positive one.
    let rounded = |value: f64| (value * 1000.0).round() / 10.0 + 0.0;
    let value = value.filter(|value| value.is_finite());
    value.map_or_else(|| "-".to_owned(), |value| format!("{:+.1}", rounded(value)))
}

/// Formats a number with three significant digits and a decimal prefix. In CSV it has all digits.
pub(crate) fn short(value: f64) -> String {
    if is_csv() {
        return value.to_string();
    }
    let (value, unit) = match value {
        value if value >= 1e9 => (value / 1e9, " G"),
        value if value >= 1e6 => (value / 1e6, " M"),
        value if value >= 1e3 => (value / 1e3, " k"),
        value => (value, ""),
    };
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

/// Formats bytes with three significant digits and a binary unit, as arguments have them. In CSV
/// there is no unit.
pub(crate) fn binary(bytes: u64) -> String {
    if is_csv() {
        return bytes.to_string();
    }
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((bits, unit)) = units.into_iter().find(|(bits, _)| bytes >> bits > 0) else {
        return format!("{bytes}B");
    };
    let value = bytes as f64 / (1u64 << bits) as f64;
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    // A size that was given as 4MiB is printed as it was given.
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

/// Formats bytes with three significant digits and a decimal unit. In CSV there is no unit.
pub(crate) fn short_bytes(bytes: u64) -> String {
    match short(bytes as f64) {
        text if is_csv() => text,
        text if text.contains(' ') => format!("{text}B"),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        assert_eq!(short(0.0), "0.00");
        assert_eq!(short(12.345), "12.3");
        assert_eq!(short(123_456.0), "123 k");
        assert_eq!(short(9_876_543.0), "9.88 M");
        assert_eq!(short_bytes(9_876_543), "9.88 MB");
        assert_eq!(short_bytes(12), "12 B");
        assert_eq!([0, 1023, 4 << 20].map(binary), ["0B", "1023B", "4MiB"]);
        assert_eq!([1536, 12_345_678, 400 << 30].map(binary), ["1.5KiB", "11.8MiB", "400GiB"]);
        assert_eq!(percent(Some(-0.000_01)), "+0.0");
        assert_eq!(percent(Some(0.1234)), "+12.3");
        assert_eq!(cost_if_known(None), "-");
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY] {
            assert_eq!((cost(value), percent(Some(value))), ("-".to_owned(), "-".to_owned()));
        }
    }
}
