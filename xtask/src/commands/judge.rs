//! Says if a command names packages, targets, features, tests and chores that exist.

use super::documents::Shown;
use crate::chores::cargo;
use crate::tidy::files_with;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Commands of cargo that others bring along, or that are run in a folder of the reader's own.
const FOREIGN: [&str; 4] = ["add", "bolero", "install", "new"];

/// A workspace, as far as commands name parts of it.
pub(super) struct Workspace {
    /// The folder, from the root.
    pub(super) folder: String,
    packages: Vec<Package>,
    /// Features that take long to compile.
    slow: &'static [&'static str],
}

/// What the words of a command name.
#[derive(Default)]
struct Named<'a> {
    /// None for all.
    packages: Vec<&'a str>,
    /// Kind and name.
    targets: Vec<(&'a str, &'a str)>,
    /// Parts of the names of tests.
    filters: Vec<&'a str>,
    features: &'a str,
}

struct Package {
    name: String,
    folder: PathBuf,
    is_published: bool,
    /// Kind and name of each target.
    targets: Vec<(String, String)>,
    /// Each feature, with the features that it needs.
    features: BTreeMap<String, Vec<String>>,
}

impl Workspace {
    pub(super) fn read(root: &Path, folder: &str, slow: &'static [&'static str]) -> Result<Self> {
        let mut command = cargo(&root.join(folder));
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let output = command.output().context("cargo metadata did not start")?;
        ensure!(output.status.success(), "cargo metadata failed in {folder}");
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array().into_iter().flatten().map(Package::read);
        Ok(Self { folder: folder.to_owned(), packages: packages.collect(), slow })
    }

    /// Returns the features that the command asks for. Fails if it names what does not exist.
    pub(super) fn judge(&self, shown: &Shown) -> Result<String> {
        let (command, rest) = shown.words.split_first().context("there is no command")?;
        let command = command.as_str();
        match command {
            "xtask" => {
                let words: Vec<&str> = rest.iter().map(String::as_str).collect();
                ensure!(crate::chore(&words).is_some(), "there is no such chore");
                return Ok(String::new());
            }
            _ if FOREIGN.contains(&command) => return Ok(String::new()),
            "run" | "test" | "bench" | "build" | "check" => {}
            _ => bail!("unknown command `{command}`"),
        }
        let mut named = Named::default();
        let mut words = rest.iter().take_while(|word| *word != "--").map(String::as_str);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word {
                "-p" | "--package" => named.packages.push(value()?),
                "--features" => named.features = value()?,
                "--test" | "--bench" | "--bin" | "--example" => {
                    named.targets.push((&word[2..], value()?));
                }
                "--release" | "--workspace" | "--lib" | "--all-targets" | "--quiet" => {}
                word if word.starts_with('-') => bail!("unknown option `{word}`"),
                // Words in capitals stand for any other.
                filter if command == "test" && filter.chars().any(char::is_lowercase) => {
                    named.filters.push(filter);
                }
                _ => {}
            }
        }
        self.find(&named)?;
        Ok(named.features.to_owned())
    }

    /// Fails if something that a command names does not exist.
    fn find(&self, named: &Named<'_>) -> Result<()> {
        for name in &named.packages {
            let known = self.packages.iter().any(|package| package.name == **name);
            ensure!(known, "there is no package `{name}`");
        }
        let is_named = |name| named.packages.is_empty() || named.packages.contains(&name);
        let packages = || self.packages.iter().filter(|package| is_named(package.name.as_str()));
        for (kind, name) in &named.targets {
            let known = packages().any(|package| package.has_target(kind, name));
            ensure!(known, "there is no {kind} `{name}`");
        }
        for filter in &named.filters {
            let known = packages().any(|package| package.mentions(filter));
            ensure!(known, "there is no test with `{filter}` in its name");
        }
        for feature in named.features.split(',').filter(|feature| !feature.is_empty()) {
            let known = packages().any(|package| package.features.contains_key(feature));
            ensure!(known, "there is no feature `{feature}`");
        }
        Ok(())
    }

    /// Returns lists of features that compile every feature: none, each alone, and all together.
    /// Without `slow`, leaves out features that take long.
    pub(super) fn features(&self, slow: bool) -> impl Iterator<Item = String> {
        let names = self.packages.iter().flat_map(|package| package.features.keys());
        let names = names.filter(|name| *name != "default" && (slow || !self.is_slow(name)));
        let names: Vec<String> = names.cloned().collect();
        let together = names.join(",");
        std::iter::once(String::new()).chain(names).chain([together])
    }

    /// Returns true if a list of features has one that takes long to compile.
    pub(super) fn is_slow(&self, features: &str) -> bool {
        features.split(',').any(|feature| {
            let needed = self.packages.iter().filter_map(|package| package.features.get(feature));
            self.slow.contains(&feature) || needed.flatten().any(|needed| self.is_slow(needed))
        })
    }

    /// Returns sets of features: none, and each alone, with the published packages that have it.
    /// All of them together are the default, which other steps of CI compile.
    pub(super) fn partial_features(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut sets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for package in self.packages.iter().filter(|package| package.is_published) {
            let names = package.features.keys().map(String::as_str);
            // A package with features has a set of defaults.
            for name in names.map(|name| if name == "default" { "" } else { name }) {
                sets.entry(name).or_default().push(&package.name);
            }
        }
        sets
    }
}

impl Package {
    fn read(package: &Value) -> Package {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
        let features = package["features"].as_object().into_iter().flatten();
        let targets = package["targets"].as_array().into_iter().flatten();
        Package {
            name: text(&package["name"]),
            folder: Path::new(&text(&package["manifest_path"])).with_file_name(""),
            is_published: package["publish"].is_null(),
            targets: targets
                .map(|target| (text(&target["kind"][0]), text(&target["name"])))
                .collect(),
            features: features.map(|(name, needed)| (name.clone(), texts(needed))).collect(),
        }
    }

    fn has_target(&self, kind: &str, name: &str) -> bool {
        self.targets.iter().any(|(of, target)| of == kind && target == name)
    }

    /// Returns true if each part of the name of a test occurs in a source file or its name.
    fn mentions(&self, filter: &str) -> bool {
        let mut paths = Vec::new();
        if files_with("rs", &self.folder, &mut paths).is_err() {
            return false;
        }
        let texts: Vec<String> =
            paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
        filter.split("::").all(|part| {
            texts.iter().any(|text| text.contains(part))
                || paths.iter().any(|path| path.to_string_lossy().contains(part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(words: &str) -> String {
        let folder = crate::chores::root();
        let package = Package {
            name: "a".into(),
            folder: folder.join("xtask"),
            is_published: true,
            targets: vec![("test".into(), "it".into())],
            features: ["x", "y"].map(|name| (name.into(), Vec::new())).into(),
        };
        let own = Workspace { folder: String::new(), packages: vec![package], slow: &["x"] };
        let words = words.split(' ').map(str::to_owned).collect();
        let shown = Shown { place: "a.md:1".into(), folder: None, words };
        own.judge(&shown).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn each_feature_is_compiled_once_with_all_that_have_it() {
        let own = Workspace::read(&crate::chores::root(), "", &[]).unwrap();
        let sets = own.partial_features();
        assert_eq!(sets.keys().collect::<Vec<_>>(), [&"", &"encryption", &"lz4", &"plot", &"zstd"]);
        assert_eq!(sets["plot"], ["lsmith-lab"]);
        for package in ["lsmith", "lsmith-storage", "lsmith-cli"] {
            assert!(["", "encryption", "zstd"].iter().all(|set| sets[set].contains(&package)));
        }
    }

    #[test]
    fn what_does_not_exist_is_named() {
        assert_eq!(judged("run --release --features x,y -- --any"), "x,y");
        assert_eq!(judged("test -p a --test it judged"), "");
        assert_eq!(judged("test NAME"), "");
        assert_eq!(judged("xtask tidy"), "");
        assert_eq!(judged("xtask tidied"), "there is no such chore");
        assert_eq!(judged("test -p b"), "there is no package `b`");
        assert_eq!(judged("test --test if"), "there is no test `if`");
        assert_eq!(judged("run --features z"), "there is no feature `z`");
        assert_eq!(judged("run --realease"), "unknown option `--realease`");
        assert_eq!(judged("teste"), "unknown command `teste`");
        let absent = ["no_such", "test_name"].join("_");
        let expected = format!("there is no test with `{absent}` in its name");
        assert_eq!(judged(&format!("test {absent}")), expected);
    }
}
