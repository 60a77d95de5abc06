//! A control group that limits the memory of a process, its page cache included.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// Where control groups of the second and the first version are.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// A group of our own; it goes away when dropped, after its processes have ended.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// A group whose processes have `bytes` of memory.
    ///
    /// # Errors
    /// Where the system has no groups, or we may not make one.
    pub(crate) fn new(bytes: u64) -> Result<Group> {
        let mut refused = None;
        for (folder, file) in GROUPS {
            let path = Path::new(folder).join(format!("lsmith-rivals-{}", process::id()));
            if let Err(error) = fs::create_dir(&path) {
                refused = Some(anyhow::Error::new(error).context(path.display().to_string()));
                continue;
            }
            let group = Group { path };
            // Where groups of another kind are mounted below, this is a plain folder, in which a
            // limit could be written and would limit nothing.
            if !group.door().exists() {
                refused = Some(anyhow::anyhow!("{folder} holds no groups"));
                continue;
            }
            match fs::write(group.path.join(file), bytes.to_string()) {
                Ok(()) => return Ok(group),
                Err(error) => refused = Some(anyhow::Error::new(error).context(file)),
            }
        }
        Err(refused.expect("two places were tried").context("no memory limit can be set"))
    }

    /// The file into which a process writes its number to join.
    pub(crate) fn door(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

/// Makes this process a member of the group behind `door`.
pub(crate) fn join(door: &Path) -> Result<()> {
    let id = process::id().to_string();
    fs::write(door, id).with_context(|| format!("join {}", door.display()))
}
