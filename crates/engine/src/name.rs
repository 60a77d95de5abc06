//! The name of a keyspace, which can change while callers hold it.

use lsmith_storage::sync::OnceLock;
use std::fmt;

/// The name of a keyspace or a group. Earlier names stay in memory as long as the keyspace does,
/// because callers may hold them.
#[derive(Debug)]
pub(crate) struct Name {
    text: String,
    /// The name that has replaced this one.
    next: OnceLock<Box<Name>>,
}

impl Name {
    /// Returns the name `text`.
    pub(crate) fn new(text: &str) -> Name {
        Name { text: text.to_string(), next: OnceLock::new() }
    }

    /// Returns the name as it is now.
    pub(crate) fn now(&self) -> &str {
        &self.last().text
    }

    /// Changes the name to `text`. One thread at a time may do that: the one that holds the lock of
    /// all keyspaces for writing.
    pub(crate) fn change(&self, text: &str) {
        let taken = self.last().next.set(Box::new(Name::new(text)));
        taken.expect("one thread at a time changes a name");
    }

    /// Changes the name to `text`, unless that is its name.
    pub(crate) fn change_to(&self, text: &str) {
        if self.now() != text {
            self.change(text);
        }
    }

    fn last(&self) -> &Name {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        last
    }
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
}
