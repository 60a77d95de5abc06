//! Merge plans: what a policy says.

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
    /// All keys of `run`.
    pub fn all(run: RunId) -> Input {
        Input { run, range: KeyRange::ALL }
    }
}

/// Where the output goes. Places name neighbours, never positions, because other merges change
/// positions meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A new run in the place of the oldest input.
    Oldest,
    /// A new run, the newest of this level on storage.
    NewRun(usize),
    /// Rewritten into the named run, between the slices of it that stay.
    Into(RunId),
    /// Appended to the append-only tables of the named run: each entry to the slice that holds its
    /// key, beyond the last slice to new tables by the cut rule. Where the run holds keys of the
    /// plan it is an input too: its old roots go, new ones come.
    Append(RunId),
}

/// How the output comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By merging entries and writing them.
    Merge,
    /// By relabelling slices; nothing is read or written but the manifest.
    Move,
}

/// A merge that minds the blocks that it leaves: it keeps pieces of inputs as they are where no
/// other input has keys, and joins neighbouring blocks that fit into one
/// ([`blocks`](crate::blocks)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Least logical bytes of a piece that is kept; `u64::MAX` to keep none.
    pub piece_bytes: u64,
    /// Logical bytes of a full block of these entries: what is missing from it is empty room.
    pub full_bytes: u64,
    /// What this merge adds to the allowance of empty room, in logical bytes, that kept pieces may
    /// leave in the blocks beside them (the slack of Thonangi & Yang, section II-B); `None` for
    /// no limit.
    pub slack_bytes: Option<u64>,
}

/// Why a policy proposes a plan: a sentence with up to three numbers, put together only when
/// somebody reads it.
#[derive(Clone, Debug)]
pub struct Reason {
    text: std::borrow::Cow<'static, str>,
    numbers: [u64; 3],
}

impl Reason {
    /// `text` with each `{}` in turn standing for a number.
    pub const fn new(text: &'static str, numbers: [u64; 3]) -> Reason {
        Reason { text: std::borrow::Cow::Borrowed(text), numbers }
    }

    /// A reason read from text.
    pub fn read(text: &str) -> Reason {
        Reason { text: std::borrow::Cow::Owned(text.to_string()), numbers: [0; 3] }
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

/// What a policy says: merge these inputs, put the output there. A plain value.
///
/// What a plan does not say, because it is derived: which tombstones and old versions may go
/// ([`Tree::is_bottom_for`](crate::Tree::is_bottom_for) and the live snapshots decide).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// What to take, newest run first.
    pub inputs: Vec<Input>,
    /// Where the output goes.
    pub place: Place,
    /// Merge or move.
    pub mode: Mode,
    /// Logical bytes after which the next table of the output begins, cut between keys; `None` for
    /// one table whatever its size.
    pub cut_bytes: Option<u64>,
    /// Whether pieces of inputs may be kept and blocks joined; `None` to write all anew.
    pub reuse: Option<Reuse>,
    /// Changes of the memo, made when the plan commits.
    pub memo: Vec<MemoChange>,
    /// Why.
    pub reason: Reason,
}

impl MergePlan {
    /// A plan that merges all of `runs`, newest first, into one table at `place`.
    pub fn merge(runs: impl IntoIterator<Item = RunId>, place: Place, reason: Reason) -> MergePlan {
        MergePlan {
            inputs: runs.into_iter().map(Input::all).collect(),
            place,
            mode: Mode::Merge,
            cut_bytes: None,
            reuse: None,
            memo: Vec::new(),
            reason,
        }
    }

    /// The plan that every interpreter carries out by itself when a sealed memtable waits and the
    /// policy has no plan: the oldest memtable becomes the newest run of level 0.
    pub fn flush(tree: &Tree) -> Option<MergePlan> {
        let oldest = tree.memory().runs().last()?.id();
        let reason = Reason::new("a sealed memtable waits for room", [0; 3]);
        Some(MergePlan::merge([oldest], Place::NewRun(0), reason))
    }

    /// The least range that covers what all inputs take.
    pub fn hull(&self) -> KeyRange {
        if self.inputs.iter().any(|input| input.range.is_all()) {
            return KeyRange::ALL;
        }
        let nothing = KeyRange { start: Key::new(), end: Some(Key::new()) };
        self.inputs.iter().fold(nothing, |hull, input| hull.hull(&input.range))
    }

    /// Whether `run` is an input.
    pub fn takes(&self, run: RunId) -> bool {
        self.inputs.iter().any(|input| input.run == run)
    }
}
