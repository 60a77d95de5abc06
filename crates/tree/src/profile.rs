//! Profiles: how much of a table lies below which key.

use crate::key::Key;
use crate::slice::Size;
use std::ops::Deref;
use std::sync::Arc;

/// Logical bytes between two neighbouring profile points, unless a policy asks for more of them.
pub const PROFILE_STEP_BYTES: u64 = 64 * 1024;

/// A point of a profile: how much of the table lies below `key`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfilePoint {
    /// The first key that is not counted.
    pub key: Key,
    /// What the table holds below that key.
    pub below: Size,
    /// The least key above all that is counted, where that is known: from it up to `key` the table
    /// holds nothing.
    pub after: Option<Key>,
}

/// The profile points of a table, ascending; shared between clones, and nowhere when there are
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile {
    points: Option<Arc<[ProfilePoint]>>,
    /// Whether two neighbours are not in order. Looked at once, while all points are at hand: a
    /// tree can show a table in thousands of parts.
    is_disordered: bool,
}

impl Profile {
    fn new(points: Arc<[ProfilePoint]>) -> Profile {
        let ascending = |pair: &[ProfilePoint]| {
            pair[0].key < pair[1].key && pair[0].below.bytes <= pair[1].below.bytes
        };
        let is_disordered = !points.windows(2).all(ascending);
        Profile { points: (!points.is_empty()).then_some(points), is_disordered }
    }

    /// Whether keys ascend, and no point has less below it than the one before.
    pub fn is_ordered(&self) -> bool {
        !self.is_disordered
    }
}

impl Deref for Profile {
    type Target = [ProfilePoint];

    #[inline]
    fn deref(&self) -> &[ProfilePoint] {
        self.points.as_deref().unwrap_or(&[])
    }
}

impl From<Vec<ProfilePoint>> for Profile {
    fn from(points: Vec<ProfilePoint>) -> Profile {
        match points.is_empty() {
            true => Profile::default(),
            false => Profile::new(points.into()),
        }
    }
}

impl FromIterator<ProfilePoint> for Profile {
    fn from_iter<I: IntoIterator<Item = ProfilePoint>>(points: I) -> Profile {
        // Where it is known how many there are, they are made where they stay.
        Profile::new(points.into_iter().collect())
    }
}
