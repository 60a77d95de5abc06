//! The name of a keyspace, which can change while callers hold it.

use lsmith_storage::sync::OnceLock;
use lsmith_storage::sync::atomic::{AtomicUsize, Ordering};
use std::fmt;

/// Shelf `i` has room for `2^i` names: together more than there can be.
const SHELVES: usize = usize::BITS as usize - 1;

/// The name of a keyspace or a group. Earlier names stay in memory as long as the keyspace does,
/// because callers may hold them. The present name is found at once, however many there are.
#[derive(Debug)]
pub(crate) struct Name {
    first: Box<str>,
    later: OnceLock<Box<LaterNames>>,
}

/// The names after the first one.
#[derive(Debug)]
struct LaterNames {
    /// Oldest first, shelf by shelf.
    shelves: [OnceLock<Shelf>; SHELVES],
    /// At least one.
    count: AtomicUsize,
}

type Shelf = Box<[OnceLock<Box<str>>]>;

impl Name {
    /// Returns the name `text`.
    pub(crate) fn new(text: &str) -> Name {
        Name { first: text.into(), later: OnceLock::new() }
    }

    /// Returns the name as it is now.
    #[inline]
    pub(crate) fn now(&self) -> &str {
        self.later.get().map_or(&self.first, |later| later.last())
    }

    /// Changes the name to `text`. One thread at a time may do that: the one that holds the lock of
    /// all keyspaces for writing.
    pub(crate) fn change(&self, text: &str) {
        match self.later.get() {
            Some(later) => later.add(text),
            None => {
                let later = LaterNames {
                    shelves: [const { OnceLock::new() }; SHELVES],
                    count: AtomicUsize::new(0),
                };
                later.add(text);
                self.later.set(Box::new(later)).expect("one thread at a time changes a name");
            }
        }
    }

    /// Changes the name to `text`, unless that is its name.
    pub(crate) fn change_to(&self, text: &str) {
        if self.now() != text {
            self.change(text);
        }
    }
}

impl LaterNames {
    fn last(&self) -> &str {
        let (shelf, slot) = place(self.count.load(Ordering::Acquire));
        let name = self.shelves[shelf].get().and_then(|shelf| shelf[slot].get());
        name.expect("a name is counted after it was put there")
    }

    fn add(&self, text: &str) {
        let count = self.count.load(Ordering::Relaxed) + 1;
        let (shelf, slot) = place(count);
        let shelf = self.shelves[shelf]
            .get_or_init(|| (0..1_usize << shelf).map(|_| OnceLock::new()).collect());
        shelf[slot].set(text.into()).expect("one thread at a time changes a name");
        self.count.store(count, Ordering::Release);
    }
}

/// Returns the shelf of name `nth`, counted from 1, and its slot there.
fn place(nth: usize) -> (usize, usize) {
    let shelf = nth.ilog2() as usize;
    (shelf, nth - (1 << shelf))
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_changes_and_callers_keep_the_old_one() {
        let name = Name::new("a");
        let before = name.now();
        name.change("b");
        name.change("c");
        assert_eq!((before, name.now(), name.to_string()), ("a", "c", "c".to_string()));
    }

    /// What broke: each name led to the next. So finding the last one took longer with each change,
    /// and dropping them overflowed the stack.
    #[test]
    fn hundred_thousand_names_are_found_and_dropped_one_by_one() {
        let name = Name::new("name 0");
        let earlier: Vec<&str> = (1..=100_000)
            .map(|nth| {
                name.change(&format!("name {nth}"));
                assert_eq!(name.now(), format!("name {nth}"));
                name.now()
            })
            .collect();
        assert_eq!((earlier[0], earlier[77_776]), ("name 1", "name 77777"));
        assert_eq!(place(1), (0, 0));
        assert_eq!(place(100_000), (16, 100_000 - (1 << 16)));
    }
}
