//! The application's clock, by which entries expire.

use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::panics;
use lsmith_storage::system::unix_time;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Times of the default clock below this one, in 2001, are taken for durations by mistake.
const UNIX_SECONDS_MIN: u64 = 1_000_000_000;

/// The application's clock. It returns a time, which must not go back, in any unit.
///
/// A store knows the name of its clock, and refuses another: by a clock with another unit, or
/// another zero, all entries could expire at once. So a clock whose times mean something else needs
/// another name.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Clock, Expiry, KeyspaceOptions, Store};
/// use std::time::{Duration, SystemTime};
///
/// let millis = || {
///     let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
///     since.map_or(0, |since| since.as_millis() as u64)
/// };
/// let clock = Clock::new("unix_millis", millis).with_tick(Duration::from_millis(1));
/// let store = Store::builder(dir.path()).clock(clock).open()?;
/// let options = KeyspaceOptions { expiry: Some(Expiry::default()), ..Default::default() };
/// let sessions = store.keyspace_with("sessions", &options)?;
/// sessions.put_with_ttl("7", "ada", Duration::from_secs(3600))?;
/// # drop((store, sessions));
/// // The default clock counts seconds.
/// assert!(Store::builder(dir.path()).open().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Clock {
    /// `None` stands in for the clock of any store.
    name: Option<Arc<str>>,
    /// The time between two numbers, if it is known.
    tick: Option<Duration>,
    now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Default for Clock {
    /// Returns the clock [`UNIX_SECONDS`](Clock::UNIX_SECONDS). It stands at 0 on a system without
    /// a clock, as in a browser.
    fn default() -> Clock {
        let seconds = || unix_time().as_secs();
        Clock::new(Clock::UNIX_SECONDS, seconds).with_tick(Duration::from_secs(1))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("name", &self.name).field("tick", &self.tick).finish()
    }
}

impl Clock {
    /// The name of the default clock, which shows seconds since 1970.
    pub const UNIX_SECONDS: &'static str = "unix_seconds";

    /// Returns the clock called `name`, which shows what `now` returns. A name has 1 to 64 letters,
    /// digits, `_`, `-` or `.`.
    pub fn new(name: &str, now: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock { name: Some(name.into()), tick: None, now: Arc::new(now) }
    }

    /// Says how long it takes the clock to show one more. Then
    /// [`Keyspace::put_with_ttl`](crate::Keyspace::put_with_ttl) works.
    #[must_use]
    pub fn with_tick(self, tick: Duration) -> Clock {
        Clock { tick: Some(tick), ..self }
    }

    /// Returns a clock that always shows `time`, in the unit of the clock that the store has,
    /// whatever that is called. So programs can look at a store without its clock. At time 0
    /// nothing has expired.
    pub fn fixed(time: u64) -> Clock {
        Clock { name: None, tick: None, now: Arc::new(move || time) }
    }

    /// Returns a clock that stands at time 0. It is called `name`; without a name, every store
    /// takes it.
    pub(crate) fn stopped(name: Option<&str>) -> Clock {
        Clock { name: name.map(Arc::from), ..Clock::fixed(0) }
    }

    /// Returns the name; `None` for a [fixed](Clock::fixed) clock.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the time.
    ///
    /// # Errors
    /// `Callback` if the clock panics.
    pub(crate) fn now(&self) -> Result<u64> {
        panics::catch(&*self.now).map_err(|panic| {
            Error::new(ErrorKind::Callback, format!("the clock of the store panicked: {panic}"))
        })
    }

    /// Returns the number of ticks of `life`, rounded up.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not known how long a tick is.
    pub(crate) fn ticks(&self, life: Duration) -> Result<u64> {
        let Some(tick) = self.tick.filter(|tick| !tick.is_zero()) else {
            let name = self.name().unwrap_or("of a fixed time");
            let message = format!(
                "the clock {name} does not say how long a tick is: expected `Clock::with_tick`, or \
                 a time for `put_until`"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        };
        let ticks = life.as_nanos().div_ceil(tick.as_nanos());
        Ok(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// Returns the microseconds until the clock shows `time`, if it says how long a tick is.
    pub(crate) fn micros_until(&self, time: u64) -> Option<u64> {
        let ticks = time.saturating_sub(self.now().ok()?);
        let micros = u128::from(ticks).saturating_mul(self.tick?.as_nanos()) / 1000;
        Some(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns what the clock shows at `time`, rounded up.
    ///
    /// # Errors
    /// `InvalidArgument` if `time` is no time of this clock.
    pub(crate) fn tick_at(&self, time: Until) -> Result<u64> {
        let message = match time {
            Until::Tick(tick) => match self.broken_rule(tick) {
                None => return Ok(tick),
                Some(message) => message,
            },
            Until::Time(time) if self.name() == Some(Clock::UNIX_SECONDS) => {
                let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                return Ok(since.as_secs() + u64::from(since.subsec_nanos() > 0));
            }
            Until::Time(_) => format!(
                "the clock {} does not say what it shows at a `SystemTime`: expected a number that \
                 it shows, or a duration for `put_with_ttl`",
                self.name().unwrap_or("of a fixed time")
            ),
        };
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Returns a message if `time` is no time of this clock, but a duration.
    fn broken_rule(&self, time: u64) -> Option<String> {
        let is_duration = self.name() == Some(Clock::UNIX_SECONDS) && time < UNIX_SECONDS_MIN;
        is_duration.then(|| {
            format!(
                "expected a time in seconds since 1970, found {time}, which lies before 2001: \
                 `put_with_ttl` takes a duration"
            )
        })
    }

    /// Returns a message if a store with the clock called `known` has another than this one.
    pub(crate) fn conflict(&self, known: &str) -> Option<String> {
        let own = self.name().filter(|own| *own != known)?;
        Some(format!(
            "the store has the clock `{known}`, not `{own}`: expected the clock of this name at \
             `Builder::clock`, or `Clock::fixed`, which is `--time` at the command line"
        ))
    }
}

/// The time until which a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// A number that the [clock](crate::Builder::clock) shows then.
    Tick(u64),
    /// A time of the system's clock, rounded up to a second. The store must have the default clock.
    Time(SystemTime),
}

impl From<u64> for Until {
    fn from(tick: u64) -> Until {
        Until::Tick(tick)
    }
}

impl From<SystemTime> for Until {
    fn from(time: SystemTime) -> Until {
        Until::Time(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_calendar_are_for_the_default_clock() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let shown = |time: Until| Clock::default().tick_at(time);
        assert_eq!(shown(at(4_000_000_000_000).into()).unwrap(), 4_000_000_000);
        assert_eq!(shown(at(4_000_000_000_001).into()).unwrap(), 4_000_000_001);
        assert_eq!(shown(at(7_000).into()).unwrap(), 7);
        assert_eq!(shown(4_000_000_000.into()).unwrap(), 4_000_000_000);
        let refused = [
            shown(7.into()),
            Clock::fixed(7).tick_at(at(1).into()),
            Clock::new("hands", || 7).tick_at(at(1).into()),
        ];
        assert!(refused.iter().all(|refused| {
            refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidArgument)
        }));
    }

    #[test]
    fn ticks_are_rounded_up_and_need_a_length() {
        let clock = Clock::new("half_minutes", || 7).with_tick(Duration::from_secs(30));
        let ticks = |millis| clock.ticks(Duration::from_millis(millis)).unwrap();
        assert_eq!([0, 1, 30_000, 30_001].map(ticks), [0, 1, 1, 2]);
        assert_eq!(clock.ticks(Duration::MAX).unwrap(), u64::MAX / 30 + 1);
        for clock in [Clock::fixed(7), Clock::new("steps", || 7).with_tick(Duration::ZERO)] {
            let error = clock.ticks(Duration::from_secs(1)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }
}
