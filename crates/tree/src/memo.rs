//! The memo: a small map of text to text, the only memory of a policy.

use std::borrow::Cow;

/// The notes of a policy, sorted by name. They are kept in the tree, and so in the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memo {
    entries: Vec<(MemoName, String)>,
}

/// The name of a note. A fixed name is not copied.
pub type MemoName = Cow<'static, str>;

/// One change of a memo: a name with its new text, or with `None` to remove the note.
pub type MemoChange = (MemoName, Option<String>);

impl Memo {
    /// Returns the text of the note called `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        let index = self.entries.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        Some(&self.entries[index].1)
    }

    /// Returns all notes, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, text)| (name.as_ref(), text.as_str()))
    }

    /// Returns true if nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Applies one change.
    pub fn change(&mut self, (name, text): &MemoChange) {
        match (self.entries.binary_search_by(|(key, _)| key.cmp(name)), text) {
            (Ok(index), Some(text)) => self.entries[index].1.clone_from(text),
            (Ok(index), None) => drop(self.entries.remove(index)),
            (Err(index), Some(text)) => self.entries.insert(index, (name.clone(), text.clone())),
            (Err(_), None) => {}
        }
    }
}
