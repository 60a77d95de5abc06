//! Requests of callers, and of the write-ahead log, to the scheduler.

/// Work that the scheduler does for a keyspace beside the plans of the merge policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Merge all runs into one.
    Merge,
    /// Flush all memtables that are sealed.
    Flush,
    /// Copy memory, because its old entries keep too much of the log.
    Spill,
    /// Merge all runs on storage into one, to free space.
    Reclaim,
}

/// The requests that are not met yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests(u8);

impl Requests {
    /// Adds `request`, if it is not there yet.
    pub(crate) fn ask(&mut self, request: Request) {
        self.0 |= 1 << request as u8;
    }

    /// Removes `request`, because it is met or has become pointless.
    pub(crate) fn withdraw(&mut self, request: Request) {
        self.0 &= !(1 << request as u8);
    }

    /// Returns true if `request` is not met yet.
    pub(crate) fn has(self, request: Request) -> bool {
        self.0 & 1 << request as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_stays_until_it_is_withdrawn() {
        let mut requests = Requests::default();
        requests.ask(Request::Merge);
        requests.ask(Request::Spill);
        requests.ask(Request::Spill);
        requests.withdraw(Request::Merge);
        requests.withdraw(Request::Flush);
        let all = [Request::Merge, Request::Flush, Request::Spill];
        assert_eq!(all.map(|request| requests.has(request)), [false, false, true]);
    }
}
