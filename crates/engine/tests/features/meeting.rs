//! A disk of a reader on which the writer acts between two looks of the reader.

use lsmith::env::{Env, LogFile, MemEnv, ReadFile, WriteFile};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What happens, and how many looks at the disk come before it.
type Act = (usize, Box<dyn FnOnce() + Send>);

/// A disk. Something may happen after one of the next looks at it.
#[derive(Clone)]
pub(crate) struct Meeting {
    disk: MemEnv,
    next: Arc<Mutex<Option<Act>>>,
}

impl Meeting {
    pub(crate) fn new(disk: MemEnv) -> Meeting {
        Meeting { disk, next: Arc::default() }
    }

    /// Has `act` done after `looks` more looks at the disk, and one more.
    pub(crate) fn after(&self, looks: usize, act: impl FnOnce() + Send + 'static) {
        *self.next.lock().unwrap() = Some((looks, Box::new(act)));
    }

    /// Takes back what has not happened yet. Returns true if there was something.
    pub(crate) fn call_off(&self) -> bool {
        self.next.lock().unwrap().take().is_some()
    }

    fn look(&self) {
        let mut next = self.next.lock().unwrap();
        let act = match next.take() {
            Some((0, act)) => act,
            Some((looks, act)) => return *next = Some((looks - 1, act)),
            None => return,
        };
        drop(next);
        act();
    }
}

impl std::fmt::Debug for Meeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Meeting").field(&self.disk).finish()
    }
}

impl Env for Meeting {
    left_to_the_disk!(but list);

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.disk.list(dir);
        self.look();
        names
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.disk.open(path);
        self.look();
        file
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.disk.create(path)
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.disk.create_log(path, capacity)
    }

    fn now(&self) -> std::time::Duration {
        self.disk.now()
    }
}
