//! How output is laid out: in what width, with or without colours, as text or as CSV.

use std::sync::OnceLock;

/// The first character of the header of a table in CSV.
pub(crate) const CSV_HEAD: char = '\u{1d}';

/// The first character of any other row of a table in CSV.
pub(crate) const CSV_ROW: char = '\u{1e}';

/// The greatest width of a prose table, in characters.
const PROSE_WIDTH: usize = 100;

/// The least width to which tables are fitted: names of policies need that much.
const WIDTH_MIN: usize = 60;

/// How tables are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As text, all columns.
    Wide,
    /// Text with lines of at most this number of characters.
    Fitting(usize),
    /// As rows of comma-separated values, all columns.
    Csv,
}

/// The layout of this process.
static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// Sets the layout that the arguments ask for, or else the one that fits standard output. Only the
/// first call has an effect.
pub(crate) fn set_layout(asked: Option<Layout>) {
    LAYOUT.get_or_init(|| asked.unwrap_or_else(usual));
}

/// Returns true if tables are printed as comma-separated values, and nothing else is printed.
pub(crate) fn is_csv() -> bool {
    layout() == Layout::Csv
}

/// Returns the layout of this process.
pub(crate) fn layout() -> Layout {
    *LAYOUT.get_or_init(usual)
}

fn usual() -> Layout {
    width().map_or(Layout::Wide, Layout::Fitting)
}

/// Returns the characters per line: of the terminal, or as the variable `COLUMNS` says. `None` if
/// standard output is no terminal and there is no such variable.
fn width() -> Option<usize> {
    let of_terminal = || console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.or_else(of_terminal).filter(|width| *width > 0).map(|width: usize| width.max(WIDTH_MIN))
}

/// Returns the greatest width of a line of prose, in characters.
pub(crate) fn prose_width() -> usize {
    match layout() {
        Layout::Fitting(width) => width.min(PROSE_WIDTH),
        Layout::Wide | Layout::Csv => PROSE_WIDTH,
    }
}

/// Returns true if `term` shows colours. `NO_COLOR` forbids them, `CLICOLOR_FORCE` asks for them.
pub(crate) fn has_colours(term: &console::Term) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let forced = || std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    !is_set("NO_COLOR") && (forced() || term.features().colors_supported())
}

/// Wraps `text` to lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_texts_are_wrapped() {
        let text = wrapped(&"word ".repeat(60), 100);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(text.split_whitespace().count(), 60);
    }
}
