//! Golden scripts: text files of commands, each with what it must print.
//!
//! A script starts with a comment that says what it shows. It consists of blocks with empty lines
//! between them: commands, a line `---`, and what the commands print. Lines that start with `#` are
//! comments. With the environment variable `BLESS` set, [`check`] writes down what the commands
//! print instead of comparing it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Carries out the commands of a script. Every script gets a stage of its own.
pub trait Stage: Default {
    /// Carries out one command, and appends what it prints to `out`, with a newline after each
    /// line.
    fn run(&mut self, command: &str, out: &mut String);

    /// Returns true if `line` belongs to the command before it rather than starting a new one.
    fn continues(command: &str, line: &str) -> bool;
}

/// Plays every script in the folder `dir`, and compares what it prints with what it says.
///
/// # Panics
/// If a script prints something else, does not start with a comment, or if the folder holds fewer
/// than `scripts_min` scripts.
pub fn check<S: Stage>(dir: &Path, scripts_min: usize) {
    let entries = fs::read_dir(dir).expect("a folder of scripts");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a script").path()).collect();
    paths.sort();
    let mut failures = String::new();
    for path in &paths {
        let script = fs::read_to_string(path).expect("a script");
        let name = path.file_name().unwrap_or_default().display();
        assert!(script.starts_with("# "), "{name} does not say what it shows in its first line");
        let played = play::<S>(&script);
        if played == script {
            continue;
        }
        if std::env::var_os("BLESS").is_some() {
            fs::write(path, played).expect("a script can be written");
            continue;
        }
        let differs = |(_, (said, found)): &(usize, (&str, &str))| said != found;
        let mut lines = script.lines().chain([""]).zip(played.lines().chain([""])).enumerate();
        let (line, (said, found)) = lines.find(differs).unwrap_or((0, ("", "")));
        // Writing to a string cannot fail.
        let _ = writeln!(failures, "{name}:{}\n  says   {said}\n  prints {found}", line + 1);
    }
    assert!(failures.is_empty(), "{failures}if this is right: cargo xtask bless");
    assert!(paths.len() >= scripts_min, "{} scripts of {scripts_min}", paths.len());
}

/// Returns the script with what it prints now.
fn play<S: Stage>(script: &str) -> String {
    let mut stage = S::default();
    let blocks = script.trim_end().split("\n\n").map(|block| {
        let commands = block.split("\n---").next().unwrap_or_default();
        let lines: Vec<&str> = commands.lines().filter(|line| !line.starts_with('#')).collect();
        if lines.is_empty() {
            return commands.to_string();
        }
        let mut out = String::new();
        let mut command = String::new();
        for (index, line) in lines.iter().enumerate() {
            if !command.is_empty() {
                command.push('\n');
            }
            command.push_str(line);
            if !lines.get(index + 1).is_some_and(|next| S::continues(&command, next)) {
                stage.run(&command, &mut out);
                command.clear();
            }
        }
        format!("{commands}\n---\n{}", out.trim_end())
    });
    blocks.collect::<Vec<_>>().join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds up numbers. A line that starts with `+` continues a command.
    #[derive(Default)]
    struct Sum(u64);

    impl Stage for Sum {
        fn run(&mut self, command: &str, out: &mut String) {
            let numbers = command.lines().map(|line| line.trim_start_matches('+').parse::<u64>());
            self.0 += numbers.map(|number| number.expect("a number")).sum::<u64>();
            out.push_str(&format!("{}\n", self.0));
        }

        fn continues(_: &str, line: &str) -> bool {
            line.starts_with('+')
        }
    }

    #[test]
    fn blocks_share_a_stage_and_commands_can_have_several_lines() {
        let script = "# Numbers are added.\n1\n+2\n3\n---\nwrong\n\n# A comment alone.\n\n4\n";
        let expected =
            "# Numbers are added.\n1\n+2\n3\n---\n3\n6\n\n# A comment alone.\n\n4\n---\n10\n";
        assert_eq!(play::<Sum>(script), expected);
        assert_eq!(play::<Sum>(expected), expected);
    }
}
