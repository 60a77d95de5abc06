//! A set of keys whose entries are still searched.

use lsmith_tree::KeyRange;

/// Disjoint key ranges in order.
#[derive(Clone, Debug)]
pub(super) struct OpenKeys(Vec<KeyRange>);

impl OpenKeys {
    pub(super) fn new(range: KeyRange) -> OpenKeys {
        OpenKeys(vec![range])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let behind = self.0.partition_point(|range| *range.start <= *key);
        behind > 0 && self.0[behind - 1].contains(key)
    }

    pub(super) fn overlaps(&self, range: &KeyRange) -> bool {
        let first = self.0.partition_point(|open| open.lies_below(&range.start));
        self.0.get(first).is_some_and(|open| open.overlaps(range))
    }

    /// Removes all keys of `range`.
    pub(super) fn remove(&mut self, range: &KeyRange) {
        let first = self.0.partition_point(|open| open.lies_below(&range.start));
        let taken = self.0[first..].iter().take_while(|open| open.overlaps(range)).count();
        let taken = first..first + taken;
        let rest = self.0[taken.clone()].iter().flat_map(|open| open.without(range));
        let rest: Vec<KeyRange> = rest.filter(|open| !open.is_empty()).collect();
        self.0.splice(taken, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_keys_are_not_open() {
        let mut open = OpenKeys::new(KeyRange::new("b", "y"));
        open.remove(&KeyRange::new("d", "f"));
        open.remove(&KeyRange::new("a", "c"));
        open.remove(&KeyRange::new("h", "k"));
        let ranges: Vec<String> = open.0.iter().map(KeyRange::to_string).collect();
        assert_eq!(ranges, ["c..d", "f..h", "k..y"]);
        assert!(open.contains(b"c") && open.contains(b"x") && open.contains(b"f"));
        assert!(!open.contains(b"b") && !open.contains(b"d") && !open.contains(b"y"));
        assert!(open.overlaps(&KeyRange::new("e", "g")) && open.overlaps(&KeyRange::ALL));
        assert!(!open.overlaps(&KeyRange::new("d", "f")));
        assert!(!open.overlaps(&KeyRange::new("h", "i")));
        open.remove(&KeyRange { start: "ca".into(), end: None });
        assert!(!open.is_empty() && open.contains(b"c") && !open.contains(b"x"));
        open.remove(&KeyRange::ALL);
        assert!(open.is_empty());
    }
}
