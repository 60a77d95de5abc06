//! Formatting of tables and numbers as text.

mod numbers;

pub(crate) use numbers::{cost, cost_if_known, percent, short, short_bytes};

use crate::layout::{
    CSV_HEAD, CSV_ROW, Layout, has_colours, layout, prose_width, wrapped as wrapped_text,
};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Plain columns with a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

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
