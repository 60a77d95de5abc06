//! Tables and numbers for people to read.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Columns, and a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// Characters of a line of prose.
const PROSE_WIDTH: u16 = 100;

/// An aligned table: the first `left` columns hold text, all others numbers.
pub(crate) fn table(header: &[&str], left: usize, rows: Vec<Vec<String>>) -> String {
    let mut table = styled(header, rows);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// A table of texts, wrapped where they are long.
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

/// A cost: two digits behind the point.
pub(crate) fn cost(value: f64) -> String {
    format!("{value:.2}")
}

/// A cost that may not be known.
pub(crate) fn cost_if_known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), cost)
}

/// A relative error in percent, with its sign.
pub(crate) fn percent(value: Option<f64>) -> String {
    // Adding 0 turns a negative zero into a positive one.
    let rounded = |value: f64| (value * 1000.0).round() / 10.0 + 0.0;
    value.map_or_else(|| "-".to_owned(), |value| format!("{:+.1}", rounded(value)))
}

/// A number of which three digits matter, with a unit for thousands.
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
    fn numbers_have_as_many_digits_as_matter() {
        assert_eq!(short(0.0), "0.00");
        assert_eq!(short(12.345), "12.3");
        assert_eq!(short(123_456.0), "123 k");
        assert_eq!(short(9_876_543.0), "9.88 M");
        assert_eq!(percent(Some(-0.000_01)), "+0.0");
        assert_eq!(percent(Some(0.1234)), "+12.3");
        assert_eq!(cost_if_known(None), "-");
    }
}
