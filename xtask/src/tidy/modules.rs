//! Which modules use which: downwards only, as ARCHITECTURE.md draws them, and never in a circle.

use super::finding::Finding;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders of the crates whose modules ARCHITECTURE.md draws, each in the first fenced block of
/// its section.
const DRAWN: [&str; 14] = [
    "crates/spec",
    "crates/tree",
    "crates/policy",
    "crates/model",
    "crates/workload",
    "crates/sim",
    "crates/storage",
    "crates/engine",
    "crates/lab",
    "crates/papers",
    "crates/cli",
    "crates/fuzz",
    "crates/rivals",
    "xtask",
];

/// What can stand in front of `use` and `mod` for others to see what follows.
const EXPORTS: [&str; 3] = ["pub ", "pub(crate) ", "pub(super) "];

/// A module: the names from the root of the crate down to it. The root itself has none.
type Module = Vec<String>;

/// The modules of a crate, without test modules, and which of them use which.
#[derive(Debug, Default)]
struct Graph {
    uses: BTreeMap<Module, BTreeSet<Module>>,
}

/// Returns what is wrong with the modules of the drawn crates below `root`.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in DRAWN {
        let graph = Graph::read(&root.join(name).join("src"))?;
        findings.extend(check_order(name, &graph, &drawing(root, name)?));
        findings.extend(check_circles(name, &graph));
    }
    Ok(findings)
}

/// Prints the modules of the drawn crates from the top down, each with the modules that it uses.
pub(crate) fn print(root: &Path) -> Result<()> {
    for name in DRAWN {
        let graph = Graph::read(&root.join(name).join("src"))?;
        let order = drawing(root, name)?;
        eprintln!("{name}: each module uses only modules that stand below it");
        for module in &order {
            let used = graph.rooms_used_by(module);
            let used: Vec<&str> =
                order.iter().filter(|other| used.contains(*other)).map(String::as_str).collect();
            eprintln!("  {module:<14} {}", used.join(" "));
        }
    }
    Ok(())
}

/// Returns the names of the modules of the crate in folder `name` from the top down, as
/// ARCHITECTURE.md draws them: the words in front of the first double space of each line that is
/// indented by two.
fn drawing(root: &Path, name: &str) -> Result<Vec<String>> {
    let path = root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(drawn_modules(&text, name))
}

fn drawn_modules(text: &str, name: &str) -> Vec<String> {
    let section = text.split(&format!("### `{name}`")).nth(1).unwrap_or_default();
    let block = section.split("```").nth(1).unwrap_or_default();
    let lines = block.lines().filter_map(|line| line.strip_prefix("  "));
    let named = lines.filter(|line| line.starts_with(|letter: char| letter.is_ascii_lowercase()));
    let words = named.filter_map(|line| line.split("  ").next());
    words.flat_map(|words| words.split(", ")).map(str::to_string).collect()
}

fn check_order(name: &str, graph: &Graph, order: &[String]) -> Vec<Finding> {
    let place = format!("{name}/src");
    let mut findings = Vec::new();
    let rooms = graph.rooms();
    for room in &rooms {
        if !order.contains(room) {
            let what = format!("ARCHITECTURE.md does not draw the module {room}");
            findings.push(finding(&place, what));
        }
    }
    for (index, room) in order.iter().enumerate() {
        if !rooms.contains(room) {
            findings.push(finding(&place, format!("ARCHITECTURE.md draws {room}: no module")));
        }
        for above in
            order[..index].iter().filter(|above| graph.rooms_used_by(room).contains(*above))
        {
            let what = format!("{room} uses {above}, which ARCHITECTURE.md draws above it");
            findings.push(finding(&place, what));
        }
    }
    findings
}

/// Returns the circles of modules, but for circles of a module and one child of it.
fn check_circles(name: &str, graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for module in graph.uses.keys() {
        let circle: BTreeSet<&Module> = graph.reached_from(module);
        let circle: BTreeSet<&Module> =
            circle.into_iter().filter(|other| graph.reached_from(other).contains(module)).collect();
        let Some(shortest) = circle.iter().min_by_key(|module| module.len()) else { continue };
        let is_child = |other: &Module| other[..other.len() - 1] == shortest[..];
        let is_allowed =
            circle.len() == 2 && circle.iter().all(|other| other == shortest || is_child(other));
        if !is_allowed && seen.insert(circle.clone()) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let what = format!("modules use each other in a circle: {}", names.join(", "));
            findings.push(finding(&format!("{name}/src"), what));
        }
    }
    findings
}

fn finding(place: &str, what: String) -> Finding {
    Finding { place: place.to_string(), what, excuse: None }
}

impl Graph {
    /// Reads the crate whose root, `lib.rs` or else `main.rs`, is in `folder`.
    fn read(folder: &Path) -> Result<Graph> {
        let mut files = BTreeMap::new();
        let library = folder.join("lib.rs");
        let root = if library.exists() { library } else { folder.join("main.rs") };
        read_module(folder, &root, Vec::new(), &mut files)?;
        Ok(Graph::of(&files))
    }

    fn of(files: &BTreeMap<Module, String>) -> Graph {
        let mut graph = Graph::default();
        for (module, text) in files {
            let uses = graph.uses.entry(module.clone()).or_default();
            for path in paths(&without_exports(text)) {
                let target = resolve(files, module, &path);
                // The root re-exports everything, for users.
                if target != *module && !target.is_empty() && !module.is_empty() {
                    uses.insert(target);
                }
            }
        }
        graph
    }

    /// Returns the names of the modules directly below the root.
    fn rooms(&self) -> BTreeSet<String> {
        self.uses.keys().filter_map(|module| module.first().cloned()).collect()
    }

    /// Returns the modules below the root that the module `room`, or one within it, uses.
    fn rooms_used_by(&self, room: &str) -> BTreeSet<String> {
        let inside =
            self.uses.iter().filter(|(module, _)| module.first().is_some_and(|m| m == room));
        let used = inside.flat_map(|(_, used)| used).filter_map(|module| module.first().cloned());
        used.filter(|used| used != room).collect()
    }

    /// Returns the modules to which a way of one use or more leads from `module`.
    fn reached_from<'a>(&'a self, module: &'a Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut next = vec![module];
        while let Some(module) = next.pop() {
            let used = self.uses.get(module).into_iter().flatten();
            next.extend(used.filter(|used| reached.insert(*used)));
        }
        reached
    }
}

/// Reads the file at `path` and the files of its child modules, but for test modules.
fn read_module(
    folder: &Path,
    path: &Path,
    module: Module,
    files: &mut BTreeMap<Module, String>,
) -> Result<()> {
    let source = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let text = code_of(&source);
    for child in children(&text) {
        let mut child_module = module.clone();
        child_module.push(child);
        let base = child_module.iter().fold(folder.to_path_buf(), |path, name| path.join(name));
        let beside = base.with_extension("rs");
        let file = if beside.exists() { beside } else { base.join("mod.rs") };
        read_module(folder, &file, child_module, files)?;
    }
    files.insert(module, text);
    Ok(())
}

/// Returns `text` without comments and tests.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut lines = Vec::new();
    let mut is_test = false;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        let was_test = is_test;
        is_test = code.trim() == "#[cfg(test)]";
        if !is_test && !was_test {
            lines.push(code);
        }
    }
    lines.join("\n")
}

/// Returns `text` without what it re-exports and does not use itself: that is no use of its own.
fn without_exports(text: &str) -> String {
    let (exports, rest): (Vec<&str>, Vec<&str>) =
        text.split_inclusive(';').partition(|statement| {
            let statement = statement.trim_start();
            EXPORTS.iter().any(|export| statement.starts_with(&format!("{export}use ")))
        });
    let words: BTreeSet<&str> = rest.iter().flat_map(|statement| words(statement)).collect();
    let mut used: String = rest.concat();
    for path in exports.iter().flat_map(|export| paths(&format!("{}{export}", declared(text)))) {
        if path.last().is_some_and(|name| words.contains(&**name)) {
            used += &format!("use {};\n", path.join("::"));
        }
    }
    used
}

/// Returns the names of the modules that `text` declares, in files of their own.
fn children(text: &str) -> Vec<String> {
    let declared = text.lines().filter_map(|line| {
        let rest = EXPORTS.iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line);
        rest.strip_prefix("mod ")?.strip_suffix(';')
    });
    declared.map(str::to_string).collect()
}

/// Returns only the declarations of child modules of `text`.
fn declared(text: &str) -> String {
    children(text).iter().map(|child| format!("mod {child};\n")).collect()
}

/// Returns the names, keywords and numbers in `text`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(move |letter| !is_part(letter))
}

/// Returns the paths in `text` that begin with `crate`, `super`, `self` or a child module: one for
/// each name in braces.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let roots = ["crate", "super", "self"].map(str::to_string);
    for root in roots.into_iter().chain(children(text)) {
        for (at, _) in text.match_indices(&format!("{root}::")) {
            let before = text[..at].chars().next_back().unwrap_or(' ');
            let is_seen_by = text[..at].ends_with("pub(in ");
            if !before.is_alphanumeric() && before != '_' && before != ':' && !is_seen_by {
                spell_out(&text[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Adds the paths that `text` begins with to `found`, behind `prefix`. Returns how many bytes it
/// has read.
fn spell_out(text: &str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let depth = prefix.len();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if let Some(inner) = rest.strip_prefix('{') {
            at += 1;
            let mut inner = inner;
            loop {
                let skipped = inner.len() - inner.trim_start_matches([' ', '\n', ',']).len();
                at += skipped;
                inner = &inner[skipped..];
                if inner.is_empty() || inner.starts_with('}') {
                    break;
                }
                let read = spell_out(inner, prefix, found).max(1);
                at += read;
                inner = &inner[read..];
            }
            at += 1;
            break;
        }
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '*';
        let bytes = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        prefix.push(rest[..bytes].to_string());
        at += bytes;
        if !text[at..].starts_with("::") || bytes == 0 {
            found.push(prefix.clone());
            break;
        }
        at += 2;
    }
    prefix.truncate(depth);
    at
}

/// Returns the module in which the item lies that `path` names within `module`.
fn resolve(files: &BTreeMap<Module, String>, module: &Module, path: &[String]) -> Module {
    let mut at = module.clone();
    for (index, name) in path.iter().enumerate() {
        match (name.as_str(), index) {
            ("crate", 0) => at.clear(),
            ("self", _) => {}
            ("super", _) => {
                at.pop();
            }
            _ => {
                let mut child = at.clone();
                child.push(name.clone());
                if files.contains_key(&child) {
                    at = child;
                } else {
                    return owner(files, &at, name);
                }
            }
        }
    }
    at
}

/// Returns the module in which the item lies that `module` calls `name`: where the `use` leads that
/// brings the name in, else `module` itself.
fn owner(files: &BTreeMap<Module, String>, module: &Module, name: &str) -> Module {
    let Some(text) = files.get(module) else { return module.clone() };
    let imports = text.split(';').filter(|statement| {
        let start = statement.trim_start();
        let start = EXPORTS.iter().find_map(|export| start.strip_prefix(export)).unwrap_or(start);
        start.starts_with("use ")
    });
    for import in imports {
        for path in paths(&format!("{}{import}", declared(text))) {
            if path.last().is_some_and(|last| last == name) {
                return resolve(files, module, &path);
            }
        }
    }
    module.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let module = |path: &str| match path {
            "" => Module::new(),
            path => path.split("::").map(str::to_string).collect(),
        };
        Graph::of(&files.iter().map(|(path, text)| (module(path), code_of(text))).collect())
    }

    fn whats(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_use_of_a_module_drawn_above_is_found() {
        let graph = graph(&[
            ("", "mod high;\nmod low;\n"),
            ("high", "use crate::low::Low;\n// crate::high is no use\n"),
            ("low", "fn low() { crate::high::go() }\n#[cfg(test)]\nmod tests {\n}"),
        ]);
        let order = ["high", "low"].map(str::to_string);
        let found = whats(check_order("x", &graph, &order));
        assert_eq!(found, ["low uses high, which ARCHITECTURE.md draws above it"]);
        let order = ["high", "lower"].map(str::to_string);
        let found = whats(check_order("x", &graph, &order));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn circles_are_found_but_for_a_module_and_one_child() {
        let child = ("parent::child", "use super::Parent;\npub(crate) struct Child;\n");
        let pair = graph(&[
            ("", "mod parent;\n"),
            ("parent", "mod child;\nuse child::Child;\npub(crate) struct Parent;\n"),
            child,
        ]);
        assert_eq!(whats(check_circles("x", &pair)), [""; 0]);
        let family = graph(&[
            ("", "mod parent;\n"),
            ("parent", "mod child;\nmod other;\nfn all() { (child::all(), other::all()) }\n"),
            child,
            ("parent::other", "fn all() { super::Parent::new() }\n"),
        ]);
        let found = whats(check_circles("x", &family));
        let circle = "modules use each other in a circle: parent, parent::child, parent::other";
        assert_eq!(found, [circle]);
        let siblings = graph(&[
            ("", "mod room;\n"),
            ("room", "mod one;\nmod two;\npub(crate) use one::{One, Other};\npub use two::Two;\n"),
            ("room::one", "use super::Two;\n"),
            ("room::two", "use super::{\n    Other,\n};\n"),
        ]);
        let found = whats(check_circles("x", &siblings));
        assert_eq!(found, ["modules use each other in a circle: room::one, room::two"]);
    }

    /// A name leads to the file that has it, through any number of exports.
    #[test]
    fn a_use_leads_through_exports() {
        let graph = graph(&[
            ("", "mod deep;\nmod flat;\npub use deep::Deepest;\n"),
            ("deep", "pub(super) mod inner;\npub use inner::Deepest;\nuse crate::flat::Flat;\n"),
            ("deep::inner", "pub struct Deepest;\nuse super::Flat;\n"),
            ("flat", "use crate::Deepest;\n"),
        ]);
        let found = whats(check_circles("x", &graph));
        assert_eq!(found, ["modules use each other in a circle: deep::inner, flat"]);
    }

    #[test]
    fn the_drawing_is_read_line_by_line() {
        let text = "### `crates/other`\n```\n  not  this\n```\n### `crates/x`: words\n```\n  \
                    db             handles\n                 that go on\n  a, b         two\n```\n";
        assert_eq!(drawn_modules(text, "crates/x"), ["db", "a", "b"]);
    }
}
