//! The disk in memory: names, nodes and room.

use super::node::{Change, DirNode, FileNode, Node, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use xxhash_rust::xxh3::xxh3_128;

/// The root directory.
pub(super) const ROOT: NodeId = NodeId(0);

/// All nodes of one disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) nodes: BTreeMap<NodeId, Node>,
    next: NodeId,
    used: u64,
    pub(super) capacity: u64,
    /// The directories and files that are locked.
    locks: BTreeSet<NodeId>,
    /// The number of changes so far.
    pub(super) clock: u64,
    /// The number of random numbers that were drawn.
    pub(super) drawn: u64,
}

fn error(kind: ErrorKind, path: &Path) -> io::Error {
    io::Error::new(kind, format!("{kind}: {}", path.display()))
}

/// Returns the names that lead from the root to `path`.
fn names_on(path: &Path) -> io::Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                names.push(name.to_str().ok_or_else(|| error(ErrorKind::InvalidInput, path))?);
            }
            Component::ParentDir | Component::Prefix(_) => {
                return Err(error(ErrorKind::InvalidInput, path));
            }
        }
    }
    Ok(names)
}

impl Disk {
    pub(super) fn new(capacity: u64) -> Disk {
        Disk {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            next: NodeId(1),
            used: 0,
            capacity,
            locks: BTreeSet::new(),
            clock: 0,
            drawn: 0,
        }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// Returns the moment of the next change.
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Returns a number that looks random.
    pub(super) fn random(&mut self) -> u128 {
        self.drawn += 1;
        xxh3_128(&self.drawn.to_le_bytes())
    }

    /// Makes `change` in the names of the directory `dir`.
    fn change_names(&mut self, dir: NodeId, change: Change) {
        let at = self.tick();
        self.dir_mut(dir).make(at, change);
    }

    /// Adds `node` to the disk. No name leads to it yet.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        if let Node::File(file) = &node {
            self.used += file.held_bytes();
        }
        let id = self.next;
        self.next.0 += 1;
        self.nodes.insert(id, node);
        id
    }

    pub(super) fn file(&self, id: NodeId) -> &FileNode {
        match self.nodes.get(&id) {
            Some(Node::File(file)) => file,
            _ => unreachable!("a handle keeps its file on the disk"),
        }
    }

    pub(super) fn file_mut(&mut self, id: NodeId) -> &mut FileNode {
        match self.nodes.get_mut(&id) {
            Some(Node::File(file)) => file,
            _ => unreachable!("a handle keeps its file on the disk"),
        }
    }

    pub(super) fn dir_mut(&mut self, id: NodeId) -> &mut DirNode {
        match self.nodes.get_mut(&id) {
            Some(Node::Dir(dir)) => dir,
            _ => unreachable!("directories are found before they are changed"),
        }
    }

    fn find(&self, path: &Path) -> io::Result<NodeId> {
        let mut at = ROOT;
        for name in names_on(path)? {
            let Some(Node::Dir(dir)) = self.nodes.get(&at) else {
                return Err(error(ErrorKind::NotADirectory, path));
            };
            at = *dir.names.get(name).ok_or_else(|| error(ErrorKind::NotFound, path))?;
        }
        Ok(at)
    }

    pub(super) fn find_dir(&self, path: &Path) -> io::Result<NodeId> {
        let id = self.find(path)?;
        match self.nodes.get(&id) {
            Some(Node::Dir(_)) => Ok(id),
            _ => Err(error(ErrorKind::NotADirectory, path)),
        }
    }

    pub(super) fn find_file(&self, path: &Path) -> io::Result<NodeId> {
        let id = self.find(path)?;
        match self.nodes.get(&id) {
            Some(Node::File(_)) => Ok(id),
            _ => Err(error(ErrorKind::IsADirectory, path)),
        }
    }

    /// Returns the directory of `path`, and the last name of `path`.
    fn split(&self, path: &Path) -> io::Result<(NodeId, String)> {
        let name = names_on(path)?.pop().ok_or_else(|| error(ErrorKind::InvalidInput, path))?;
        let dir = self.find_dir(path.parent().unwrap_or(Path::new("/")))?;
        Ok((dir, name.to_owned()))
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.nodes.get(&self.find(dir)?) {
            Some(Node::Dir(dir)) => Ok(dir.names.keys().cloned().collect()),
            _ => Err(error(ErrorKind::NotADirectory, dir)),
        }
    }

    pub(super) fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        let mut at = ROOT;
        for name in names_on(dir)? {
            at = match self.dir_mut(at).names.get(name).copied() {
                Some(id) if matches!(self.nodes.get(&id), Some(Node::Dir(_))) => id,
                Some(_) => return Err(error(ErrorKind::AlreadyExists, dir)),
                None => {
                    let node = self.add(Node::Dir(DirNode::default()));
                    self.change_names(at, Change::Add { name: name.to_owned(), node });
                    node
                }
            };
        }
        Ok(())
    }

    /// Creates `file` at `path` and opens it.
    pub(super) fn create(&mut self, path: &Path, file: FileNode) -> io::Result<NodeId> {
        let (dir, name) = self.split(path)?;
        if self.dir_mut(dir).names.contains_key(&name) {
            return Err(error(ErrorKind::AlreadyExists, path));
        }
        if self.free_bytes() < file.length {
            return Err(error(ErrorKind::StorageFull, path));
        }
        let node = self.add(Node::File(FileNode { links: 1, handles: 1, ..file }));
        self.change_names(dir, Change::Add { name, node });
        Ok(node)
    }

    pub(super) fn open(&mut self, path: &Path) -> io::Result<NodeId> {
        let id = self.find_file(path)?;
        self.file_mut(id).handles += 1;
        Ok(id)
    }

    pub(super) fn close(&mut self, id: NodeId) {
        self.file_mut(id).handles -= 1;
        self.free_if_gone(id);
    }

    fn unlink(&mut self, id: NodeId) {
        self.file_mut(id).links -= 1;
        self.free_if_gone(id);
    }

    /// Frees the room of a file without names and handles. Its bytes stay as long as power loss
    /// could bring it back.
    fn free_if_gone(&mut self, id: NodeId) {
        let file = self.file(id);
        if file.is_gone() {
            self.used -= file.held_bytes();
        }
    }

    /// Writes as much of `bytes` as there is room for. Fails if that is not all.
    pub(super) fn write(&mut self, id: NodeId, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.free_bytes()).unwrap_or(usize::MAX).min(bytes.len());
        let at = self.tick();
        let file = self.file_mut(id);
        let before = file.length;
        file.write(&bytes[..room], at);
        let grown = file.length - before;
        self.used += grown;
        if room < bytes.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Appends `bytes` to a log that has room for them.
    pub(super) fn append(&mut self, id: NodeId, bytes: &[u8]) {
        let at = self.tick();
        self.file_mut(id).write(bytes, at);
    }

    /// Changes the contents of the file at `path` by something other than a write. `change`
    /// receives the moment of the change.
    pub(super) fn change(
        &mut self,
        path: &Path,
        change: impl FnOnce(&mut FileNode, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let id = self.find_file(path)?;
        self.change_open(id, change)
    }

    /// Like [`change`](Disk::change), for the open file `id`.
    pub(super) fn change_open(
        &mut self,
        id: NodeId,
        change: impl FnOnce(&mut FileNode, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let at = self.tick();
        let file = self.file_mut(id);
        let before = file.held_bytes();
        let result = change(file, at);
        let after = file.held_bytes();
        self.used = self.used - before + after;
        result
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find_file(path)?;
        let (dir, name) = self.split(path)?;
        self.change_names(dir, Change::Remove { name });
        self.unlink(id);
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find_dir(path)?;
        let (dir, name) = self.split(path)?;
        if !self.dir_mut(id).names.is_empty() {
            return Err(error(ErrorKind::DirectoryNotEmpty, path));
        }
        self.change_names(dir, Change::Remove { name });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find_file(from)?;
        let (from_dir, from_name) = self.split(from)?;
        let (to_dir, to_name) = self.split(to)?;
        if (from_dir, &from_name) == (to_dir, &to_name) {
            return Ok(());
        }
        let replaced = match self.find_file(to) {
            Ok(id) => Some(id),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if from_dir == to_dir {
            let rename = Change::Rename { from: from_name, to: to_name, node };
            self.change_names(from_dir, rename);
        } else {
            self.change_names(to_dir, Change::Add { name: to_name, node });
            self.change_names(from_dir, Change::Remove { name: from_name });
        }
        if let Some(id) = replaced {
            self.unlink(id);
        }
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find_file(from)?;
        let (dir, name) = self.split(to)?;
        if self.dir_mut(dir).names.contains_key(&name) {
            return Err(error(ErrorKind::AlreadyExists, to));
        }
        self.file_mut(node).links += 1;
        self.change_names(dir, Change::Add { name, node });
        Ok(())
    }

    /// Syncs the names in `dir`, and frees the nodes that can never be found again.
    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let id = self.find_dir(dir)?;
        self.dir_mut(id).sync();
        self.sweep();
        Ok(())
    }

    fn sweep(&mut self) {
        let mut named = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Dir(dir) = node {
                named.extend(dir.nodes());
            }
        }
        self.nodes.retain(|id, node| {
            named.contains(id) || matches!(node, Node::File(file) if !file.is_gone())
        });
    }

    /// Syncs the older half of the unsynced changes of names in `dir`.
    pub(super) fn sync_half_dir(&mut self, dir: &Path) -> io::Result<()> {
        let id = self.find_dir(dir)?;
        self.dir_mut(id).sync_half();
        Ok(())
    }

    /// Takes the lock of `dir`, and creates its lock file `name` if it is missing. Returns both.
    pub(super) fn lock(&mut self, dir: &Path, name: &str) -> io::Result<(NodeId, NodeId)> {
        let id = self.find_dir(dir)?;
        if !self.locks.insert(id) {
            return Err(error(ErrorKind::WouldBlock, dir));
        }
        if let Some(file) = self.dir_mut(id).names.get(name) {
            return Ok((id, *file));
        }
        let node = self.add(Node::File(FileNode { links: 1, ..FileNode::new_file() }));
        self.change_names(id, Change::Add { name: name.to_owned(), node });
        Ok((id, node))
    }

    /// Takes the lock of the file at `path`, and creates it if it is missing.
    pub(super) fn lock_file(&mut self, path: &Path) -> io::Result<NodeId> {
        let id = match self.find_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let id = self.create(path, FileNode::new_file())?;
                self.close(id);
                id
            }
            found => found?,
        };
        if !self.locks.insert(id) {
            return Err(error(ErrorKind::WouldBlock, path));
        }
        Ok(id)
    }

    pub(super) fn unlock(&mut self, node: NodeId) {
        self.locks.remove(&node);
    }

    /// Returns the disk without locks and open files, whose process has ended.
    pub(super) fn after_process_death(&self) -> Disk {
        let mut disk = self.clone();
        disk.locks.clear();
        let mut freed = 0;
        for node in disk.nodes.values_mut() {
            if let Node::File(file) = node
                && !file.is_gone()
            {
                file.handles = 0;
                freed += if file.is_gone() { file.held_bytes() } else { 0 };
            }
        }
        disk.used -= freed;
        disk
    }
}
