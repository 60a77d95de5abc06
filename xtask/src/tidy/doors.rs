//! Checks that words are named only in one module, their door.

use super::finding::Finding;

/// A door, and the words that no other module of the package may name.
struct Door {
    /// The folder in which the rule holds.
    folder: &'static str,
    /// The module in that folder.
    module: &'static str,
    words: &'static [&'static str],
}

/// The words that only `sync` of `lsmith-storage` may name.
const BEHIND_SYNC: &[&str] = &[
    "parking_lot::",
    "arc_swap::",
    "quick_cache::sync",
    "std::thread",
    "std::sync::atomic",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "std::sync::Condvar",
    "std::sync::OnceLock",
    "std::sync::LazyLock",
    "std::sync::mpsc",
    "std::sync::Barrier",
    "std::time::Instant",
];

/// The words that only `system` of `lsmith-storage` may name.
const BEHIND_SYSTEM: &[&str] = &[
    "cfg(target_os",
    "target_family =",
    "cfg(unix)",
    "cfg(windows)",
    "std::os::",
    "libc::",
    "rustix::",
    "windows_sys::",
];

const DOORS: [Door; 4] = [
    Door { folder: "crates/storage/src/", module: "sync", words: BEHIND_SYNC },
    // No file of the engine is this door.
    Door { folder: "crates/engine/src/", module: "lsmith_storage::sync", words: BEHIND_SYNC },
    Door { folder: "crates/storage/src/", module: "system", words: BEHIND_SYSTEM },
    Door { folder: "crates/engine/src/", module: "lsmith_storage::system", words: BEHIND_SYSTEM },
];

/// Returns the violations in `text`, the file at `path`.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for door in &DOORS {
        let Some(within) = path.strip_prefix(door.folder) else { continue };
        if within.strip_prefix(door.module).is_some_and(|rest| rest.starts_with(['.', '/'])) {
            continue;
        }
        // `system` stands below `sync`, which uses it.
        if door.module == "sync" && within.starts_with("system/") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in door.words.iter().filter(|word| code.contains(**word)) {
                findings.push(Finding {
                    place: format!("{path}:{}", index + 1),
                    what: format!("`{word}` is behind the door `{}`", door.module),
                    excuse: None,
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_door_names_what_is_behind_it() {
        let text = "// std::thread is not named here\nuse std::thread;\n";
        let found = check("crates/storage/src/pool.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].place, "crates/storage/src/pool.rs:2");
        for path in ["crates/storage/src/sync.rs", "crates/storage/src/sync/real.rs"] {
            assert_eq!(check(path, text), []);
        }
        assert_eq!(check("crates/engine/src/sync.rs", text).len(), 1);
        assert_eq!(check("crates/cli/src/main.rs", text), []);
    }

    #[test]
    fn only_the_door_names_an_operating_system() {
        for text in ["use std::os::unix::fs::FileExt;\n", "#[cfg(target_os = \"linux\")]\n"] {
            assert_eq!(check("crates/storage/src/env/real.rs", text).len(), 1);
            assert_eq!(check("crates/engine/src/stats.rs", text).len(), 1);
            assert_eq!(check("crates/storage/src/system/unix.rs", text), []);
        }
    }
}
