//! The settings of column families, from a file OPTIONS or the head of a LOG. Pebble has one tree,
//! which counts as the column family `default`.

use crate::DoctorError;
use std::collections::BTreeMap;

/// The settings of one column family by name. Names in nested groups have a dot, as in
/// `compaction_options_universal.size_ratio`.
pub type Settings = BTreeMap<String, String>;

/// The settings of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The version of RocksDB, if the file names it.
    pub version: Option<String>,
    /// The settings of each column family, by name.
    pub families: BTreeMap<String, Settings>,
    /// True if Pebble wrote the file. The settings have Pebble's names, and a level in front of a
    /// dot if they are of one level.
    pub is_pebble: bool,
}

impl Options {
    /// Reads a file OPTIONS of RocksDB or Pebble.
    ///
    /// # Errors
    /// Fails if a line is neither a section, nor a setting, nor a remark, or if the text is not
    /// from RocksDB or Pebble.
    pub fn read(text: &str) -> Result<Options, DoctorError> {
        let mut options = Options::default();
        let mut section = String::new();
        let mut has_version = false;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let Some(name) = name.strip_suffix(']') else {
                    return Err(DoctorError::line(number, "expected `]` at the end of a section"));
                };
                section = name.to_owned();
                has_version |= name == "Version";
                if let Some(family) = family_of(&section) {
                    options.families.entry(family.to_owned()).or_default();
                }
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                return Err(DoctorError::line(number, "expected `name=value` or `[section]`"));
            };
            if section == "Version" && name == "rocksdb_version" {
                options.version = Some(value.to_owned());
            } else if section == "Version" && name == "pebble_version" {
                options.is_pebble = true;
            } else if options.is_pebble {
                let settings = options.families.entry("default".to_owned()).or_default();
                let level = section.strip_prefix("Level \"").and_then(|s| s.strip_suffix('"'));
                let name = level.map_or(name.to_owned(), |level| format!("{name}.{level}"));
                settings.insert(name, value.to_owned());
            } else if let Some(family) = family_of(&section) {
                let settings = options.families.entry(family.to_owned()).or_default();
                add(settings, name.trim(), value.trim());
            }
        }
        if !has_version {
            let message =
                "expected a section [Version], as in the files OPTIONS-* of RocksDB and Pebble";
            return Err(DoctorError::line(1, message));
        }
        Ok(options)
    }
}

fn family_of(section: &str) -> Option<&str> {
    section.strip_prefix("CFOptions \"")?.strip_suffix('"')
}

/// Adds a setting, and the settings within it if it is `{a=1;b=2;}`.
fn add(settings: &mut Settings, name: &str, value: &str) {
    let inner = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
    for (part, value) in
        inner.iter().flat_map(|inner| inner.split(';')).filter_map(|p| p.split_once('='))
    {
        settings.insert(format!("{name}.{}", part.trim()), value.trim().to_owned());
    }
    settings.insert(name.to_owned(), value.to_owned());
}
