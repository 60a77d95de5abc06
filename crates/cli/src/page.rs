//! Pages of commands.

use lsmith_lab::page::{Group, Page};
use lsmith_lab::plot;
use std::path::Path;

/// Writes a page of `groups` to the file `html`, and a drawing of their costs to the file `svg`, as
/// far as they are given.
pub(crate) fn write(
    title: &str,
    groups: Vec<Group>,
    html: Option<&Path>,
    svg: Option<&Path>,
) -> anyhow::Result<()> {
    if let Some(path) = svg {
        plot::frontier(&groups).write(path)?;
    }
    let Some(path) = html else { return Ok(()) };
    // An argument that is no text is shown as far as it is.
    let given = std::env::args_os().skip(1);
    let arguments: Vec<String> = given.map(|one| quoted(&one.to_string_lossy())).collect();
    let command = format!("lsmith {}", arguments.join(" "));
    let facts = vec![("command".to_owned(), command)];
    Page { title: title.to_owned(), facts, groups }.write(path)
}

/// Returns an argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn arguments_are_quoted_as_a_shell_takes_them() {
        assert_eq!(quoted("--memtable=4MiB"), "--memtable=4MiB");
        assert_eq!(quoted("tiered(ratio=4); none"), "'tiered(ratio=4); none'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
