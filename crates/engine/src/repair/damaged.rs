//! The store that is repaired: its files, and what was found in it so far.

use super::options::RepairOptions;
use super::report::{Finding, FindingKind};
use super::values::ValueRemains;
use crate::leases::Position;
use crate::manifest;
use crate::opening::take_lock_to_read;
use crate::rules::CombineOperators;
use lsmith_policy::Registry;
use lsmith_storage::env::{Env, HeldEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, FileKind};
use lsmith_storage::table::OpenFiles;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The store that is repaired, and what was found in it so far.
pub(super) struct DamagedStore {
    pub(super) env: Arc<dyn Env>,
    pub(super) dir: PathBuf,
    pub(super) registry: Registry,
    pub(super) operators: CombineOperators,
    /// All numbered files, by id.
    pub(super) files: Vec<(FileKind, u64)>,
    pub(super) findings: Vec<Finding>,
    /// The tables that keep a descriptor.
    pub(super) open_files: Arc<OpenFiles>,
    /// The files of the values that tables refer to.
    pub(super) values: Rc<ValueRemains>,
    /// How far the manifest had come before anything else was read, if that is known.
    pub(super) position: Option<Position>,
}

impl DamagedStore {
    pub(super) fn open(options: &RepairOptions, dir: &Path) -> Result<DamagedStore> {
        let env = Arc::clone(&options.env);
        let listed = env.list(dir);
        let names = match listed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|error| Error::io("list", dir, error))?,
        };
        let parsed = names.iter().filter_map(|name| names::parse(name));
        let mut files: Vec<(FileKind, u64)> = parsed.collect();
        files.sort_by_key(|(_, file_id)| *file_id);
        if files.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "there is no file of a store").at(dir));
        }
        let held = take_lock_to_read(&*env, dir)?;
        let open_files = OpenFiles::new(OpenFiles::usual_max(&*env));
        let position = manifest::position(&*env, dir).ok().flatten();
        let env: Arc<dyn Env> = Arc::new(HeldEnv::new(env, dir, held));
        let mut old = DamagedStore {
            values: Rc::new(ValueRemains::new(&env, dir, &open_files)),
            env,
            dir: dir.to_path_buf(),
            registry: options.registry.clone(),
            operators: options.operators.clone(),
            files,
            findings: Vec::new(),
            open_files,
            position,
        };
        old.report_set_aside(&names);
        Ok(old)
    }

    /// Fails if somebody has written to the store since it was opened. A lock keeps others from
    /// that, where one can be had.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        if manifest::position(&*self.env, &self.dir).ok().flatten() == self.position {
            return Ok(());
        }
        let message = "somebody wrote to the store while it was read, which no lock could prevent: \
                       repair it while nobody has it open";
        Err(Error::new(ErrorKind::Locked, message).at(&self.dir))
    }

    /// Reports the files that earlier openings have set aside.
    fn report_set_aside(&mut self, names: &[String]) {
        for name in names.iter().filter(|name| name.ends_with(names::LOST)) {
            let path = self.dir.join(name);
            let bytes = self.env.file_bytes(&path).unwrap_or(0);
            let message = "bytes that an earlier opening set aside are not read";
            self.report(FindingKind::LeftOut { bytes }, &path, None, message);
        }
    }

    /// Returns the numbers of all files of `kind`, in ascending order.
    pub(super) fn file_ids(&self, kind: FileKind) -> Vec<u64> {
        self.files.iter().filter(|(found, _)| *found == kind).map(|(_, file_id)| *file_id).collect()
    }

    /// Adds a finding.
    pub(super) fn report(
        &mut self,
        kind: FindingKind,
        path: &Path,
        offset: Option<u64>,
        message: impl Into<String>,
    ) {
        self.findings.push(Finding {
            kind,
            path: path.to_path_buf(),
            offset,
            keyspace: None,
            message: message.into(),
        });
    }

    /// Adds `error`, which reading a file returned, as a finding of `kind`.
    pub(super) fn report_error(&mut self, kind: FindingKind, error: &Error) {
        let path = error.path().unwrap_or(&self.dir).to_path_buf();
        self.report(kind, &path, error.offset(), error.message());
    }
}
