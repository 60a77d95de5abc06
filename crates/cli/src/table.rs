//! Formatting of tables and numbers as text.

mod numbers;

pub(crate) use numbers::{binary, cost, cost_if_known, percent, short, short_bytes};

use crate::layout::{
    CSV_HEAD, CSV_ROW, Layout, has_colours, layout, prose_width, wrapped as wrapped_text,
};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Plain columns with a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// How long a column stays if a table is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Importance {
    /// The lower the rank, the longer it stays.
    Rank(usize),
    /// It goes before all columns with a rank. The one farthest to the right goes first.
    Least,
    /// It belongs to the column before it, and stays as long. In CSV its name follows the other's.
    OfTheOneBefore,
    /// As a rank, which is higher than the rank of the column before it. In CSV and below the table
    /// its name follows the other's.
    Detail(usize),
}

/// The name of a column, in one line or two, and how long it stays.
pub(crate) type Head<'a> = (&'a str, Importance);

/// A column of a table that has a row per value.
#[derive(Clone, Copy)]
pub(crate) struct Column<T> {
    pub(crate) name: &'static str,
    pub(crate) importance: Importance,
    pub(crate) cell: fn(&T) -> String,
}

/// Returns a column, for constants.
pub(crate) const fn column<T>(
    name: &'static str,
    importance: Importance,
    cell: fn(&T) -> String,
) -> Column<T> {
    Column { name, importance, cell }
}

/// Returns an aligned table of `values`, as [`ranked`] does.
pub(crate) fn table_of<T>(columns: &[Column<T>], left: usize, values: &[T]) -> String {
    let header: Vec<Head<'_>> =
        columns.iter().map(|column| (column.name, column.importance)).collect();
    let row = |value| columns.iter().map(|column| (column.cell)(value)).collect();
    ranked(&header, left, values.iter().map(row).collect())
}

/// Returns an aligned table. The first `left` columns hold text, all others numbers. If it is too
/// wide, columns at the right are left out.
pub(crate) fn table(header: &[&str], left: usize, rows: Vec<Vec<String>>) -> String {
    let importance = |at| if at < left { Importance::Rank(at) } else { Importance::Least };
    let importances = (0..).map(importance);
    let header: Vec<Head<'_>> = header.iter().copied().zip(importances).collect();
    ranked(&header, left, rows)
}

/// Returns an aligned table. The first `left` columns hold text, all others numbers.
///
/// If it is too wide, it keeps the first column and others by their importance, as far as there is
/// room. A line below the table names what was left out.
pub(crate) fn ranked(header: &[Head<'_>], left: usize, rows: Vec<Vec<String>>) -> String {
    match layout() {
        Layout::Csv => csv(header, &rows),
        Layout::Wide => aligned(&names(header), left, &rows),
        // Two columns are a list of names and values. Long values are wrapped.
        Layout::Fitting(width) if header.len() <= 2 => {
            let names = names(header);
            let table = aligned(&names, left, &rows);
            if fits(&table, width) { table } else { wrapped(&names, rows, width) }
        }
        Layout::Fitting(width) => fitting(header, left, &rows, width),
    }
}

fn names<'a>(header: &[Head<'a>]) -> Vec<&'a str> {
    header.iter().map(|(name, _)| *name).collect()
}

/// Returns a table of texts. Long cells are wrapped.
pub(crate) fn prose(header: &[&str], rows: Vec<Vec<String>>) -> String {
    match layout() {
        Layout::Csv => {
            let heads: Vec<Head<'_>> =
                header.iter().map(|name| (*name, Importance::Least)).collect();
            csv(&heads, &rows)
        }
        Layout::Wide | Layout::Fitting(_) => wrapped(header, rows, prose_width()),
    }
}

fn fits(text: &str, width: usize) -> bool {
    text.lines().all(|line| console::measure_text_width(line) <= width)
}

fn fitting(header: &[Head<'_>], left: usize, rows: &[Vec<String>], width: usize) -> String {
    let mut groups = groups(header);
    // The order in which groups are left out: last first.
    groups.sort_by_key(|group| {
        let rank = match header[group[0]].1 {
            Importance::Rank(rank) | Importance::Detail(rank) => rank,
            Importance::Least | Importance::OfTheOneBefore => usize::MAX,
        };
        (group[0] > 0, rank, group[0])
    });
    let full_names = full_names(header);
    let mut out: Vec<&str> = Vec::new();
    loop {
        let mut shown: Vec<usize> = groups.concat();
        shown.sort_unstable();
        let pick = |cells: &[String]| shown.iter().map(|&at| cells[at].clone()).collect();
        let picked: Vec<Vec<String>> = rows.iter().map(|cells| pick(cells)).collect();
        let head: Vec<&str> = shown.iter().map(|&at| header[at].0).collect();
        let texts = shown.iter().filter(|&&at| at < left).count();
        let text = aligned(&head, texts, &picked);
        if fits(&text, width) || groups.len() <= 2 {
            return if out.is_empty() {
                text
            } else {
                format!("{text}\n{}", left_out(&out, width))
            };
        }
        out.extend(groups.pop().map(|group| full_names[group[0]].as_str()));
    }
}

/// Returns the columns that are shown or left out together.
fn groups(header: &[Head<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, (_, importance)) in header.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if *importance == Importance::OfTheOneBefore => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups
}

fn left_out(names: &[&str], width: usize) -> String {
    let names: Vec<&str> = names.iter().rev().copied().collect();
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

fn csv(header: &[Head<'_>], rows: &[Vec<String>]) -> String {
    let line = |mark: char, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        format!("{mark}{}", cells.join(","))
    };
    let mut lines = vec![line(CSV_HEAD, &full_names(header))];
    lines.extend(rows.iter().map(|cells| line(CSV_ROW, cells)));
    lines.join("\n")
}

/// Returns the names of columns as single lines.
fn full_names(header: &[Head<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, importance) in header {
        let follows = matches!(importance, Importance::OfTheOneBefore | Importance::Detail(_));
        let before = names.last().filter(|_| follows);
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
