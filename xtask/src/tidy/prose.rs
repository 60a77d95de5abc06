//! Documents are wrapped, so that they can be read and compared in a terminal. Tables stay tables.

use super::finding::Finding;

/// The most columns of a line of a document.
const COLUMNS_MAX: usize = 100;

/// Returns the lines of the Markdown file at `path` that are too wide, and lines in which rows of a
/// table were joined. Rows of tables, fenced code, and lines of a single word or link, which cannot
/// be broken, may be wider.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if let Some(mark) = fence_mark(content) {
            // A fence ends with the mark that opened it; the other one is code.
            fence = match fence {
                None => Some(mark),
                Some(open) if open == mark => None,
                open => open,
            };
            continue;
        }
        // The line below the head of a table begins with its mark.
        if fence.is_none() && line.contains("| |--") {
            findings.push(Finding {
                place: format!("{path}:{}", index + 1),
                what: "the rows of a table are on one line: begin a line for each".to_string(),
                excuse: None,
            });
        }
        let columns = line.chars().count();
        let is_exempt = fence.is_some() || content.starts_with('|') || !is_breakable(content);
        if columns > COLUMNS_MAX && !is_exempt {
            findings.push(Finding {
                place: format!("{path}:{}", index + 1),
                what: format!("{columns} columns, expected at most {COLUMNS_MAX}: wrap the line"),
                excuse: None,
            });
        }
    }
    findings
}

/// Returns the mark if `content` begins or ends fenced code.
pub(super) fn fence_mark(content: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark))
}

/// Returns true if a line can be broken: it has a space that is neither behind the mark of a list
/// or a quotation nor within a link.
fn is_breakable(content: &str) -> bool {
    let content = content.trim_end();
    let text = match content.split_once(' ') {
        Some((mark, rest)) if is_mark(mark) => rest.trim_start(),
        _ => content,
    };
    let mut links = 0_u32;
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '[' => links += 1,
            // The address follows at once.
            '(' if before == ']' => links += 1,
            ']' | ')' => links = links.saturating_sub(1),
            ' ' if links == 0 => return true,
            _ => {}
        }
        before = letter;
    }
    false
}

/// Returns true if `word` begins an item of a list, a heading or a quotation.
fn is_mark(word: &str) -> bool {
    let digits = word.strip_suffix('.').unwrap_or_default();
    let is_number = !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit());
    let is_heading = word.chars().all(|letter| letter == '#');
    is_number || is_heading || matches!(word, "-" | "*" | "+" | ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        check("a.md", text).into_iter().map(|finding| finding.place).collect()
    }

    /// Text of so many columns, with a space in it.
    fn text_of(columns: usize) -> String {
        format!("word {}", "x".repeat(columns - 5))
    }

    #[test]
    fn a_line_of_101_columns_is_found() {
        assert_eq!(places(&text_of(100)), [""; 0]);
        assert_eq!(places(&format!("first\n{}\n", text_of(101))), ["a.md:2"]);
        let found = check("a.md", &text_of(101));
        assert_eq!(found[0].what, "101 columns, expected at most 100: wrap the line");
        // Columns are letters, not bytes.
        assert_eq!(places(&format!("ä {}", "ö".repeat(98))), [""; 0]);
    }

    #[test]
    fn rows_of_tables_may_be_wide() {
        assert_eq!(places(&format!("| {} |", text_of(150))), [""; 0]);
        assert_eq!(places(&format!("  | {} |", text_of(150))), [""; 0]);
        assert_eq!(places(&format!("a | {} |", text_of(150))), ["a.md:1"]);
    }

    #[test]
    fn rows_of_tables_that_were_joined_are_found() {
        assert_eq!(places("| a | b | |---|---| | c | d |"), ["a.md:1"]);
        assert_eq!(places("| a | b |\n|---|---|\n| c | |\n| | d |"), [""; 0]);
        assert_eq!(places("```\n| a | |---|\n```\n"), [""; 0]);
    }

    #[test]
    fn fenced_code_may_be_wide() {
        let wide = text_of(120);
        assert_eq!(places(&format!("```sh\n{wide}\n```\n{wide}\n")), ["a.md:4"]);
        assert_eq!(places(&format!("~~~\n```\n{wide}\n~~~\n")), [""; 0]);
        assert_eq!(places(&format!("- item\n  ```\n  {wide}\n  ```\n")), [""; 0]);
    }

    #[test]
    fn words_and_links_that_cannot_be_broken_may_be_wide() {
        let word = "x".repeat(120);
        assert_eq!(places(&word), [""; 0]);
        assert_eq!(places(&format!("- {word}")), [""; 0]);
        assert_eq!(places(&format!("12. {word}")), [""; 0]);
        assert_eq!(places(&format!("[a link of some words](https://{word})")), [""; 0]);
        assert_eq!(places(&format!("see [a link of some words](https://{word})")), ["a.md:1"]);
        assert_eq!(places(&format!("- two {word}")), ["a.md:1"]);
    }
}
