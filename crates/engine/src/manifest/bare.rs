//! Shortens trees and edits for the manifest, and restores them. The manifest leaves out:
//!
//! * Profiles. A table stores its profile in its own properties. With a point for every data block
//!   a profile is much larger than the rest of a table's description. Opening the tables puts the
//!   profiles back into the tree.
//! * Repeated descriptions of tables. Where merges keep blocks, a plan returns hundreds of slices
//!   of few tables. If the same record or the inputs of the edit describe a table, later slices
//!   only name it: in the text they are slices of a table without bounds and without bytes. A new
//!   root of an append table is described again. So is a table to which fewer range deletes are
//!   [applied](Table::deletes_applied) than before.

use lsmith_tree::{KeyRange, Size, Slice, Table, TableId, Tree, TreeEdit};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Descriptions of tables by id, without profiles.
type KnownTables = FxHashMap<TableId, Arc<Table>>;

/// Returns `edit`, which is to be applied to `tree`, as the manifest stores it.
pub(super) fn shorten(mut edit: TreeEdit, tree: &Tree) -> TreeEdit {
    let mut known = taken(&edit, tree);
    let mut names = KnownTables::default();
    for slice in edit.add.iter_mut().flat_map(|addition| &mut addition.slices) {
        *slice = part(&short(slice.table(), &mut known, &mut names), slice.range())
            .expect("the table keeps its range, or has no bounds");
    }
    edit
}

/// Returns the edit that [`shorten`] has shortened, without profiles.
///
/// # Errors
/// Fails if `edit` names an unknown table, or keys outside of a table, or describes a table in two
/// ways.
pub(super) fn restore(mut edit: TreeEdit, tree: &Tree) -> Result<TreeEdit, String> {
    let mut known = taken(&edit, tree);
    for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
        let table = slice.table();
        let is_older = |before: &Arc<Table>| before.root < table.root;
        if !is_name(table) && known.get(&table.id).is_some_and(is_older) {
            known.remove(&table.id);
        }
    }
    for slice in edit.add.iter_mut().flat_map(|addition| &mut addition.slices) {
        *slice = restored(slice, &mut known)?;
    }
    Ok(edit)
}

/// Returns all of `tree` as the manifest stores it.
pub(super) fn shorten_tree(tree: Tree) -> Tree {
    let mut known = KnownTables::default();
    let mut names = KnownTables::default();
    tree.with_tables(|table| short(table, &mut known, &mut names))
}

/// Returns the tree that [`shorten_tree`] has shortened, without profiles.
///
/// # Errors
/// Fails as [`restore`] does.
pub(super) fn restore_tree(tree: Tree) -> Result<Tree, String> {
    let mut known = KnownTables::default();
    let slices = tree.runs().flat_map(|(_, run)| run.slices());
    slices.into_iter().try_for_each(|slice| restored(slice, &mut known).map(drop))?;
    Ok(tree.with_tables(|table| Arc::clone(&known[&table.id])))
}

/// Checks that `tree` describes each table in one way only. [`restore`] cannot check that: an edit
/// may describe a table that the tree has in a run outside of the edit's inputs.
///
/// # Errors
/// Fails if a table is described in two ways.
pub(super) fn check_known(tree: &Tree) -> Result<(), String> {
    let mut known = FxHashMap::<TableId, &Arc<Table>>::default();
    for slice in tree.disk_runs().flat_map(|run| run.slices()) {
        let table = slice.table();
        let first = *known.entry(table.id).or_insert(table);
        if !is_same(first, table) {
            return Err(two_ways(table));
        }
    }
    Ok(())
}

/// Returns true if two tables of one id differ in their profiles at most.
fn is_same(left: &Arc<Table>, right: &Arc<Table>) -> bool {
    let facts = |table: &Table| (table.size, table.seq_min, table.seq_max, table.root);
    Arc::ptr_eq(left, right) || left.range == right.range && facts(left) == facts(right)
}

fn two_ways(table: &Table) -> String {
    format!("table {} is described in two ways", table.id)
}

/// Returns the tables of the slices that `edit` takes from `tree`.
fn taken(edit: &TreeEdit, tree: &Tree) -> KnownTables {
    let mut known = KnownTables::default();
    for input in &edit.remove {
        let run = tree.run(input.run).map(|(_, run)| run);
        for slice in run.into_iter().flat_map(|run| run.overlapping(&input.range)) {
            known.entry(slice.table().id).or_insert_with(|| Arc::clone(slice.table()));
        }
    }
    known
}

/// Returns the mere name of `table` if `known` has it, with the same root and the same range
/// deletes applied. Otherwise returns the table without its profile, and adds it to `known`.
fn short(table: &Arc<Table>, known: &mut KnownTables, names: &mut KnownTables) -> Arc<Table> {
    let id = table.id;
    let is_like = |before: &Arc<Table>| {
        before.root == table.root && before.deletes_applied == table.deletes_applied
    };
    if known.get(&id).is_some_and(is_like) {
        let name = || Arc::new(Table { id, range: KeyRange::ALL, ..Table::default() });
        return Arc::clone(names.entry(id).or_insert_with(name));
    }
    let bare = if table.profile.is_empty() {
        Arc::clone(table)
    } else {
        Arc::new(Table { profile: Vec::new().into(), ..Table::clone(table) })
    };
    known.insert(id, Arc::clone(&bare));
    bare
}

/// Returns `slice` with the table from `known` if its table is a mere name. Otherwise adds its
/// table to `known`.
fn restored(slice: &Slice, known: &mut KnownTables) -> Result<Slice, String> {
    let table = slice.table();
    if !is_name(table) {
        return match known.insert(table.id, Arc::clone(table)) {
            Some(before) if !is_same(&before, table) => Err(two_ways(table)),
            _ => Ok(slice.clone()),
        };
    }
    let found = known.get(&table.id).and_then(|table| part(table, slice.range()));
    found.ok_or_else(|| format!("no earlier description of table {} covers this slice", table.id))
}

/// Returns true if `table` is a mere name: without bounds and without bytes.
fn is_name(table: &Table) -> bool {
    table.range.is_all() && table.size == Size::default()
}

/// Returns the slice of `table` in `range`, if the table covers `range`.
fn part(table: &Arc<Table>, range: &KeyRange) -> Option<Slice> {
    if !table.range.covers(range) {
        return None;
    }
    Slice::whole(Arc::clone(table)).clip(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "tree runs 2 tables 3\nL0 r1[t1:a..f of a..m 1MB 9e s1..5, t2:f..g 2MB, \
                        t1:g..m of a..m 1MB 9e s1..5]";

    fn edit(profile: &str, t1: &str, t3: &str) -> TreeEdit {
        format!(
            "edit flushes 1\ntake r1 ..\n\
             add r2 at L1 [t1:a..b of {t1}, t3:b..c of b..z 1MB 9e s1..7{profile}, \
             t4:d..e 2MB, t3:f..g of {t3}]"
        )
        .parse()
        .unwrap()
    }

    #[test]
    fn edits_omit_profiles_and_repeated_descriptions() {
        let tree: Tree = TREE.parse().unwrap();
        let known = "a..m 1MB 9e s1..5";
        let full = "b..z 1MB 9e s1..7";
        let profile = " {b 500kB 4e, c..f 600kB 5e}";
        let with = edit(profile, known, &format!("{full}{profile}"));
        let without = edit("", known, full);
        let text = "edit flushes 1\ntake r1 ..\nadd r2 at L1 [t1:a..b of .. 0B, \
                    t3:b..c of b..z 1MB 9e s1..7, t4:d..e 2MB, t3:f..g of .. 0B]\n";
        for full in [with, without.clone()] {
            let short = shorten(full, &tree);
            assert_eq!(short.to_string(), text);
            let read: TreeEdit = text.parse().unwrap();
            assert_eq!(restore(read, &tree).unwrap(), without);
        }
        // An edit that is not shortened stays as it is.
        assert_eq!(restore(without.clone(), &tree).unwrap(), without);
    }

    /// The edit kept the description of the root before, so that the store had lost what was
    /// appended when it was opened again.
    #[test]
    fn next_root_of_an_append_table_is_described() {
        let tree: Tree = "tree runs 2 tables 3\nL0 r1[t1:a..m 1MB 9e root 500, t2:n..z 2MB root 9]"
            .parse()
            .unwrap();
        let text = "edit\ntake r1 ..\nadd r1 [t1:a..m 2MB 12e root 900, t2:n..z 2MB root 9]\n";
        let edit: TreeEdit = text.parse().unwrap();
        let short = shorten(edit.clone(), &tree);
        assert_eq!(short.to_string(), text.replace("t2:n..z 2MB root 9", "t2:n..z of .. 0B"));
        assert_eq!(restore(short, &tree).unwrap(), edit);
        let older = text.replace("root 900", "root 400").parse().unwrap();
        assert_eq!(restore(older, &tree), Err("table t1 is described in two ways".into()));
        let both = tree.to_string().replace("t2:n..z 2MB root 9", "t1:n..z 2MB root 900");
        restore_tree(both.parse().unwrap()).unwrap_err();
    }

    #[test]
    fn trees_describe_each_table_once() {
        let tree: Tree = TREE.parse().unwrap();
        let short = shorten_tree(tree.clone()).to_string();
        assert_eq!(short.matches("s1..5").count(), 1, "{short}");
        assert_eq!(restore_tree(short.parse().unwrap()).unwrap(), tree);
        assert_eq!(restore_tree(tree.clone()).unwrap(), tree);
    }

    /// If one record described a table in two ways, slices of the first description were looked up
    /// in the second, which panicked. If two records did, both descriptions were accepted, and one
    /// was lost when the tree was written again: the tree changed with every opening.
    #[test]
    fn table_described_in_two_ways_is_refused() {
        let tree: Tree = TREE.parse().unwrap();
        check_known(&tree).unwrap();
        for other in ["t1:n..o 1MB", "t1:n..o of a..z 1MB 9e s1..5", "t2:n..o of f..z 3MB"] {
            let tree: Tree = format!("{TREE}\nL1 r0[{other}]").parse().unwrap();
            let error = check_known(&tree).unwrap_err();
            assert!(error.ends_with("is described in two ways"), "{error}");
            assert_eq!(restore_tree(tree), Err(error));
        }
    }

    #[test]
    fn names_of_unknown_tables_are_errors() {
        let tree: Tree = TREE.parse().unwrap();
        let unknown = "a..m 1MB 9e s1..5";
        let bad = shorten(edit("", unknown, "b..z 1MB 9e s1..7"), &tree);
        assert!(restore(bad, &Tree::new()).is_err());
        for text in ["t1:a..n of .. 0B", "t5:a..b of .. 0B"] {
            let edit = format!("edit\ntake r1 ..\nadd r2 at L1 [{text}]").parse().unwrap();
            assert!(restore(edit, &tree).is_err(), "{text}");
            let tree = format!("tree runs 2 tables 9\nL0 r1[t1:a..m 1MB] r0[{text}]");
            assert!(restore_tree(tree.parse().unwrap()).is_err(), "{tree}");
        }
    }
}
