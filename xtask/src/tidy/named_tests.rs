//! Documents name tests that exist.

use super::finding::Finding;
use std::collections::BTreeSet;
use std::path::Path;

/// The tests of the workspace: the module of each, and its name.
#[derive(Debug, Default)]
pub(super) struct Tests {
    named: BTreeSet<(String, String)>,
    modules: BTreeSet<String>,
}

impl Tests {
    /// Adds the tests in the file at `path`, relative to the root.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        self.modules.extend(parts.iter().map(ToString::to_string));
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line == "#[test]" || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ")
                && std::mem::take(&mut is_test)
            {
                let name = rest.split('(').next().unwrap_or_default();
                // A test stands in its file, in a module of the file, or in `mod.rs` of a folder.
                for module in parts.iter().rev().take(2).chain([&"tests"]) {
                    self.named.insert((module.to_string(), name.to_string()));
                }
            }
        }
    }

    /// Returns the tests and modules that the document at `path` names, and that do not exist.
    /// Looks at paths in backticks. The name of a test is a sentence: it has two `_` at least.
    pub(super) fn check(&self, path: &str, text: &str) -> Vec<Finding> {
        if Path::new(path).starts_with("docs/notes") {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (index, line) in text.lines().enumerate() {
            for quoted in line.split('`').skip(1).step_by(2) {
                if !self.has(quoted) {
                    findings.push(Finding {
                        place: format!("{path}:{}", index + 1),
                        what: format!("no test or module of tests is called `{quoted}`"),
                        excuse: None,
                    });
                }
            }
        }
        findings
    }

    /// Returns false if `quoted` names a test or a module of tests that does not exist.
    fn has(&self, quoted: &str) -> bool {
        let is_name = |name: &str| {
            name.starts_with(|letter: char| letter.is_ascii_lowercase())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        // A path that begins with a crate names a function.
        let parts: Vec<&str> = quoted.split("::").collect();
        if parts.first().is_some_and(|name| name.starts_with("lsmith")) {
            return true;
        }
        match &parts[..] {
            [modules @ .., ""]
                if !modules.is_empty() && modules.iter().all(|name| is_name(name)) =>
            {
                modules.iter().all(|module| self.modules.contains(*module))
            }
            [.., module, name] if is_name(module) && is_name(name) => {
                name.matches('_').count() < 2
                    || self.named.contains(&(module.to_string(), name.to_string()))
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_found() {
        let mut tests = Tests::default();
        let text = "#[test]\n#[ignore]\nfn a_log_is_cut() {}\nfn not_a_test() {}";
        tests.add("crates/engine/tests/it/logs/damage.rs", text);
        let places = |text: &str| -> Vec<String> {
            tests.check("docs/a.md", text).into_iter().map(|finding| finding.what).collect()
        };
        let fine = "`logs::damage::a_log_is_cut`, `damage::`, `env::remove_file`, `Logs::a_b_c_d`";
        assert_eq!(places(fine), [""; 0]);
        assert_eq!(places("`logs::damage::not_a_test`").len(), 1);
        assert_eq!(places("a\n`logs::other::a_log_is_cut`").len(), 1);
        assert_eq!(places("`logs::other::`").len(), 1);
        let notes = tests.check("docs/notes/a.md", "`logs::damage::not_a_test`");
        assert!(notes.is_empty(), "a note tells what was");
    }
}
