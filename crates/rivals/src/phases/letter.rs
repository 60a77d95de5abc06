//! The workloads of YCSB by their letters.

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Letter {
    /// Half reads, half updates.
    A,
    /// Reads, and 5 % updates.
    B,
    /// Reads.
    C,
    /// Half reads, half reads with an update of the same key.
    F,
    /// Reads of the latest keys, and 5 % inserts.
    D,
    /// Short scans, and 5 % inserts.
    E,
}

impl Letter {
    /// All letters, in the order in which they run: letters with inserts come last.
    pub(crate) const ALL: [Letter; 6] =
        [Letter::A, Letter::B, Letter::C, Letter::F, Letter::D, Letter::E];

    /// As in names of phases.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Letter::A => "a",
            Letter::B => "b",
            Letter::C => "c",
            Letter::D => "d",
            Letter::E => "e",
            Letter::F => "f",
        }
    }

    /// The one with this name.
    pub(super) fn parse(name: &str) -> Option<Letter> {
        Letter::ALL.into_iter().find(|letter| letter.name() == name)
    }

    /// Operations of 100 that write.
    pub(super) fn writes(self) -> u64 {
        match self {
            Letter::A | Letter::F => 50,
            Letter::B | Letter::D | Letter::E => 5,
            Letter::C => 0,
        }
    }

    pub(super) fn inserts(self) -> bool {
        matches!(self, Letter::D | Letter::E)
    }
}
