//! All that the files of a store say, put together by column family.

use crate::log::{Job, Log};
use crate::manifest::{File, Manifest};
use crate::options::{Options, Settings};
use crate::{DoctorError, cassandra, leveldb, pebble};
use serde::Serialize;

/// Whose files they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Store {
    /// RocksDB.
    #[default]
    #[serde(rename = "RocksDB")]
    RocksDb,
    /// LevelDB.
    #[serde(rename = "LevelDB")]
    LevelDb,
    /// Pebble, the store below CockroachDB.
    #[serde(rename = "Pebble")]
    Pebble,
    /// Cassandra: a log of its compactions alone.
    #[serde(rename = "Cassandra")]
    Cassandra,
}

impl Store {
    /// Returns the name of the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Store::RocksDb => "RocksDB",
            Store::LevelDb => "LevelDB",
            Store::Pebble => "Pebble",
            Store::Cassandra => "Cassandra",
        }
    }
}

/// A file of a store: its name without directory and without the ending of a compression, and
/// its content.
pub type Named = (String, Vec<u8>);

/// What is known of a store.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Whose files they are.
    pub store: Store,
    /// The version of RocksDB that wrote last.
    pub version: Option<String>,
    /// The column families, by number.
    pub families: Vec<Family>,
    /// What the LOG says.
    pub log: Log,
    /// What the reader should know of the files.
    pub remarks: Vec<String>,
}

/// A column family.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Its settings; empty if no file has them. The constants of LevelDB and the settings of Pebble
    /// have RocksDB's names.
    pub settings: Settings,
    /// The tables that its tree has now.
    pub files: Vec<File>,
    /// Every table that the MANIFEST adds, also tables that are gone.
    pub added: Vec<File>,
    /// Its flushes and compactions, in the order in which they began.
    pub jobs: Vec<Job>,
}

impl Case {
    /// Puts the files of one store together. Other files than LOG, LOG.old*, MANIFEST-*, OPTIONS-*,
    /// CURRENT and marker.manifest.* are left out. A file of another name is taken for a LOG if it
    /// is the only one.
    ///
    /// # Errors
    /// Fails if there is neither a LOG nor a MANIFEST, or if one of the files is damaged.
    pub fn read(mut files: Vec<Named>) -> Result<Case, DoctorError> {
        let mut case = Case::default();
        // Newest last: numbers have leading zeros, and LOG.old.* end with a time.
        files.sort();
        if files.iter().any(|(name, bytes)| cassandra::is_log(name, bytes)) {
            case.read_cassandra(&files);
            return Ok(case);
        }
        let manifest = match manifest_of(&files) {
            Some((name, bytes)) => Some(
                Manifest::read(bytes)
                    .map_err(|error| error.of_file(name))
                    .inspect(|manifest| case.note_torn(name, manifest))?,
            ),
            None => None,
        };
        let options = match newest(&files, "OPTIONS-") {
            Some((name, bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                Some(Options::read(&text).map_err(|error| error.of_file(name))?)
            }
            None => None,
        };
        let logs = logs_of(&files);
        for (_, bytes) in &logs {
            case.log.read(bytes);
        }
        case.read_as_others(&logs, manifest.as_ref(), options.as_ref());
        let has_edits = manifest.as_ref().is_some_and(|manifest| !manifest.edits.is_empty());
        if !has_edits && case.log.is_foreign() && case.store != Store::Pebble {
            let message = "expected a LOG or a MANIFEST-* of RocksDB, LevelDB or Pebble, found \
                           none; give the directory of the database, or one LOG";
            return Err(DoctorError::whole(files.first().map_or("", |file| &file.0), message));
        }
        case.version =
            case.log.version.clone().or(options.as_ref().and_then(|o| o.version.clone()));
        case.gather(manifest.as_ref(), options.as_ref());
        case.note_log(!logs.is_empty(), manifest.as_ref());
        Ok(case)
    }

    fn read_cassandra(&mut self, files: &[Named]) {
        self.store = Store::Cassandra;
        // compaction.log is the newest; compaction-DATE.N.log are older.
        let mut logs: Vec<&Named> =
            files.iter().filter(|(name, bytes)| cassandra::is_log(name, bytes)).collect();
        logs.sort_by_key(|(name, _)| name == "compaction.log");
        self.families = cassandra::read(&mut self.log, logs.iter().map(|(_, bytes)| &bytes[..]));
        if self.log.damaged > 0 {
            let count = self.log.damaged;
            self.remarks
                .push(format!("{count} lines of the log are cut or damaged, and left out."));
        }
    }

    /// Finds out whose the files are, and reads logs that are not of RocksDB.
    fn read_as_others(
        &mut self,
        logs: &[&Named],
        manifest: Option<&Manifest>,
        options: Option<&Options>,
    ) {
        if !self.log.is_foreign() || options.is_some_and(|options| !options.is_pebble) {
            return;
        }
        let of_manifest = manifest.map(|manifest| manifest.store);
        let mut is_pebble = options.is_some() || of_manifest == Some(Store::Pebble);
        if of_manifest != Some(Store::RocksDb) {
            for (_, bytes) in logs {
                is_pebble |= pebble::read(&mut self.log, bytes);
            }
        }
        if is_pebble {
            self.store = Store::Pebble;
        } else if of_manifest != Some(Store::RocksDb) {
            self.store = Store::LevelDb;
            for (_, bytes) in logs {
                leveldb::read(&mut self.log, bytes);
            }
        }
    }

    /// Says what the LOG lacks, and completes what LevelDB's lacks by the MANIFEST.
    fn note_log(&mut self, has_log: bool, manifest: Option<&Manifest>) {
        if self.log.damaged > 0 {
            let count = self.log.damaged;
            self.remarks
                .push(format!("{count} events of the LOG are cut or damaged, and left out."));
        }
        if self.store == Store::RocksDb {
            if !has_log {
                self.remarks
                    .push("There is no LOG: flushes and compactions are unknown.".to_owned());
            }
            return;
        }
        if !has_log {
            let remark = "There is no LOG: flushes and compactions are taken from the MANIFEST.";
            self.remarks.push(remark.to_owned());
        }
        let edits = manifest.map_or(&[][..], |manifest| &manifest.edits);
        for family in &mut self.families {
            let (jobs, added) = (&mut family.jobs, &family.added);
            let estimated = if self.store == Store::Pebble {
                pebble::complete(jobs, added, edits)
            } else {
                let estimated = leveldb::complete(jobs, added, edits, has_log);
                family.settings = leveldb::settings(jobs);
                estimated
            };
            if estimated > 0 {
                self.remarks
                    .push(format!("The entries of {estimated} tables follow from their bytes."));
            }
        }
    }

    fn note_torn(&mut self, name: &str, manifest: &Manifest) {
        if let Some(offset) = manifest.torn_at {
            self.remarks.push(format!("{name} ends within the record at offset {offset}."));
        }
    }

    fn gather(&mut self, manifest: Option<&Manifest>, options: Option<&Options>) {
        let mut names: Vec<(Option<u64>, String)> = match manifest {
            Some(manifest) => {
                manifest.families().into_iter().map(|(n, name)| (Some(n), name)).collect()
            }
            None => self.log.families.keys().map(|name| (None, name.clone())).collect(),
        };
        if names.is_empty() {
            // A LOG that begins late has no settings.
            names.extend(self.log.jobs.iter().map(|job| (None, job.family.clone())));
            names.sort();
            names.dedup();
        }
        for (number, name) in names {
            let of_options = options.and_then(|options| options.families.get(&name));
            let settings = of_options.or(self.log.families.get(&name)).cloned().unwrap_or_default();
            let is_pebble = self.store == Store::Pebble && !settings.is_empty();
            let settings = if is_pebble { pebble::settings(&settings) } else { settings };
            let edits = manifest.iter().flat_map(|manifest| &manifest.edits);
            let edits = edits.filter(|edit| Some(edit.family) == number);
            let jobs = self.log.jobs.iter().filter(|job| job.family == name);
            self.families.push(Family {
                files: manifest.zip(number).map_or(Vec::new(), |(m, number)| m.files(number)),
                added: edits.flat_map(|edit| edit.added.clone()).collect(),
                jobs: jobs.cloned().collect(),
                settings,
                name,
            });
        }
    }
}

/// Returns the newest file whose name begins with `start`.
fn newest<'a>(files: &'a [Named], start: &str) -> Option<&'a Named> {
    files.iter().rev().find(|(name, _)| name.starts_with(start))
}

/// Returns the MANIFEST that is in force: by the newest marker, by CURRENT, or the newest one.
fn manifest_of(files: &[Named]) -> Option<&Named> {
    let marker = files.iter().filter_map(|(name, _)| pebble::marked(name)).max();
    let current = files.iter().find(|(name, _)| name == "CURRENT");
    let current = current.map(|(_, text)| String::from_utf8_lossy(text).trim().to_owned());
    let in_force = marker.map(|(_, name)| name.to_owned()).or(current);
    let named = files.iter().find(|(name, _)| in_force.as_deref() == Some(name));
    named.or_else(|| newest(files, "MANIFEST-"))
}

/// Returns the logs, oldest first. LOG itself is the newest.
fn logs_of(files: &[Named]) -> Vec<&Named> {
    let is_one = files.len() == 1;
    let is_log = |name: &str| {
        name == "LOG"
            || name.starts_with("LOG.old")
            || name.ends_with("_LOG")
            || is_one && !name.starts_with("MANIFEST-") && !name.starts_with("OPTIONS-")
    };
    let mut logs: Vec<&Named> = files.iter().filter(|(name, _)| is_log(name)).collect();
    logs.sort_by_key(|(name, _)| !name.contains(".old"));
    logs
}

impl Family {
    /// Returns a setting as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.settings.get(name)?.parse().ok()
    }

    /// Returns the flushes.
    pub fn flushes(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| !job.is_compaction && !job.outputs.is_empty())
    }

    /// Returns the compactions that ended.
    pub fn compactions(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.is_compaction && job.is_finished)
    }
}
