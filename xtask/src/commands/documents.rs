//! The commands that documents show: lines of fenced code, and code within text, that run cargo.

/// A command that a document shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The document and the line.
    pub(super) place: String,
    /// The folder that the document goes to first, with `cd`.
    pub(super) folder: Option<String>,
    /// What follows `cargo`, up to a comment.
    pub(super) words: Vec<String>,
}

/// Returns the commands that the document `text` at `path` shows, in its order.
pub(super) fn shown(path: &str, text: &str) -> Vec<Shown> {
    let mut shown = Vec::new();
    // A blank in place of each line of fenced code, so that spans of code may go over lines.
    let mut prose = String::new();
    let mut block: Option<Block> = None;
    for (line, number) in text.lines().zip(1..) {
        let is_fence = line.trim_start().starts_with("```");
        match &mut block {
            Some(_) if is_fence => block = None,
            Some(block) => shown.extend(block.line(path, number, line)),
            None if is_fence => block = Some(Block::default()),
            None => prose.push_str(line),
        }
        prose.push('\n');
    }
    let mut number = 1;
    for (index, part) in prose.split('`').enumerate() {
        if index % 2 == 1 {
            shown.extend(Block::default().line(path, number, &part.replace('\n', " ")));
        }
        number += part.matches('\n').count();
    }
    shown
}

/// A block of code: its lines so far decide the folder of the next one.
#[derive(Default)]
struct Block {
    folder: Option<String>,
    /// What a backslash at its end continues.
    begun: String,
}

impl Block {
    /// Returns the command of a line, if it runs cargo.
    fn line(&mut self, path: &str, number: usize, line: &str) -> Option<Shown> {
        let line = line.trim_start().trim_start_matches("$ ");
        self.begun.push_str(line);
        if let Some(begun) = self.begun.strip_suffix('\\') {
            self.begun = begun.to_owned();
            return None;
        }
        let line = std::mem::take(&mut self.begun);
        let mut words = words(&line);
        if words.first().is_some_and(|word| word == "cd") {
            self.folder = words.get(1).cloned();
            let end = words.iter().position(|word| word == "&&")?;
            words.drain(..=end);
        }
        let is_variable = |word: &String| {
            word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            })
        };
        let variables = words.iter().take_while(|word| is_variable(word)).count();
        words.drain(..variables);
        (words.len() > 1 && words.remove(0) == "cargo").then(|| Shown {
            place: format!("{path}:{number}"),
            folder: self.folder.clone(),
            words,
        })
    }
}

/// Splits a command line at spaces outside quotes. A `#`, or two spaces, begin what it does.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    let mut before = ' ';
    for c in line.trim().chars() {
        match c {
            '\'' => quoted = !quoted,
            '#' if !quoted && before == ' ' => break,
            ' ' if !quoted && before == ' ' => break,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is a word from the start").push(c),
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let line = |shown: Shown| {
            let folder = shown.folder.map(|folder| format!("{folder}: ")).unwrap_or_default();
            format!("{} {folder}{}", shown.place, shown.words.join("|"))
        };
        shown("a.md", text).into_iter().map(line).collect()
    }

    #[test]
    fn blocks_show_commands_in_folders() {
        let text = "```sh\ncargo test -p a    all of it\ncd x/y\nA=1 cargo run -- 'b c' # d\n```\n\
                    ```\n$ cargo check \\\n  --lib\nother cargo test\n```\n";
        let expected = ["a.md:2 test|-p|a", "a.md:4 x/y: run|--|b c", "a.md:8 check|--lib"];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn text_shows_commands_over_lines() {
        let text = "Run `cd x && cargo run --features\nall`, not `cargo`.\n`cargo test it`\n";
        assert_eq!(lines(text), ["a.md:1 x: run|--features|all", "a.md:3 test|it"]);
    }
}
