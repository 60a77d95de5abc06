//! Formatting of tables and numbers as text.

mod numbers;

pub(crate) use numbers::{cost, cost_if_known, percent, short, short_bytes};

use crate::args::TableArgs;
use crate::output::{CSV_HEAD, CSV_ROW, has_colours, wrapped as wrapped_text};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::sync::OnceLock;

/// Plain columns with a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// The greatest width of a prose table, in characters.
const PROSE_WIDTH: usize = 100;

/// The least width to which tables are fitted: names of policies need that much.
const WIDTH_MIN: usize = 60;

/// How tables are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// As text, all columns.
    Wide,
    /// Text with lines of at most this number of characters.
    Fitting(usize),
    /// As rows of comma-separated values, all columns.
    Csv,
}

/// The layout of this process.
static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// Sets the layout that the arguments ask for. Only the first call has an effect.
pub(crate) fn set_layout(args: TableArgs) {
    LAYOUT.get_or_init(|| match args {
        TableArgs { csv: true, .. } => Layout::Csv,
        TableArgs { wide: true, .. } => Layout::Wide,
        TableArgs { .. } => width().map_or(Layout::Wide, Layout::Fitting),
    });
}

/// Returns true if tables are printed as comma-separated values, and nothing else is printed.
pub(crate) fn is_csv() -> bool {
    layout() == Layout::Csv
}

fn layout() -> Layout {
    *LAYOUT.get_or_init(|| width().map_or(Layout::Wide, Layout::Fitting))
}

/// Returns the characters per line: of the terminal, or as the variable `COLUMNS` says. `None` if
/// standard output is no terminal and there is no such variable.
fn width() -> Option<usize> {
    let of_terminal = || console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.or_else(of_terminal).filter(|width| *width > 0).map(|width: usize| width.max(WIDTH_MIN))
}

/// Returns an aligned table. The first `left` columns hold text, all others numbers. If it is too
/// wide, columns at the right are left out.
pub(crate) fn table(header: &[&str], left: usize, rows: Vec<Vec<String>>) -> String {
    ranked(header, left, &header[..left.min(header.len())], rows)
}

/// Returns an aligned table. The first `left` columns hold text, all others numbers.
///
/// If it is too wide, it keeps the first column and the columns of `important`, most important
/// first, as far as there is room; then as many others as there is room for. A column `error`
/// belongs to the column before it. A line below the table names what was left out.
pub(crate) fn ranked(
    header: &[&str],
    left: usize,
    important: &[&str],
    rows: Vec<Vec<String>>,
) -> String {
    match layout() {
        Layout::Csv => csv(header, &rows),
        Layout::Wide => aligned(header, left, &rows),
        // Two columns are a list of names and values. Long values are wrapped.
        Layout::Fitting(width) if header.len() <= 2 => {
            let table = aligned(header, left, &rows);
            if fits(&table, width) { table } else { wrapped(header, rows, width) }
        }
        Layout::Fitting(width) => fitting(header, left, important, &rows, width),
    }
}

/// Returns a table of texts. Long cells are wrapped.
pub(crate) fn prose(header: &[&str], rows: Vec<Vec<String>>) -> String {
    match layout() {
        Layout::Csv => csv(header, &rows),
        Layout::Wide | Layout::Fitting(_) => wrapped(header, rows, prose_width()),
    }
}

/// Returns the greatest width of a line of prose, in characters.
pub(crate) fn prose_width() -> usize {
    match layout() {
        Layout::Fitting(width) => width.min(PROSE_WIDTH),
        Layout::Wide | Layout::Csv => PROSE_WIDTH,
    }
}

fn fits(text: &str, width: usize) -> bool {
    text.lines().all(|line| console::measure_text_width(line) <= width)
}

fn fitting(
    header: &[&str],
    left: usize,
    important: &[&str],
    rows: &[Vec<String>],
    width: usize,
) -> String {
    let mut groups = groups(header);
    // The order in which groups are left out: last first.
    groups.sort_by_key(|group| {
        let name = header[group[0]];
        let rank = important.iter().position(|other| *other == name);
        (group[0] > 0, rank.unwrap_or(usize::MAX), group[0])
    });
    let mut out: Vec<&str> = Vec::new();
    loop {
        let mut shown: Vec<usize> = groups.concat();
        shown.sort_unstable();
        let pick = |cells: &[String]| shown.iter().map(|&at| cells[at].clone()).collect();
        let picked: Vec<Vec<String>> = rows.iter().map(|cells| pick(cells)).collect();
        let head: Vec<&str> = shown.iter().map(|&at| header[at]).collect();
        let texts = shown.iter().filter(|&&at| at < left).count();
        let text = aligned(&head, texts, &picked);
        if fits(&text, width) || groups.len() <= 2 {
            return if out.is_empty() {
                text
            } else {
                format!("{text}\n{}", left_out(&out, width))
            };
        }
        out.extend(groups.pop().map(|group| header[group[0]]));
    }
}

/// Returns the columns that are shown or left out together.
fn groups(header: &[&str]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, name) in header.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if name.starts_with("error") => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups
}

fn left_out(names: &[&str], width: usize) -> String {
    let names: Vec<String> = names.iter().rev().map(|name| flat(name)).collect();
    let note = format!("Left out for width: {}. `--wide` shows all.", names.join(", "));
    wrapped_text(&note, width)
}

/// Returns a header as one line.
fn flat(name: &str) -> String {
    name.replace("-\n", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn aligned(header: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    let mut table = styled(header, rows.to_vec());
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    bold_header(table.trim_fmt())
}

fn wrapped(header: &[&str], rows: Vec<Vec<String>>, width: usize) -> String {
    let mut table = styled(header, rows);
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    bold_header(table.trim_fmt())
}

/// Returns the table with its header in bold, if standard output has colours.
fn bold_header(text: String) -> String {
    if !has_colours(&console::Term::stdout()) {
        return text;
    }
    let mut is_header = true;
    let line = |line: &str| {
        is_header &= !line.starts_with("---");
        match is_header && !line.is_empty() {
            true => console::style(line).force_styling(true).bold().to_string(),
            false => line.to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn csv(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |mark: char, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        format!("{mark}{}", cells.join(","))
    };
    let mut lines = vec![line(CSV_HEAD, &full_names(header))];
    lines.extend(rows.iter().map(|cells| line(CSV_ROW, cells)));
    lines.join("\n")
}

/// Returns the names of columns as single lines. `error` also names the column before it.
fn full_names(header: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in header {
        let before = names.last().filter(|_| name.starts_with("error"));
        let name = match before {
            Some(before) => format!("{before} {}", flat(name)),
            None => flat(name),
        };
        names.push(name);
    }
    names
}

/// Returns a cell as RFC 4180 has it. What is unknown is empty.
fn quoted(cell: &str) -> String {
    let cell = cell.trim();
    if cell == "-" {
        String::new()
    } else if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

fn styled(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header).add_rows(rows);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table
}

#[cfg(test)]
mod tests;
