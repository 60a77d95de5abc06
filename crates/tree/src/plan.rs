//! Merge plans: what a policy says.

use crate::cuts::{Cuts, Overlap};
use crate::key::Key;
use crate::memo::MemoChange;
use crate::range::KeyRange;
use crate::run::RunId;
use crate::tree::Tree;
use std::fmt;

/// One input of a plan: the part of a run that lies in a key range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The run to take from.
    pub run: RunId,
    /// The keys to take.
    pub range: KeyRange,
}

impl Input {
    /// Returns all keys of `run`.
    pub fn all(run: RunId) -> Input {
        Input { run, range: KeyRange::ALL }
    }
}

/// Where the output of a plan goes. A place names a neighbour, never a position, because other
/// merges change positions in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A new run that replaces the oldest input.
    Oldest,
    /// A new run, the newest of this level on storage.
    NewRun(usize),
    /// The same, of append tables.
    NewAppend(usize),
    /// The named run takes the output in, between the slices that stay.
    Into(RunId),
    /// The append tables of the named run take the output in.
    ///
    /// If the plan has other inputs than that run, their entries are appended to the tables that
    /// the plan takes from it. Those between two of these tables, or beyond them, go to new tables
    /// if they fill [one part in so many](MergePlan::NEW_APPEND_PARTS) of a table by the cut rule.
    /// Otherwise they go to the table in front of them, or else to the first. New roots replace the
    /// old ones, and nothing else is written.
    ///
    /// If the plan has no other inputs, what it takes is written as new append tables.
    ///
    /// New tables end where [`ends_append`](MergePlan::ends_append) says so.
    Append(RunId),
}

/// How the output is produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By merging entries and writing them.
    Merge,
    /// By relabelling slices. Only the manifest is written.
    Move,
    /// There is none: the entries of the input are gone, and nothing is read. Range deletes must
    /// hide them, or no older entry of their keys may be in the tree, because it would come back.
    Drop,
}

/// The rules of a block-preserving merge. It keeps pieces of inputs where no other input has keys,
/// and joins neighbouring blocks that fit into one ([`blocks`](crate::blocks)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// The least logical bytes of a piece that is kept; `u64::MAX` to keep none.
    pub piece_bytes: u64,
    /// Logical bytes of a full block of these entries. The difference to a block's bytes is its
    /// empty room.
    pub full_bytes: u64,
    /// The empty room that this merge may add, in logical bytes: the slack of Thonangi & Yang,
    /// section II-B. `None` for no limit.
    pub slack_bytes: Option<u64>,
}

/// Why a policy proposes a plan: a sentence with up to three numbers, formatted only when it is
/// printed.
#[derive(Clone, Debug)]
pub struct Reason {
    text: std::borrow::Cow<'static, str>,
    numbers: [u64; 3],
}

impl Reason {
    /// Returns a reason in which each `{}` of `text` stands for one of `numbers`, in order.
    pub const fn new(text: &'static str, numbers: [u64; 3]) -> Reason {
        Reason { text: std::borrow::Cow::Borrowed(text), numbers }
    }

    /// Returns a reason read from text.
    pub fn read(text: &str) -> Reason {
        Reason { text: std::borrow::Cow::Owned(text.to_string()), numbers: [0; 3] }
    }

    /// Returns the sentence with `{}` in the place of each number: the same for all plans that the
    /// same rule proposed.
    pub fn rule(&self) -> &str {
        &self.text
    }

    /// Returns the sentence, with `{}` for each number, and these numbers in order.
    pub fn parts(&self) -> (&str, &[u64]) {
        let count = self.text.matches("{}").count();
        (&self.text, &self.numbers[..count.min(self.numbers.len())])
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.numbers.iter();
        for (index, part) in self.text.split("{}").enumerate() {
            if index > 0 {
                write!(f, "{}", numbers.next().copied().unwrap_or(0))?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Reason) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Reason {}

/// What a policy decides: the inputs to merge, and where the output goes. A plain value.
///
/// A plan does not say which tombstones and old versions are dropped.
/// [`Tree::is_bottom_for`](crate::Tree::is_bottom_for) and the live snapshots decide that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// The inputs, newest run first.
    pub inputs: Vec<Input>,
    /// Where the output goes.
    pub place: Place,
    /// Merge or move.
    pub mode: Mode,
    /// Logical bytes at which a table of the output is cut, between keys; `None` for a single
    /// table.
    pub cut_bytes: Option<u64>,
    /// Where tables of the output are cut besides. Merges that keep blocks are not cut so.
    pub cuts: Cuts,
    /// The rules of a merge that keeps blocks; `None` to rewrite everything.
    pub reuse: Option<Reuse>,
    /// Changes of the memo, applied when the plan commits.
    pub memo: Vec<MemoChange>,
    /// Why.
    pub reason: Reason,
}

impl MergePlan {
    /// A plan that [appends](Place::Append) makes a new table between the old ones for at least one
    /// part in this many of a table.
    pub const NEW_APPEND_PARTS: u64 = 32;

    /// Returns true if a new append table of `bytes` ends in front of a key, whose newest
    /// version has `next` bytes, if tables are cut at `cut_bytes`: when it has so many bytes, or
    /// would have twice as many with the key. So entries of at least twice `cut_bytes` with two
    /// keys always become several tables.
    #[inline]
    pub fn ends_append(bytes: u64, next: u64, cut_bytes: u64) -> bool {
        let is_long = bytes.saturating_add(next) >= cut_bytes.saturating_mul(2);
        bytes > 0 && (bytes >= cut_bytes || is_long)
    }

    /// Returns a plan that merges all of `runs`, newest first, into one table at `place`.
    pub fn merge(runs: impl IntoIterator<Item = RunId>, place: Place, reason: Reason) -> MergePlan {
        MergePlan {
            inputs: runs.into_iter().map(Input::all).collect(),
            place,
            mode: Mode::Merge,
            cut_bytes: None,
            cuts: Cuts::default(),
            reuse: None,
            memo: Vec::new(),
            reason,
        }
    }

    /// Returns the plan that flushes the oldest memtable to level 0, or `None` if no memtable
    /// waits. Every interpreter carries it out if the policy has no plan.
    pub fn flush(tree: &Tree) -> Option<MergePlan> {
        let oldest = tree.memory().runs().last()?.id();
        let reason = Reason::new("a sealed memtable waits for room", [0; 3]);
        Some(MergePlan::merge([oldest], Place::NewRun(0), reason))
    }

    /// Returns the plan that drops the part of `run` in `range` unread.
    pub fn drop(run: RunId, range: KeyRange, reason: Reason) -> MergePlan {
        MergePlan {
            inputs: vec![Input { run, range }],
            mode: Mode::Drop,
            ..MergePlan::merge([], Place::Into(run), reason)
        }
    }

    /// Returns the least range that covers the ranges of all inputs.
    pub fn hull(&self) -> KeyRange {
        if self.inputs.iter().any(|input| input.range.is_all()) {
            return KeyRange::ALL;
        }
        let nothing = KeyRange { start: Key::new(), end: Some(Key::new()) };
        self.inputs.iter().fold(nothing, |hull, input| hull.hull(&input.range))
    }

    /// Returns the run whose append tables get new entries, if there is one.
    pub fn appends_to(&self) -> Option<RunId> {
        match self.place {
            Place::Append(run) if self.inputs.iter().any(|input| input.run != run) => Some(run),
            _ => None,
        }
    }

    /// Returns true if new tables of the output are append-only.
    pub fn makes_append(&self) -> bool {
        matches!(self.place, Place::Append(_) | Place::NewAppend(_))
    }

    /// Returns true if `run` is an input.
    pub fn takes(&self, run: RunId) -> bool {
        self.inputs.iter().any(|input| input.run == run)
    }

    /// Returns the keys at which the output is cut whatever the size of its tables, in order: the
    /// keys of the plan, and the borders of the run that the plan names.
    pub fn cut_keys(&self, tree: &Tree) -> Vec<Key> {
        let mut keys = self.cuts.keys.clone();
        if let Some(Overlap { run, bytes }) = self.cuts.overlap
            && let Some((_, run)) = tree.run(run)
        {
            let mut met = 0_u64;
            for slice in run.overlapping(&self.hull()) {
                let more = slice.size().bytes;
                if met > 0 && met.saturating_add(more) > bytes {
                    keys.push(slice.range().start.clone());
                    met = 0;
                }
                met = met.saturating_add(more);
            }
            keys.sort();
            keys.dedup();
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_overlap_at_most_so_much_of_a_run() {
        let tree: Tree = "tree\nL0 r1[t1:a..z 9MB]\n\
             L1 r2[t2:a..c 1MB, t3:d..f 1MB, t4:g..i 5MB, t5:k..m 1MB, t6:n..p 1MB, t7:y..z 1MB]"
            .parse()
            .expect("a tree");
        let keys = |text: &str| {
            let plan: MergePlan = text.parse().expect(text);
            assert_eq!(plan.to_string(), text);
            let keys = plan.cut_keys(&tree);
            keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<String>()
        };
        assert_eq!(keys("merge r1 over a..z in place cut 1MB at e at h within 2MB of r2"), "eghky");
        assert_eq!(keys("merge r1 over b..o in place within 3MB of r2"), "gk");
        assert_eq!(keys("merge r1 over a..z in place within 1MB of r9"), "");
    }
}
