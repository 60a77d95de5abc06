//! Parses the text form.

use super::scan::{Result, Scanner, TextError};
use crate::cuts::{Cuts, Overlap};
use crate::edit::{AddPlace, Addition, TreeEdit};
use crate::entry::SeqNo;
use crate::key::Key;
use crate::level::Counters;
use crate::memo::MemoChange;
use crate::plan::{Input, MergePlan, Mode, Place, Reason, Reuse};
use crate::profile::ProfilePoint;
use crate::range::KeyRange;
use crate::range_deletes::Readers;
use crate::reads::Reads;
use crate::run::{KnotId, Run, RunId};
use crate::size::Size;
use crate::slice::{Slice, Table, TableId};
use crate::tree::{LEVELS_MAX, Tree};
use crate::view::{Reservation, ReservationState, TreeView};
use std::str::FromStr;
use std::sync::Arc;

/// Reads a key printed by [`display_key`](super::display_key).
pub fn parse_key(text: &str) -> Result<Key> {
    let mut line = Scanner::lines(text).next().ok_or_else(|| empty("a key"))?;
    let key = line.key()?.ok_or_else(|| line.expected("a key"))?;
    line.finish().map(|()| key)
}

impl FromStr for KeyRange {
    type Err = TextError;

    fn from_str(text: &str) -> Result<KeyRange> {
        let mut line = Scanner::lines(text).next().ok_or_else(|| empty("a range"))?;
        let range = line.range()?;
        line.finish().map(|()| range)
    }
}

impl FromStr for Tree {
    type Err = TextError;

    /// Reads a tree. Names may be left out of its first line: they are then counted.
    fn from_str(text: &str) -> Result<Tree> {
        let mut tree = Tree::new();
        for (index, mut line) in Scanner::lines(text).enumerate() {
            match index {
                0 => tree_head(&mut line, &mut tree)?,
                _ if tree_line(&mut line, &mut tree)? => {}
                _ => return Err(line.expected("a level, `count`, `dropped`, `erased` or `note`")),
            }
            line.finish()?;
        }
        tree.count_names();
        Ok(tree)
    }
}

fn tree_head(line: &mut Scanner<'_>, tree: &mut Tree) -> Result<()> {
    line.want("tree")?;
    while !line.is_done() {
        if line.eat_word("runs") {
            tree.next_run = line.integer("a number of runs")?;
        } else if line.eat_word("tables") {
            tree.next_table = line.integer("a number of tables")?;
        } else if line.eat_word("reads") {
            tree.reads = reads(line)?;
        } else {
            let flushes = &mut tree.flushes;
            let flushed = &mut tree.flushed;
            let mut dropped_below = SeqNo(0);
            history(line, flushes, flushed, &mut dropped_below)?;
            tree.dropped.raise(&KeyRange::ALL, dropped_below);
        }
    }
    Ok(())
}

fn reads(line: &mut Scanner<'_>) -> Result<Reads> {
    let mut reads = Reads::default();
    for (name, sum) in reads.fields() {
        *sum = line.integer(name)?;
    }
    Ok(reads)
}

fn history(
    line: &mut Scanner<'_>,
    flushes: &mut u64,
    flushed: &mut Size,
    dropped_below: &mut SeqNo,
) -> Result<()> {
    if line.eat_word("flushes") {
        *flushes = line.integer("a number of flushes")?;
    } else if line.eat_word("flushed") {
        *flushed = size(line)?;
    } else if line.eat_word("dropped_below") {
        *dropped_below = SeqNo(line.integer("a sequence number")?);
    } else {
        return Err(line.expected("`flushes`, `flushed`, `dropped_below` or `reads`"));
    }
    Ok(())
}

/// Takes a line that belongs to a tree; false where it belongs to something else.
fn tree_line(line: &mut Scanner<'_>, tree: &mut Tree) -> Result<bool> {
    if line.eat_word("count") {
        let (level, counters) = counters(line)?;
        tree.level_mut(level).counters = counters;
    } else if line.eat_word("dropped") {
        let below = SeqNo(line.integer("a sequence number")?);
        tree.dropped.raise(&line.range()?, below);
    } else if line.eat_word("erased") {
        let (range, seq) = range_deletes(line)?;
        tree.range_deletes.delete_range(&range, seq, &Readers::ANY);
    } else if line.eat_word("note") {
        let change = note(line)?;
        tree.memo.change(&change);
    } else if line.eat_word("mem") {
        tree.memory.set_runs(runs(line)?);
    } else if line.eat("L") {
        let index = level_index(line)?;
        let found = runs(line)?;
        tree.level_mut(index).set_runs(found);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Reads a sequence number and a range.
fn range_deletes(line: &mut Scanner<'_>) -> Result<(KeyRange, SeqNo)> {
    let seq = SeqNo(line.integer("a sequence number")?);
    Ok((line.range()?, seq))
}

fn level_index(line: &mut Scanner<'_>) -> Result<usize> {
    let index = line.integer("the number of a level")?;
    match usize::try_from(index).ok().filter(|index| *index < LEVELS_MAX) {
        Some(index) => Ok(index),
        None => Err(line.expected(format_args!("a level below {LEVELS_MAX} before this"))),
    }
}

fn runs(line: &mut Scanner<'_>) -> Result<Vec<Arc<Run>>> {
    let mut runs = Vec::new();
    while !line.is_done() {
        let id = run_id(line)?;
        let knot = knot(line)?;
        runs.push(Arc::new(Run::new(id, slices(line)?).in_knot(knot)));
    }
    Ok(runs)
}

fn run_id(line: &mut Scanner<'_>) -> Result<RunId> {
    line.prefixed("r", "a run such as `r1`").map(RunId)
}

fn knot(line: &mut Scanner<'_>) -> Result<Option<KnotId>> {
    let found = line.eat("~");
    found.then(|| line.prefixed("k", "a knot such as `k1`").map(KnotId)).transpose()
}

fn slices(line: &mut Scanner<'_>) -> Result<Vec<Slice>> {
    line.want("[")?;
    let mut slices = Vec::new();
    while !line.eat("]") {
        if !slices.is_empty() {
            line.want(",")?;
        }
        slices.push(slice(line)?);
    }
    Ok(slices)
}

fn slice(line: &mut Scanner<'_>) -> Result<Slice> {
    let id = TableId(line.prefixed("t", "a table such as `t1`")?);
    line.want(":")?;
    let visible = line.range()?;
    let range = if line.eat_word("of") { line.range()? } else { visible.clone() };
    let mut table = Table { id, range, size: size(line)?, ..Table::default() };
    let start = line.eat("s");
    if start {
        table.seq_min = SeqNo(line.integer("a sequence number")?);
        line.want("..")?;
        table.seq_max = SeqNo(line.integer("a sequence number")?);
        // A table without sequence numbers is printed without them, so the last may not be 0 alone.
        if table.seq_max < table.seq_min {
            return Err(line.expected(format_args!("at least {} before this", table.seq_min)));
        }
    }
    if line.eat_word("root") {
        table.root = line.integer("the number of a root")?;
        if table.root > 0 && line.eat_word("dead") {
            table.dead_bytes = line.bytes()?;
        }
        if table.root > 0 && line.eat_word("born") {
            table.born = line.integer("a number of flushes")?;
        }
    }
    if line.eat_word("cleared") {
        table.deletes_applied = SeqNo(line.integer("a sequence number")?);
    }
    if line.eat_word("expires") {
        table.expires = line.integer("a time")?;
    }
    if line.eat_word("deleted") {
        table.oldest_tombstone = line.integer("a number of flushes")?;
    }
    if line.eat("{") {
        table.profile = profile(line)?.into();
    }
    let whole = Slice::whole(table);
    whole.clip(&visible).ok_or_else(|| line.expected("a slice that is not empty before this"))
}

fn profile(line: &mut Scanner<'_>) -> Result<Vec<ProfilePoint>> {
    let mut points = Vec::new();
    while !line.eat("}") {
        if !points.is_empty() {
            line.want(",")?;
        }
        line.skip_spaces();
        let key = line.key()?.ok_or_else(|| line.expected("a key"))?;
        let gap = line.eat("..").then(|| line.key()).transpose()?.flatten();
        let (key, after) = gap.map_or((key.clone(), None), |end| (end, Some(key)));
        points.push(ProfilePoint { key, below: size(line)?, after });
    }
    Ok(points)
}

fn size(line: &mut Scanner<'_>) -> Result<Size> {
    let bytes = line.bytes()?;
    let entries = line.suffixed('e').unwrap_or(0);
    Ok(Size { bytes, entries, tombstones: line.suffixed('d').unwrap_or(0) })
}

fn counters(line: &mut Scanner<'_>) -> Result<(usize, Counters)> {
    line.want("L")?;
    let level = level_index(line)?;
    let mut counters = Counters::default();
    while !line.is_done() {
        let name = line.word("a counter")?;
        let Some(field) = counters.field_mut(name) else {
            return Err(line.expected(format_args!("a counter, not `{name}`, before this")));
        };
        *field = line.integer("a count")?;
    }
    Ok((level, counters))
}

fn note(line: &mut Scanner<'_>) -> Result<MemoChange> {
    let name = line.text("the name of a note")?;
    line.want("=")?;
    Ok((name.into(), Some(line.text("the text of a note")?)))
}

impl FromStr for MergePlan {
    type Err = TextError;

    fn from_str(text: &str) -> Result<MergePlan> {
        let mut lines = Scanner::lines(text);
        let mut line = lines.next().ok_or_else(|| empty("a plan"))?;
        let plan = plan(&mut line)?;
        match lines.next() {
            Some(line) => Err(line.expected("one line only")),
            None => Ok(plan),
        }
    }
}

fn empty(what: &str) -> TextError {
    TextError { line: 1, column: 1, message: format!("expected {what}, found nothing") }
}

/// Reads the rest of the line, with its comment, as a plan.
fn plan(line: &mut Scanner<'_>) -> Result<MergePlan> {
    let mode = if line.eat_word("move") {
        Mode::Move
    } else if line.eat_word("drop") {
        Mode::Drop
    } else {
        line.want("merge").map(|()| Mode::Merge)?
    };
    let mut inputs = Vec::new();
    while line.eat("r") {
        let run = RunId(line.integer("the number of a run")?);
        let range = if line.eat(":") { line.range()? } else { KeyRange::ALL };
        inputs.push(Input { run, range });
    }
    if line.eat_word("over") {
        let range = line.range()?;
        inputs.iter_mut().for_each(|input| input.range = range.clone());
    }
    let place = place(line)?;
    let mut plan = MergePlan {
        inputs,
        place,
        mode,
        cut_bytes: None,
        cuts: Cuts::default(),
        reuse: None,
        memo: Vec::new(),
        reason: Reason::read(line.comment),
    };
    while !line.is_done() {
        if line.eat_word("cut") {
            plan.cut_bytes = Some(line.bytes()?);
        } else if line.eat_word("at") {
            line.skip_spaces();
            let key = line.key()?;
            plan.cuts.keys.push(key.ok_or_else(|| line.expected("a key"))?);
        } else if line.eat_word("within") {
            let bytes = line.bytes()?;
            line.want("of")?;
            plan.cuts.overlap = Some(Overlap { run: run_id(line)?, bytes });
        } else if line.eat_word("reuse") {
            let nothing = line.eat_word("nothing");
            let piece_bytes = if nothing { u64::MAX } else { line.bytes()? };
            line.want("full")?;
            let full_bytes = line.bytes()?;
            let slack_bytes = line.eat_word("slack").then(|| line.bytes()).transpose()?;
            plan.reuse = Some(Reuse { piece_bytes, full_bytes, slack_bytes });
        } else if line.eat_word("note") {
            plan.memo.push(note(line)?);
        } else if line.eat_word("forget") {
            plan.memo.push((line.text("the name of a note")?.into(), None));
        } else {
            return Err(line.expected("`cut`, `at`, `within`, `reuse`, `note` or `forget`"));
        }
    }
    Ok(plan)
}

fn place(line: &mut Scanner<'_>) -> Result<Place> {
    if line.eat_word("in") {
        line.want("place")?;
        return Ok(Place::Oldest);
    }
    if line.eat_word("appended") {
        line.want("to")?;
        return run_id(line).map(Place::Append);
    }
    line.want("into")?;
    if !line.eat_word("new") {
        return run_id(line).map(Place::Into);
    }
    let are_trees = line.eat_word("trees");
    if !are_trees {
        line.want("run")?;
    }
    line.want("at")?;
    line.want("L")?;
    level_index(line).map(if are_trees { Place::NewAppend } else { Place::NewRun })
}

impl FromStr for TreeView {
    type Err = TextError;

    /// Reads a view. If the text has no line `view`, memtables have 4 MiB.
    fn from_str(text: &str) -> Result<TreeView> {
        let mut view = TreeView::new(Tree::new(), 4 << 20);
        let mut has_tree = false;
        for (index, mut line) in Scanner::lines(text).enumerate() {
            if index == 0 && line.eat_word("view") {
                view_head(&mut line, &mut view)?;
            } else if !has_tree {
                tree_head(&mut line, &mut view.tree)?;
                has_tree = true;
            } else if let Some(state) = reservation_state(&mut line) {
                let plan = plan(&mut line)?;
                view.reservations.push(Reservation { plan, state });
            } else if !tree_line(&mut line, &mut view.tree)? {
                return Err(line.expected("a line of a tree, `under_way` or `blocked`"));
            }
            line.finish()?;
        }
        view.tree.count_names();
        if has_tree { Ok(view) } else { Err(empty("a tree")) }
    }
}

fn view_head(line: &mut Scanner<'_>, view: &mut TreeView) -> Result<()> {
    while !line.is_done() {
        if line.eat_word("memtable") {
            view.memtable_bytes = line.bytes()?;
        } else if line.eat_word("block") {
            view.block_bytes = line.bytes()?;
        } else {
            return Err(line.expected("`memtable` or `block`"));
        }
    }
    Ok(())
}

fn reservation_state(line: &mut Scanner<'_>) -> Option<ReservationState> {
    if line.eat_word("under_way") {
        return Some(ReservationState::UnderWay);
    }
    line.eat_word("blocked").then_some(ReservationState::Blocked)
}

impl FromStr for TreeEdit {
    type Err = TextError;

    fn from_str(text: &str) -> Result<TreeEdit> {
        let mut edit = TreeEdit::default();
        let mut lines = Scanner::lines(text);
        let mut head = lines.next().ok_or_else(|| empty("an edit"))?;
        head.want("edit")?;
        while !head.is_done() {
            if head.eat_word("reads") {
                edit.reads = Some(reads(&mut head)?);
                continue;
            }
            let flushes = &mut edit.flushes;
            let flushed = &mut edit.flushed;
            history(&mut head, flushes, flushed, &mut edit.dropped_below)?;
        }
        for mut line in lines {
            edit_line(&mut line, &mut edit)?;
            line.finish()?;
        }
        Ok(edit)
    }
}

fn edit_line(line: &mut Scanner<'_>, edit: &mut TreeEdit) -> Result<()> {
    if line.eat_word("take") {
        let run = run_id(line)?;
        edit.remove.push(Input { run, range: line.range()? });
    } else if line.eat_word("add") {
        edit.add.push(addition(line)?);
    } else if line.eat_word("count") {
        edit.counters.push(counters(line)?);
    } else if line.eat_word("dropped") {
        edit.dropped.push(range_deletes(line)?);
    } else if line.eat_word("erase") {
        edit.range_deletes.push(range_deletes(line)?);
    } else if line.eat_word("erased_done") {
        edit.forget.push(range_deletes(line)?);
    } else if line.eat_word("note") {
        edit.memo.push(note(line)?);
    } else if line.eat_word("forget") {
        edit.memo.push((line.text("the name of a note")?.into(), None));
    } else {
        let words = "`take`, `add`, `count`, `dropped`, `erase`, `erased_done`, `note` or `forget`";
        return Err(line.expected(words));
    }
    Ok(())
}

fn addition(line: &mut Scanner<'_>) -> Result<Addition> {
    let run = run_id(line)?;
    let knot = knot(line)?;
    let place = if line.eat_word("above") {
        AddPlace::Above(run_id(line)?)
    } else if line.eat_word("at") {
        if line.eat_word("mem") {
            AddPlace::Memory
        } else {
            line.want("L")?;
            AddPlace::Top(level_index(line)?)
        }
    } else {
        AddPlace::Into
    };
    Ok(Addition { run, place, knot, slices: slices(line)? })
}
