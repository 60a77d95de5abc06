//! Where the tables of an output end, besides the size at which they are cut.

use crate::key::Key;
use crate::run::RunId;

/// Keys at which no table of an output may go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Cut in front of each of these keys, which ascend.
    pub keys: Vec<Key>,
    /// Cut also at borders of another run.
    pub overlap: Option<Overlap>,
}

/// The most that one table of an output may overlap of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The run. If it is gone when the plan is carried out, it cuts nothing.
    pub run: RunId,
    /// Logical bytes of its slices that one table of the output may overlap. A table is cut where a
    /// slice starts with which these would be more. One slice may have more.
    pub bytes: u64,
}

impl Cuts {
    /// Returns true if these are no cuts.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.overlap.is_none()
    }
}

/// Walks over cut keys while the keys of an output ascend.
#[derive(Clone, Debug, Default)]
pub struct CutWalk<K> {
    /// The cuts that are still ahead, the next one last.
    ahead: Vec<K>,
}

impl<K: Ord> CutWalk<K> {
    /// Returns a walk over `cuts`, which ascend.
    pub fn new(mut cuts: Vec<K>) -> CutWalk<K> {
        cuts.reverse();
        CutWalk { ahead: cuts }
    }

    /// Returns true if a cut lies between the keys of the calls before and this one, which
    /// `is_reached` says of a cut that is not above it.
    #[inline(always)]
    pub fn passes(&mut self, is_reached: impl Fn(&K) -> bool) -> bool {
        // Most outputs have no cuts.
        !self.ahead.is_empty() && self.pass(is_reached)
    }

    #[inline(never)]
    fn pass(&mut self, is_reached: impl Fn(&K) -> bool) -> bool {
        let mut passed = false;
        while self.ahead.last().is_some_and(&is_reached) {
            self.ahead.pop();
            passed = true;
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_tells_each_cut_once() {
        let mut walk = CutWalk::new(vec![3, 5, 6]);
        let passed = [1, 3, 4, 7, 8].map(|key| walk.passes(|cut| *cut <= key));
        assert_eq!(passed, [false, true, false, true, false]);
    }
}
