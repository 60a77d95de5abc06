//! Formatting of tables and numbers as text.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Plain columns with a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// The greatest width of a prose table, in characters.
const PROSE_WIDTH: u16 = 100;

/// Returns an aligned table. The first `left` columns hold text, all others numbers.
pub(crate) fn table(header: &[&str], left: usize, rows: Vec<Vec<String>>) -> String {
    let mut table = styled(header, rows);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Returns a table of texts. Long cells are wrapped.
pub(crate) fn prose(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = styled(header, rows);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(PROSE_WIDTH);
    table.trim_fmt()
}

fn styled(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header).add_rows(rows);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table
}

/// Formats a cost with two decimals.
pub(crate) fn cost(value: f64) -> String {
    format!("{value:.2}")
}

/// Formats a cost, or `-` if it is unknown.
pub(crate) fn cost_if_known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), cost)
}

/// Formats a relative error as percent with a sign, or `-` if it is unknown.
pub(crate) fn percent(value: Option<f64>) -> String {
    // Adding 0 turns a negative zero into a positive one.
    let rounded = |value: f64| (value * 1000.0).round() / 10.0 + 0.0;
    value.map_or_else(|| "-".to_owned(), |value| format!("{:+.1}", rounded(value)))
}

/// Formats a number with three significant digits and a decimal prefix.
pub(crate) fn short(value: f64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        assert_eq!(short(0.0), "0.00");
        assert_eq!(short(12.345), "12.3");
        assert_eq!(short(123_456.0), "123 k");
        assert_eq!(short(9_876_543.0), "9.88 M");
        assert_eq!(percent(Some(-0.000_01)), "+0.0");
        assert_eq!(percent(Some(0.1234)), "+12.3");
        assert_eq!(cost_if_known(None), "-");
    }
}
