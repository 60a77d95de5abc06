//! Reads the profile of a root.

use super::reader::AppendTable;
use crate::error::Result;
use crate::format::Span;
use lsmith_tree::{Key, PROFILE_STEP_BYTES, Profile, ProfilePoint, Size};

impl AppendTable {
    /// Reads the profile from the inner nodes above the leaves.
    pub(super) fn profile(&self) -> Result<Profile> {
        let mut points = Vec::new();
        if self.root.levels > 1 {
            let mut below = Size::default();
            let mut mark = PROFILE_STEP_BYTES;
            self.add_points(self.root.top.node, self.root.levels - 1, &mut |key, size| {
                if below.bytes >= mark && *key > *self.root.first_key {
                    points.push(ProfilePoint {
                        key: Key::copy_from_slice(key),
                        below,
                        after: None,
                    });
                    mark = (below.bytes / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
                }
                below = below.saturating_add(size);
            })?;
        }
        Ok(points.into())
    }

    /// Calls `add` for each leaf below the inner node at `span`.
    fn add_points(&self, span: Span, level: u64, add: &mut impl FnMut(&[u8], Size)) -> Result<()> {
        for (key, child) in self.children(span)? {
            match level {
                1 => add(&key, child.sum.size),
                _ => self.add_points(child.node, level - 1, add)?,
            }
        }
        Ok(())
    }
}
