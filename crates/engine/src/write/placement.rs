//! Where tables with sequence numbers of their own belong in a tree.

use crate::version::TableHandle;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::ReadTable;
use lsmith_tree::{
    AddPlace, Addition, KeyRange, LevelId, MergePlan, Run, RunId, SeqNo, Tree, TreeEdit,
};
use std::path::PathBuf;
use std::sync::Arc;

/// A table that arrives, with the file that the caller named.
pub(crate) struct Arriving {
    pub(crate) file: PathBuf,
    pub(crate) table: Arc<TableHandle>,
    /// The merge with what is there, if one is needed.
    pub(super) merged: Option<MergedArrival>,
}

/// The outcome of the merge of an arriving table, whose plan is still reserved.
pub(super) struct MergedArrival {
    /// The plan without the arriving table.
    pub(super) reserved: MergePlan,
    pub(super) edit: TreeEdit,
    pub(super) tables: Vec<Arc<TableHandle>>,
}

impl MergedArrival {
    /// Returns the merge that is reserved, and has written nothing yet.
    pub(super) fn under_way(reserved: MergePlan) -> MergedArrival {
        MergedArrival { reserved, edit: TreeEdit::default(), tables: Vec::new() }
    }
}

/// What is to be done with an arriving table.
enum Fate {
    /// It becomes a run, or a part of one.
    Placed(Addition),
    /// It is merged with these runs, newest first, and the output goes into the last one.
    Merged(Vec<RunId>),
}

/// What is to be done with all arriving tables.
pub(super) enum Placement {
    /// Each is merged, or has its place.
    All(Vec<Addition>),
    /// The table at this index must be merged with these runs first.
    Merge(usize, Vec<RunId>),
}

impl Arriving {
    pub(crate) fn new(file: PathBuf, table: Arc<TableHandle>) -> Arriving {
        Arriving { file, table, merged: None }
    }

    pub(super) fn range(&self) -> &KeyRange {
        &self.table.table().tree_table().range
    }

    /// Returns the range deletes of the table, with their sequence numbers.
    pub(super) fn range_deletes(&self) -> &[(KeyRange, SeqNo)] {
        &self.table.table().facts().range_deletes
    }

    /// Returns the least and the greatest sequence number of the entries.
    pub(super) fn seqs(&self) -> (SeqNo, SeqNo) {
        let table = self.table.table().tree_table();
        (table.seq_min, table.seq_max)
    }
}

/// Decides what is to be done with the tables of `arriving` that are not merged yet.
///
/// # Errors
/// `InvalidArgument` if one cannot arrive in `tree`.
pub(super) fn placement(arriving: &[Arriving], tree: &Tree, resurrects: bool) -> Result<Placement> {
    let mut additions = Vec::new();
    for (index, arriving) in arriving.iter().enumerate() {
        if !resurrects {
            check_age(arriving, tree)?;
        }
        if arriving.merged.is_none() {
            match fate_of(arriving, tree)? {
                Fate::Placed(addition) => additions.push(addition),
                Fate::Merged(runs) => return Ok(Placement::Merge(index, runs)),
            }
        }
    }
    Ok(Placement::All(additions))
}

/// Fails if a dropped tombstone of `tree` could have hidden an entry of `arriving`, or if an
/// operand that was combined could have applied to one.
fn check_age(arriving: &Arriving, tree: &Tree) -> Result<()> {
    let (oldest, _) = arriving.seqs();
    let dropped = tree.dropped().below(arriving.range());
    if oldest >= dropped {
        return Ok(());
    }
    let message = format!(
        "the table has entries from number {oldest} on, and deletions up to number {dropped} were \
         dropped in its range, or operands combined: deleted keys could come back, and operands \
         apply too late; `allow_resurrect` accepts that"
    );
    Err(Error::new(ErrorKind::InvalidArgument, message).at(&arriving.file))
}

/// Decides what is to be done with `arriving` in `tree`.
///
/// # Errors
/// `InvalidArgument` if a table of the tree has entries without sequence numbers in the range.
fn fate_of(arriving: &Arriving, tree: &Tree) -> Result<Fate> {
    let range = arriving.range();
    let (oldest, newest) = arriving.seqs();
    let runs: Vec<&Arc<Run>> = tree.disk_runs().collect();
    // The runs that share keys with the table, newest first, as indexes, and their sequence
    // numbers.
    let mut shared = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let tables = run.overlapping(range).iter().map(|slice| slice.table());
        let Some((min, max)) = tables
            .map(|table| (table.seq_min, table.seq_max))
            .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
        else {
            continue;
        };
        if min == SeqNo(0) {
            let message = "the keyspace has entries in the range of the table whose numbers were \
                           forgotten: which is newer is unknown";
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&arriving.file));
        }
        shared.push((index, min, max));
    }
    let newer = shared.iter().take_while(|(_, min, _)| *min > newest).count();
    let tied = shared.iter().rposition(|(_, _, max)| *max >= oldest).map_or(0, |last| last + 1);
    if newer < tied {
        let members = shared[newer..tied].iter().map(|(index, ..)| runs[*index].id());
        return Ok(Fate::Merged(members.collect()));
    }
    let above = newer.checked_sub(1).map(|last| shared[last].0);
    let below = shared.get(newer).map(|(index, ..)| *index);
    Ok(match place_of(arriving, tree, &runs, above, below) {
        Some(addition) => Fate::Placed(addition),
        // It is older than everything, and no place is below the oldest run.
        None => Fate::Merged(vec![runs[runs.len() - 1].id()]),
    })
}

/// Returns the place of `arriving` below the run at index `above` and above the run at index
/// `below` of `runs`, all runs of `tree`. These two share keys with it, if they exist; the runs
/// between them do not. Returns `None` if there is no such place.
///
/// As deep as possible, so that no merge has to move the table on: within the oldest run between
/// the two that is not in level 0, or else as a run of its own.
fn place_of(
    arriving: &Arriving,
    tree: &Tree,
    runs: &[&Arc<Run>],
    above: Option<usize>,
    below: Option<usize>,
) -> Option<Addition> {
    let slices = vec![arriving.table.whole()];
    let between = above.map_or(0, |above| above + 1)..below.unwrap_or(runs.len());
    let deepest = between.rev().map(|index| runs[index]).next();
    if let Some(run) = deepest
        && tree.run(run.id()).is_some_and(|(level, _)| level > LevelId::Disk(0))
    {
        return Some(Addition { run: run.id(), place: AddPlace::Into, knot: None, slices });
    }
    let place = match (above, below) {
        (None, _) => AddPlace::Top(0),
        (Some(_), Some(below)) => AddPlace::Above(runs[below].id()),
        (Some(above), None) => AddPlace::Above(runs.get(above + 1)?.id()),
    };
    Some(Addition { run: tree.next_run(), place, knot: None, slices })
}
