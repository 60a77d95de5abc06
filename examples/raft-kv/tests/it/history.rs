//! Checks that a history of reads and writes is linearizable: that there is one order of them that
//! explains each value read, in which no operation comes before one that had ended when it began.
//!
//! Keys are registers, so each is checked alone. The search comes from Wing and Gong, with a memory
//! of what it has tried: a state is how far the operations are ordered, and the value. The outcome
//! of a write may be unknown. Such a write may take effect at any time after its beginning, or
//! never. Values are written once, so a write whose value nobody read can be left out.

use std::collections::{BTreeMap, BTreeSet};

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Wrote a value that no other operation writes.
    Write(String),
    /// Read a value.
    Read(Option<String>),
}

/// An operation. Times are of one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) key: String,
    pub(crate) what: What,
    pub(crate) start: u64,
    /// `u64::MAX` if the outcome is unknown.
    pub(crate) end: u64,
}

/// Checks the history of all keys. An error shows the operations that no order explains.
pub(crate) fn check(history: &[Op]) -> Result<(), String> {
    let mut keys: BTreeMap<&str, Vec<&Op>> = BTreeMap::new();
    for op in history {
        keys.entry(&op.key).or_default().push(op);
    }
    keys.into_values().try_for_each(check_key)
}

/// How far a search has come: all operations before `next` have their place, and those `ahead`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ordered<'a> {
    next: usize,
    ahead: BTreeSet<usize>,
    value: Option<&'a str>,
}

fn check_key(mut ops: Vec<&Op>) -> Result<(), String> {
    let read: BTreeSet<Option<String>> = ops
        .iter()
        .filter_map(|op| match &op.what {
            What::Read(value) => Some(value.clone()),
            What::Write(_) => None,
        })
        .collect();
    ops.retain(|op| match &op.what {
        What::Write(value) => op.end < u64::MAX || read.contains(&Some(value.clone())),
        What::Read(_) => true,
    });
    ops.sort_by_key(|op| op.start);
    let begin = Ordered { next: 0, ahead: BTreeSet::new(), value: None };
    let mut tried = BTreeSet::from([begin.clone()]);
    let mut stack = vec![begin.clone()];
    let mut farthest = begin;
    while let Some(at) = stack.pop() {
        if at.next == ops.len() {
            return Ok(());
        }
        if at.next > farthest.next {
            farthest = at.clone();
        }
        // The last one pushed is tried first: the earliest operation.
        for candidate in candidates(&ops, &at).into_iter().rev() {
            if let Some(then) = at.place(&ops, candidate)
                && tried.insert(then.clone())
            {
                stack.push(then);
            }
        }
    }
    let stuck: Vec<&Op> = candidates(&ops, &farthest).into_iter().map(|index| ops[index]).collect();
    Err(format!("no order explains these, with {:?} before: {stuck:#?}", farthest.value))
}

/// Returns the operations that may be next, because they began before any other ended.
fn candidates(ops: &[&Op], at: &Ordered) -> Vec<usize> {
    let mut first_end = u64::MAX;
    let mut found = Vec::new();
    for (index, op) in ops.iter().enumerate().skip(at.next) {
        if op.start > first_end {
            break;
        }
        if !at.ahead.contains(&index) {
            first_end = first_end.min(op.end);
            found.push(index);
        }
    }
    found.retain(|index| ops[*index].start <= first_end);
    found
}

impl<'a> Ordered<'a> {
    /// Returns the state with `ops[index]` in the next place; `None` if it cannot be there.
    fn place(&self, ops: &[&'a Op], index: usize) -> Option<Ordered<'a>> {
        let value = match &ops[index].what {
            What::Write(value) => Some(value.as_str()),
            What::Read(value) if value.as_deref() == self.value => self.value,
            What::Read(_) => return None,
        };
        let mut then = Ordered { value, ..self.clone() };
        then.ahead.insert(index);
        while then.ahead.remove(&then.next) {
            then.next += 1;
        }
        Some(then)
    }
}

fn write(value: &str, start: u64, end: u64) -> Op {
    Op { key: "a".into(), what: What::Write(value.into()), start, end }
}

fn read(value: &str, start: u64, end: u64) -> Op {
    let value = (!value.is_empty()).then(|| value.to_string());
    Op { key: "a".into(), what: What::Read(value), start, end }
}

#[test]
fn histories_that_one_order_explains() {
    const NEVER: u64 = u64::MAX;
    for history in [
        vec![],
        vec![read("", 0, 1), write("x", 2, 3), read("x", 4, 5)],
        // During a write both values are right, the new one first seen by whoever comes later.
        vec![write("x", 0, 1), write("y", 2, 9), read("x", 3, 4), read("y", 5, 6), read("y", 7, 8)],
        // A write of unknown outcome never took effect.
        vec![write("x", 0, 1), write("y", 2, NEVER), read("x", 50, 60)],
        // Or it did late.
        vec![write("x", 0, 1), write("y", 2, NEVER), read("x", 50, 60), read("y", 61, 62)],
        // Two writes at once, in either order.
        vec![write("x", 0, 9), write("y", 0, 9), read("x", 10, 11)],
        vec![write("x", 0, 9), write("y", 0, 9), read("y", 10, 11)],
    ] {
        assert_eq!(check(&history), Ok(()));
    }
}

#[test]
fn histories_that_no_order_explains() {
    const NEVER: u64 = u64::MAX;
    for (why, history) in [
        ("a lost write", vec![write("x", 0, 1), read("", 2, 3)]),
        ("an old value", vec![write("x", 0, 1), write("y", 2, 3), read("x", 4, 5)]),
        ("a value from nowhere", vec![read("z", 0, 1)]),
        ("a value before its write", vec![read("x", 0, 1), write("x", 2, 3)]),
        (
            "a value that comes back",
            vec![write("x", 0, 9), write("y", 0, 9), read("x", 10, 11), read("y", 12, 13)],
        ),
        (
            "a write of unknown outcome that came and went",
            vec![write("x", 0, 1), write("y", 2, NEVER), read("y", 3, 4), read("x", 5, 6)],
        ),
        (
            "two readers who disagree",
            vec![
                write("x", 0, 20),
                write("y", 0, 20),
                read("x", 1, 2),
                read("y", 3, 4),
                read("x", 5, 6),
            ],
        ),
    ] {
        check(&history).expect_err(why);
    }
}
