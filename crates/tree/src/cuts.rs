//! Where the tables of an output end, besides the size at which they are cut.

use crate::key::Key;
use crate::plan::MergePlan;
use crate::run::RunId;
use crate::tree::Tree;

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

impl MergePlan {
    /// Returns the keys at which the output is cut whatever the size of its tables, in order: the
    /// keys of the plan, and the borders of the run that the plan names.
    pub fn cut_keys(&self, tree: &Tree) -> Vec<Key> {
        let mut keys = self.cuts.keys.clone();
        if let Some(Overlap { run, bytes }) = self.cuts.overlap
            && let Some((_, run)) = tree.run(run)
        {
            let mut met = 0_u64;
            for slice in run.overlapping(&self.hull()) {
                let more = slice.size().bytes;
                if met > 0 && met.saturating_add(more) > bytes {
                    keys.push(slice.range().start.clone());
                    met = 0;
                }
                met = met.saturating_add(more);
            }
            keys.sort();
            keys.dedup();
        }
        keys
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
    fn tables_overlap_at_most_so_much_of_a_run() {
        let tree: Tree = "tree\nL0 r1[t1:a..z 9MB]\n\
             L1 r2[t2:a..c 1MB, t3:d..f 1MB, t4:g..i 5MB, t5:k..m 1MB, t6:n..p 1MB, t7:y..z 1MB]"
            .parse()
            .expect("a tree");
        let keys = |text: &str| {
            let plan: MergePlan = text.parse().expect(text);
            assert_eq!(plan.to_string(), text);
            let keys = plan.cut_keys(&tree);
            keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<String>()
        };
        assert_eq!(keys("merge r1 over a..z in place cut 1MB at e at h within 2MB of r2"), "eghky");
        assert_eq!(keys("merge r1 over b..o in place within 3MB of r2"), "gk");
        assert_eq!(keys("merge r1 over a..z in place within 1MB of r9"), "");
    }

    #[test]
    fn a_walk_tells_each_cut_once() {
        let mut walk = CutWalk::new(vec![3, 5, 6]);
        let passed = [1, 3, 4, 7, 8].map(|key| walk.passes(|cut| *cut <= key));
        assert_eq!(passed, [false, true, false, true, false]);
    }
}
