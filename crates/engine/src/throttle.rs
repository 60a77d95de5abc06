//! The limit on the bytes that merges write per second.

use crate::context::Context;
use crate::keyspaces::Keyspaces;
use crate::options::Options;
use crate::stats::add;
use lsmith_storage::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a merge writes between two calls of [`Throttle::keep_pace`].
pub(crate) const PACE_BYTES: u64 = 256 << 10;

/// The longest sleep of a merge before it checks again whether writers are held back.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// A token bucket. Each token pays for one byte. Tokens arrive at a steady rate. The bucket keeps
/// the tokens of a tenth of a second at most, so that a merge that begins does not wait.
#[derive(Debug)]
struct Bucket {
    /// Tokens that arrive per second, at least 1.
    per_s: u64,
    /// Tokens in the bucket. Below zero if merges wrote bytes that are not yet paid for.
    tokens: f64,
    /// The time of the last refill.
    at: Duration,
}

impl Bucket {
    fn new(per_s: u64) -> Bucket {
        Bucket { per_s: per_s.max(1), tokens: 0.0, at: Duration::ZERO }
    }

    /// Adds the tokens that have arrived since the last refill.
    fn refill(&mut self, now: Duration) {
        let rate = self.per_s as f64;
        let new = now.saturating_sub(self.at).as_secs_f64() * rate;
        self.tokens = (self.tokens + new).min(rate / 10.0);
        self.at = self.at.max(now);
    }

    /// Takes `bytes` tokens. The bucket may go below zero.
    fn take(&mut self, bytes: u64, now: Duration) {
        self.refill(now);
        self.tokens -= bytes as f64;
    }

    /// Returns the time from `now` until the bucket is no longer below zero.
    fn wait(&mut self, now: Duration) -> Duration {
        self.refill(now);
        Duration::from_secs_f64((-self.tokens).max(0.0) / self.per_s as f64)
    }

    /// Raises the bucket to zero if it is below.
    fn forgive(&mut self) {
        self.tokens = self.tokens.max(0.0);
    }
}

/// The limit on the bytes that all merges of a store write per second.
#[derive(Debug)]
pub(crate) struct Throttle {
    context: Arc<Context>,
    keyspaces: Arc<Keyspaces>,
    /// `None` if there is no limit.
    bucket: Option<Mutex<Bucket>>,
}

impl Throttle {
    /// Returns the limit that the options of `context` ask for. A store in lockstep has no limit.
    pub(crate) fn new(context: &Arc<Context>, keyspaces: &Arc<Keyspaces>) -> Throttle {
        let Options { merge_bytes_per_s, lockstep, .. } = &context.options;
        let limit = merge_bytes_per_s.filter(|_| !lockstep);
        Throttle {
            context: Arc::clone(context),
            keyspaces: Arc::clone(keyspaces),
            bucket: limit.map(|bytes_per_s| Mutex::new(Bucket::new(bytes_per_s))),
        }
    }

    /// Waits until a merge that has written `bytes` may write more. The limit does not hold while
    /// merges are behind and writers are held back.
    pub(crate) fn keep_pace(&self, bytes: u64) {
        let Some(bucket) = &self.bucket else { return };
        let env = &self.context.options.env;
        bucket.lock().take(bytes, env.now());
        while !self.context.is_closing() {
            let wait = bucket.lock().wait(env.now());
            if wait.is_zero() {
                return;
            }
            if self.are_writers_held_back() {
                bucket.lock().forgive();
                return;
            }
            let start = env.now();
            self.context.progress.wait(wait.min(SLEEP_MAX));
            let waited = env.now().saturating_sub(start);
            add(&self.context.counts.paced_micros, waited.as_micros() as u64);
        }
    }

    fn are_writers_held_back(&self) -> bool {
        self.keyspaces.all().iter().any(|keyspace| keyspace.gate.pressure() > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bytes_are_granted_at_the_configured_rate() {
        let mut bucket = Bucket::new(10 * MB);
        let mut now = Duration::ZERO;
        let mut granted = 0;
        // A merge that writes as fast as the limit allows.
        while now < millis(10_000) {
            bucket.take(PACE_BYTES, now);
            granted += PACE_BYTES;
            now += bucket.wait(now);
        }
        assert!(granted.abs_diff(100 * MB) <= 2 * PACE_BYTES, "{granted}");
    }

    #[test]
    fn idle_bucket_keeps_the_tokens_of_a_tenth_of_a_second() {
        let mut bucket = Bucket::new(10 * MB);
        bucket.take(MB, millis(60_000));
        assert_eq!(bucket.wait(millis(60_000)), Duration::ZERO);
        bucket.take(MB, millis(60_000));
        assert_eq!(bucket.wait(millis(60_000)), millis(100));
        assert_eq!(bucket.wait(millis(60_040)), millis(60));
        assert_eq!(bucket.wait(millis(60_100)), Duration::ZERO);
    }

    #[test]
    fn forgiven_debt_causes_no_wait() {
        let mut bucket = Bucket::new(MB);
        bucket.take(50 * MB, millis(0));
        assert_eq!(bucket.wait(millis(1000)), millis(49_000));
        bucket.forgive();
        assert_eq!(bucket.wait(millis(1000)), Duration::ZERO);
        bucket.take(MB, millis(1000));
        assert_eq!(bucket.wait(millis(1000)), millis(1000));
    }

    #[test]
    fn stopped_clock_grants_nothing() {
        let mut bucket = Bucket::new(MB);
        bucket.take(MB, millis(500));
        let wait = bucket.wait(millis(500));
        assert_eq!(bucket.wait(millis(500)), wait);
        assert_eq!(wait, millis(900));
    }
}
