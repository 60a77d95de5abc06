//! Checks the length of lines, functions and files.

use super::finding::Finding;

/// The most lines of a file.
const FILE_LINES_MAX: usize = 600;

/// The most lines of a function.
const FUNCTION_LINES_MAX: usize = 70;

/// The most columns of a line. Rows of tables in doc comments cannot be broken and may be wider.
const COLUMNS_MAX: usize = 100;

/// Returns the violations in one file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    if lines.len() > FILE_LINES_MAX {
        let what = format!("{} lines, {FILE_LINES_MAX} allowed", lines.len());
        findings.push(finding(path, lines.len(), what, "lines"));
    }
    for (index, line) in lines.iter().enumerate() {
        let columns = line.chars().count();
        let row = line.trim_start_matches([' ', '/', '!']).starts_with('|');
        if columns > COLUMNS_MAX && !row {
            let what = format!("{columns} columns, {COLUMNS_MAX} allowed");
            findings.push(finding(path, index + 1, what, "columns"));
        }
    }
    for Function { name, line, length } in functions(&lines) {
        if length > FUNCTION_LINES_MAX {
            let what = format!("`{name}` has {length} lines, {FUNCTION_LINES_MAX} allowed");
            findings.push(finding(path, line, what, &format!("fn {name}")));
        }
    }
    findings
}

fn finding(path: &str, line: usize, what: String, rule: &str) -> Finding {
    Finding { place: format!("{path}:{line}"), what, excuse: Some(format!("{path} {rule}")) }
}

/// A function and its length in lines, including signature and closing brace.
struct Function<'a> {
    name: &'a str,
    line: usize,
    length: usize,
}

/// Returns the functions of formatted code. The closing brace, or the end of a declaration without
/// a body, has the indentation of the first letter.
fn functions<'a>(lines: &[&'a str]) -> Vec<Function<'a>> {
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| {
            let outside = line.strip_prefix(indent).filter(|rest| !rest.starts_with(' '));
            outside.is_some_and(|rest| rest == "}" || rest.ends_with(';'))
        };
        let end = if line.ends_with('}') { Some(0) } else { lines[index..].iter().position(ends) };
        let length = end.map_or(1, |end| end + 1);
        found.push(Function { name, line: index + 1, length });
    }
    found
}

/// Returns the name of the function whose signature starts on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    loop {
        match words.next()? {
            "fn" => break,
            "const" | "async" | "unsafe" | "extern" | "\"C\"" => {}
            word if word.starts_with("pub") => {}
            _ => return None,
        }
    }
    let name = words.next()?;
    Some(&name[..name.find(['(', '<']).unwrap_or(name.len())])
}
