//! What a name on the disk in memory leads to.

use crate::env::PAGE_BYTES;
use crate::spans::Spans;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What devices store as a whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Names a file or directory, whatever its paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) u64);

/// A file or a directory.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

/// A change of the names in one directory.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Add { name: String, node: NodeId },
    Remove { name: String },
    Rename { from: String, to: String, node: NodeId },
}

impl Change {
    /// Makes the change in `names`, as far as they let it.
    pub(super) fn apply(&self, names: &mut BTreeMap<String, NodeId>) {
        match self {
            Change::Add { name, node } => drop(names.insert(name.clone(), *node)),
            Change::Remove { name } => drop(names.remove(name)),
            Change::Rename { from, to, node } => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// The names in a directory, as they are and as they would be found.
#[derive(Clone, Debug, Default)]
pub(super) struct DirNode {
    pub(super) names: BTreeMap<String, NodeId>,
    pub(super) synced: BTreeMap<String, NodeId>,
    /// What leads from `synced` to `names`, oldest first.
    pub(super) unsynced: Vec<Change>,
}

impl DirNode {
    pub(super) fn make(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.synced.clone_from(&self.names);
        self.unsynced.clear();
    }

    /// Every node that is there or may still be found after power loss.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let added = self.unsynced.iter().filter_map(|change| match change {
            Change::Add { node, .. } | Change::Rename { node, .. } => Some(*node),
            Change::Remove { .. } => None,
        });
        self.names.values().chain(self.synced.values()).copied().chain(added)
    }
}

/// The contents of a file.
#[derive(Clone, Debug)]
pub(super) struct FileNode {
    /// The first bytes; zeros follow up to `length`.
    pub(super) bytes: Arc<Vec<u8>>,
    /// In bytes. A log has its full length from the start.
    pub(super) length: u64,
    /// How many bytes were written or appended.
    pub(super) end: u64,
    /// How many of these are synced.
    pub(super) synced: u64,
    /// The length that is synced.
    pub(super) synced_length: u64,
    /// The bytes that survive power loss together.
    pub(super) part_bytes: u64,
    /// Where the appends since the last sync ended, ascending. Logs only.
    pub(super) append_ends: Vec<u64>,
    /// What was given back of it, as zeros that take no room.
    pub(super) holes: Spans,
    /// The file before it was shortened, until that is synced.
    pub(super) before_cut: Option<Box<FileNode>>,
    /// How many names lead here.
    pub(super) links: usize,
    /// How many open files do.
    pub(super) handles: usize,
}

impl FileNode {
    /// A new file to be written from start to end.
    pub(super) fn written() -> FileNode {
        FileNode {
            bytes: Arc::default(),
            length: 0,
            end: 0,
            synced: 0,
            synced_length: 0,
            // What the system writes back at a time.
            part_bytes: PAGE_BYTES,
            append_ends: Vec::new(),
            holes: Spans::default(),
            before_cut: None,
            links: 0,
            handles: 0,
        }
    }

    /// A new log of `capacity` bytes.
    pub(super) fn log(capacity: u64) -> FileNode {
        FileNode { length: capacity, part_bytes: SECTOR_BYTES, ..FileNode::written() }
    }

    /// Whether nothing leads here: the space is free then.
    pub(super) fn is_gone(&self) -> bool {
        self.links == 0 && self.handles == 0
    }

    /// The room that the file takes.
    pub(super) fn held_bytes(&self) -> u64 {
        self.length - self.holes.bytes_below(self.length)
    }

    /// Gives back the room of the bytes in `range`, which are zeros from now on.
    pub(super) fn punch(&mut self, range: Range<u64>) -> io::Result<()> {
        let whole = [range.start, range.end].iter().all(|at| at.is_multiple_of(PAGE_BYTES));
        if !whole || range.is_empty() || range.end > self.length {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stored = Arc::make_mut(&mut self.bytes);
        let end = (range.end as usize).min(stored.len());
        if let Some(stored) = stored.get_mut(range.start as usize..end) {
            stored.fill(0);
        }
        self.holes.add(range);
        Ok(())
    }

    /// Stores `bytes` behind what was written before, in a file that grows.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.length = self.length.max(self.end);
    }

    /// Stores `bytes` behind what was appended before, in a log.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.append_ends.push(self.end);
    }

    fn put(&mut self, bytes: &[u8]) {
        let start = self.end as usize;
        let stored = Arc::make_mut(&mut self.bytes);
        // Damage may have put bytes where nothing was written yet, or cut what was.
        stored.resize(start, 0);
        stored.extend_from_slice(bytes);
        self.end += bytes.len() as u64;
    }

    /// Makes contents and length survive.
    pub(super) fn sync(&mut self) {
        self.before_cut = None;
        self.sync_data();
    }

    /// Makes the contents survive; power loss may still undo that the file was shortened.
    pub(super) fn sync_data(&mut self) {
        if let Some(before) = &mut self.before_cut {
            before.sync_data();
        }
        self.synced = self.end;
        self.synced_length = self.length;
        self.append_ends.clear();
    }

    /// Leaves the first `bytes` bytes of a file that is longer.
    pub(super) fn shorten(&mut self, bytes: u64) {
        if self.length <= bytes {
            return;
        }
        if self.before_cut.is_none() {
            self.before_cut = Some(Box::new(self.clone()));
        }
        self.truncate(bytes);
        self.end = self.end.min(bytes);
        self.synced = self.synced.min(bytes);
        self.append_ends.retain(|end| *end <= bytes);
    }

    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.length);
        if end.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let stored = self.bytes.get(offset as usize..).unwrap_or_default();
        let (front, zeros) = buffer.split_at_mut(stored.len().min(buffer.len()));
        front.copy_from_slice(&stored[..front.len()]);
        zeros.fill(0);
        Ok(())
    }

    pub(super) fn flip(&mut self, offset: u64, mask: u8) -> io::Result<()> {
        if offset >= self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let at = offset as usize;
        let stored = Arc::make_mut(&mut self.bytes);
        if stored.len() <= at {
            stored.resize(at + 1, 0);
        }
        stored[at] ^= mask;
        Ok(())
    }

    pub(super) fn truncate(&mut self, bytes: u64) {
        self.length = self.length.min(bytes);
        self.synced_length = self.synced_length.min(bytes);
        Arc::make_mut(&mut self.bytes).truncate(bytes as usize);
    }

    /// The parts of the file that are not synced, each as far as it is not.
    pub(super) fn unsynced_parts(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (part_bytes, end) = (self.part_bytes, self.end);
        let mut start = self.synced;
        std::iter::from_fn(move || {
            let part = start..((start / part_bytes + 1) * part_bytes).min(end);
            start = part.end;
            (!part.is_empty()).then_some(part)
        })
    }
}
