//! Files and directories on the disk in memory.

use super::map::{Maps, index};
use crate::env::PAGE_BYTES;
use crate::spans::Spans;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The sector size: a device stores a sector as a whole or not at all.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Identifies a file or directory, independently of its paths.
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
    /// Applies the change to `names`. A rename removes `from` only if it still leads to the node.
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

/// The current names in a directory, and the names that survive power loss for certain.
#[derive(Clone, Debug, Default)]
pub(super) struct DirNode {
    pub(super) names: BTreeMap<String, NodeId>,
    pub(super) synced: BTreeMap<String, NodeId>,
    /// The changes that lead from `synced` to `names`, oldest first, with their moments.
    pub(super) unsynced: Vec<(u64, Change)>,
}

impl DirNode {
    /// Makes `change` at the moment `at`.
    pub(super) fn make(&mut self, at: u64, change: Change) {
        change.apply(&mut self.names);
        self.unsynced.push((at, change));
    }

    pub(super) fn sync(&mut self) {
        self.synced.clone_from(&self.names);
        self.unsynced.clear();
    }

    /// Syncs the older half of the unsynced changes.
    pub(super) fn sync_half(&mut self) {
        for (_, change) in self.unsynced.drain(..self.unsynced.len().div_ceil(2)) {
            change.apply(&mut self.synced);
        }
    }

    /// Returns every node that has a name or that power loss may bring back.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let added = self.unsynced.iter().filter_map(|(_, change)| match change {
            Change::Add { node, .. } | Change::Rename { node, .. } => Some(*node),
            Change::Remove { .. } => None,
        });
        self.names.values().chain(self.synced.values()).copied().chain(added)
    }
}

/// A write or an append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Its end, as an offset in the file.
    pub(super) end: u64,
    /// Its moment.
    pub(super) at: u64,
}

/// A page whose space was freed.
#[derive(Clone, Debug)]
pub(super) struct Punched {
    pub(super) place: Range<u64>,
    /// The bytes before.
    pub(super) bytes: Vec<u8>,
    /// The moment of the punch.
    pub(super) at: u64,
}

/// A file before it was shortened.
#[derive(Clone, Debug)]
pub(super) struct BeforeCut {
    pub(super) file: FileNode,
    /// The moment of the cut.
    pub(super) at: u64,
}

/// The contents of a file.
#[derive(Clone, Debug)]
pub(super) struct FileNode {
    /// The first bytes; zeros follow up to `length`.
    pub(super) bytes: Arc<Vec<u8>>,
    /// The length in bytes. A log has its full length from the start.
    pub(super) length: u64,
    /// The number of bytes written or appended.
    pub(super) end: u64,
    /// The number of these that are synced.
    pub(super) synced: u64,
    /// The length that is synced.
    pub(super) synced_length: u64,
    /// The size of the parts that survive power loss as a whole, in bytes.
    pub(super) part_bytes: u64,
    /// The writes since the last sync, oldest first.
    pub(super) written: Vec<Written>,
    /// The ranges that no later sync makes durable, because a sync of them failed.
    pub(super) dropped: Vec<Range<u64>>,
    /// The punched parts: zeros that take no room.
    pub(super) holes: Spans,
    /// The holes that are synced.
    pub(super) synced_holes: Spans,
    /// The punched pages that are not synced, oldest first.
    pub(super) punched: Vec<Punched>,
    /// The file before it was shortened, until the cut is synced.
    pub(super) before_cut: Option<Box<BeforeCut>>,
    /// The maps of the file that are in use.
    pub(super) maps: Maps,
    /// The number of names that lead here.
    pub(super) links: usize,
    /// The number of open handles.
    pub(super) handles: usize,
}

impl FileNode {
    /// Creates an empty file that is written from start to end.
    pub(super) fn new_file() -> FileNode {
        FileNode {
            bytes: Arc::default(),
            length: 0,
            end: 0,
            synced: 0,
            synced_length: 0,
            // The size in which the system writes back.
            part_bytes: PAGE_BYTES,
            written: Vec::new(),
            dropped: Vec::new(),
            holes: Spans::default(),
            synced_holes: Spans::default(),
            punched: Vec::new(),
            before_cut: None,
            maps: Maps::default(),
            links: 0,
            handles: 0,
        }
    }

    /// Creates a log of `capacity` bytes.
    pub(super) fn new_log(capacity: u64) -> FileNode {
        FileNode { length: capacity, part_bytes: SECTOR_BYTES, ..FileNode::new_file() }
    }

    /// Returns true if the file has neither names nor handles, so that its space is free.
    pub(super) fn is_gone(&self) -> bool {
        self.links == 0 && self.handles == 0
    }

    /// Returns the room that the file takes, in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        self.length - self.holes.bytes_below(self.length)
    }

    /// Frees the room of the bytes in `range` at the moment `at`. They are zeros from now on.
    pub(super) fn punch(&mut self, range: Range<u64>, at: u64) -> io::Result<()> {
        let whole = [range.start, range.end].iter().all(|at| at.is_multiple_of(PAGE_BYTES));
        if !whole || range.is_empty() || range.end > self.length {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stored = Arc::make_mut(&mut self.bytes);
        for start in range.clone().step_by(PAGE_BYTES as usize) {
            let place = start..start + PAGE_BYTES;
            let end = index(place.end).min(stored.len());
            let page = stored.get_mut(index(start)..end).unwrap_or_default();
            self.punched.push(Punched { place, bytes: page.to_vec(), at });
            page.fill(0);
        }
        self.maps.punch(&range);
        self.holes.add(range);
        Ok(())
    }

    /// Stores `bytes` behind the bytes written before, at the moment `at`. The file grows if
    /// needed; a log has its full length from the start.
    pub(super) fn write(&mut self, bytes: &[u8], at: u64) {
        let start = self.end as usize;
        let stored = Arc::make_mut(&mut self.bytes);
        // Damage may have added bytes behind the written ones, or cut those off.
        stored.resize(start, 0);
        stored.extend_from_slice(bytes);
        self.end += bytes.len() as u64;
        self.length = self.length.max(self.end);
        self.written.push(Written { end: self.end, at });
    }

    /// Makes contents and length survive power loss.
    pub(super) fn sync(&mut self) {
        self.before_cut = None;
        self.punched.clear();
        self.synced_holes.clone_from(&self.holes);
        self.sync_data();
    }

    /// Makes the contents survive power loss, which may still undo a cut.
    pub(super) fn sync_data(&mut self) {
        if let Some(before) = &mut self.before_cut {
            before.file.sync_data();
        }
        self.synced = self.end;
        self.synced_length = self.length;
        self.written.clear();
    }

    /// Records that a sync failed for the bytes written behind the first `from` bytes, or only for
    /// their second half. Reads still return these bytes, but the device never stores them.
    pub(super) fn drop_unsynced(&mut self, from: u64, half: bool) {
        let middle = from + (self.end.saturating_sub(from)) / 2;
        let start = if half { middle / self.part_bytes * self.part_bytes } else { from };
        if start.max(from) < self.end {
            self.dropped.push(start.max(from)..self.end);
        }
    }

    /// Cuts a longer file to its first `bytes` bytes at the moment `at`.
    pub(super) fn shorten(&mut self, bytes: u64, at: u64) {
        if self.length <= bytes {
            return;
        }
        if self.before_cut.is_none() {
            self.before_cut = Some(Box::new(BeforeCut { file: self.clone(), at }));
        }
        self.truncate(bytes);
        self.end = self.end.min(bytes);
        self.synced = self.synced.min(bytes);
        self.written.iter_mut().for_each(|written| written.end = written.end.min(bytes));
        // What is written there from now on is new to the device.
        self.dropped.iter_mut().for_each(|dropped| dropped.end = dropped.end.min(bytes));
        self.dropped.retain(|dropped| dropped.start < dropped.end);
    }

    pub(super) fn is_log(&self) -> bool {
        self.part_bytes == SECTOR_BYTES
    }

    /// Returns the moment at which the unsynced byte in front of `end` was written.
    pub(super) fn written_at(&self, end: u64) -> u64 {
        let index = self.written.partition_point(|written| written.end < end);
        self.written.get(index).or(self.written.last()).map_or(0, |written| written.at)
    }

    /// Returns the writes since the last sync that ended in `part`, oldest first.
    pub(super) fn written_within(&self, part: &Range<u64>) -> &[Written] {
        let first = self.written.partition_point(|written| written.end < part.start);
        let last = self.written.partition_point(|written| written.end < part.end);
        &self.written[first..last.max(first)]
    }

    /// Returns the moment of the oldest change that is not synced.
    pub(super) fn first_unsynced(&self) -> Option<u64> {
        let written = self.written.first().map(|written| written.at);
        let punched = self.punched.first().map(|punched| punched.at);
        let cut = self.before_cut.as_ref().map(|before| {
            before.file.first_unsynced().map_or(before.at, |first| first.min(before.at))
        });
        written.into_iter().chain(punched).chain(cut).min()
    }

    /// Maps the file.
    pub(super) fn map(&mut self) -> Bytes {
        let stored = &self.bytes[..self.bytes.len().min(index(self.length))];
        self.maps.add(stored, index(self.length) - stored.len())
    }

    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.length);
        if end.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let stored = self.bytes.get(index(offset)..).unwrap_or_default();
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
        Arc::make_mut(&mut self.bytes).truncate(index(bytes));
    }

    /// Returns the unsynced parts of the file. The first one starts where the synced bytes end.
    pub(super) fn unsynced_parts(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let part_bytes = self.part_bytes;
        let end = self.end;
        let mut start = self.synced;
        std::iter::from_fn(move || {
            let part = start..((start / part_bytes + 1) * part_bytes).min(end);
            start = part.end;
            (!part.is_empty()).then_some(part)
        })
    }
}
