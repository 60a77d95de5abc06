//! Which process this is, found out without a system call.
//!
//! A child of `fork` begins with a copy of the memory of its parent, but without its threads. So
//! locks may be held there by threads that do not exist, and nobody does the work that others wait
//! for. Files and their locks are shared with the parent. A store must do nothing there. It cannot
//! ask the system for the id of the process at each write, which would take as long as the
//! write.
//!
//! So there is one page of memory that the system clears in a child. It holds a mark, which is
//! never zero. A value with another mark was made in another process.

use super::unscheduled::AtomicU64;
use crate::system;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

/// The process in which a value of this type was made.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// The mark of the process in the page, or its process id if there is no page.
    mark: u64,
    page: &'static AtomicU64,
}

/// Stands in for the page on systems that cannot clear one. It stays zero.
static NO_PAGE: AtomicU64 = AtomicU64::new(0);

/// Stands in for the page of no process. It stays zero. With [`NO_PAGE`] in its place, the first
/// step of each iterator asked the system for its process id.
static NO_PROCESS: AtomicU64 = AtomicU64::new(0);

/// The number of marks given so far. A child goes on from where its parent was at the fork.
static MARKS: AtomicU64 = AtomicU64::new(0);

impl Process {
    /// No process. Nobody is there.
    pub const NOWHERE: Process = Process { mark: u64::MAX, page: &NO_PROCESS };

    /// Returns this process.
    pub fn here() -> Process {
        static PAGE: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
        let Some(page) = PAGE.get_or_init(system::word_cleared_in_children) else {
            return Process { mark: system::process_id().into(), page: &NO_PAGE };
        };
        let new = MARKS.fetch_add(1, Relaxed) + 1;
        // Only the first to come here after a fork finds no mark.
        let mark =
            page.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|mark| mark, |_| new);
        Process { mark, page }
    }

    /// Returns true if this process is the one in which `self` was made.
    #[inline(always)]
    pub fn is_here(&self) -> bool {
        self.page.load(Relaxed) == self.mark || self.is_here_by_number()
    }

    #[cold]
    fn is_here_by_number(&self) -> bool {
        std::ptr::eq(self.page, &NO_PAGE) && self.mark == u64::from(system::process_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_marks_of_a_process_are_equal() {
        let here = Process::here();
        assert!(here.is_here() && Process::here().mark == here.mark);
        assert!(!Process::NOWHERE.is_here());
        let by_number = Process { mark: system::process_id().into(), page: &NO_PAGE };
        assert!(by_number.is_here());
        assert!(!Process { mark: by_number.mark + 1, ..by_number }.is_here());
        assert!(!Process { mark: here.mark + 1, ..here }.is_here());
    }
}
