//! Progress on standard error: bars on a terminal, for commands that take more than a second, and a
//! line now and then without a terminal, for commands of several parts.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lsmith_lab::Progress;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The bar on standard error, so that a signal can end it.
static SHOWN: Mutex<Option<Arc<Mutex<Shown>>>> = Mutex::new(None);

/// The time after which a command shows a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time between two lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Shows each step of an experiment as a bar on standard error, after the first second of the
/// command. If standard error is not a terminal, prints a line for a command of several parts every
/// ten seconds, and nothing for others.
pub(crate) struct Bars {
    shown: Arc<Mutex<Shown>>,
    /// Dropped when the command ends; that ends the thread that waits for the first second.
    _running: Sender<()>,
}

struct Shown {
    /// True once the first second is over.
    visible: bool,
    bar: ProgressBar,
    /// What finished parts found, until it is printed.
    finished: Vec<String>,
    /// `None` for a command of one part.
    parts: Option<Parts>,
}

/// How far a command of several parts has come.
struct Parts {
    /// The work of each part, in any unit.
    work: Vec<u64>,
    /// How many parts have begun.
    begun: usize,
    start: Instant,
    /// The time from the start to the start of the present part.
    before: Duration,
}

impl Bars {
    pub(crate) fn new() -> Bars {
        Bars::of(None)
    }

    /// Returns the bars of a command of several parts. `work` has the work of each, in any unit.
    pub(crate) fn of_parts(work: Vec<u64>) -> Bars {
        Bars::of(Some(Parts { work, begun: 0, start: Instant::now(), before: Duration::ZERO }))
    }

    fn of(parts: Option<Parts>) -> Bars {
        let has_parts = parts.is_some();
        let bar = ProgressBar::hidden();
        let shown =
            Arc::new(Mutex::new(Shown { visible: false, bar, finished: Vec::new(), parts }));
        let (running, ended) = channel();
        let ends_within = move |time| ended.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
        let waiting = Arc::clone(&shown);
        if std::io::stderr().is_terminal() {
            std::thread::spawn(move || {
                if !ends_within(PATIENCE) {
                    lock(&waiting).show();
                }
            });
        } else if has_parts {
            std::thread::spawn(move || {
                while !ends_within(LINE_INTERVAL) {
                    lock(&waiting).print_line();
                }
            });
        }
        *lock(&SHOWN) = Some(Arc::clone(&shown));
        Bars { shown, _running: running }
    }

    /// Shows in a line what a part found: above the bar, or with the next line of progress.
    pub(crate) fn finish_part(&self, found: &str) {
        let mut shown = lock(&self.shown);
        shown.finished.push(found.to_owned());
        if shown.visible {
            shown.print_finished();
        }
    }
}

impl Shown {
    fn show(&mut self) {
        self.visible = true;
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(100));
        self.print_finished();
    }

    fn print_finished(&mut self) {
        self.finished.drain(..).for_each(|found| self.bar.println(format!("done: {found}")));
    }

    fn print_line(&mut self) {
        if let Some(parts) = &self.parts {
            for found in self.finished.drain(..) {
                let _gone = writeln!(io::stderr(), "progress: done: {found}");
            }
            let now = parts.in_words(parts.start.elapsed());
            // A write error cannot be reported either.
            let _gone = writeln!(io::stderr(), "progress: {now}: {}", self.bar.message());
        }
    }
}

impl Parts {
    fn begin(&mut self, now: Duration) {
        self.begun += 1;
        self.before = now;
    }

    /// Returns the time that is left at `now`; `None` before a part has ended. Parts take time in
    /// proportion to their work.
    fn left(&self, now: Duration) -> Option<Duration> {
        let (begun, later) = self.work.split_at_checked(self.begun)?;
        let (present, ended) = begun.split_last()?;
        let sum = |work: &[u64]| work.iter().map(|work| *work as f64).sum::<f64>();
        let per_work = self.before.as_secs_f64() / sum(ended);
        let of_present = per_work * *present as f64 - (now - self.before).as_secs_f64();
        // Not a number or infinite before a part has ended.
        Duration::try_from_secs_f64(of_present.max(0.0) + per_work * sum(later)).ok()
    }

    /// Returns which part it is, and the times that have passed and are left.
    fn in_words(&self, now: Duration) -> String {
        let passed = HumanDuration(now);
        let left = match self.left(now).filter(|_| self.begun > 1) {
            Some(left) => format!(", about {:#} left", HumanDuration(left)),
            None => String::new(),
        };
        format!("{} of {}, {passed:#} passed{left}", self.begun.max(1), self.work.len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the bar from the terminal.
pub(crate) fn end() {
    if let Some(shown) = lock(&SHOWN).take() {
        lock(&shown).bar.finish_and_clear();
    }
}

/// Returns the bar of a step of `total` units, 0 if unknown. `parts` says how far all parts are.
fn bar_of(
    step: &str,
    total: u64,
    parts: Option<String>,
    target: ProgressDrawTarget,
) -> ProgressBar {
    // A wide message is cut to what is left of the line.
    let template = match (&parts, total) {
        (None, 0) => "{spinner} {elapsed} elapsed  {wide_msg}",
        (None, _) => "{bar:12} {percent:>3} %  {elapsed} elapsed, {eta} left  {wide_msg}",
        (Some(_), 0) => "{spinner} {prefix}  {wide_msg}",
        (Some(_), _) => "{bar:4} {percent:>3} %  {prefix}  {wide_msg}",
    };
    let style = ProgressStyle::with_template(template).expect("the templates are right");
    let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
    let bar = bar.with_style(style).with_message(step.to_owned());
    bar.with_prefix(parts.unwrap_or_default())
}

impl Progress for Bars {
    fn begin_part(&self) {
        if let Some(parts) = &mut lock(&self.shown).parts {
            parts.begin(parts.start.elapsed());
        }
    }

    fn begin(&self, step: &str, total: u64) {
        let mut shown = lock(&self.shown);
        shown.bar.finish_and_clear();
        let parts = shown.parts.as_ref().map(|parts| parts.in_words(parts.start.elapsed()));
        shown.bar = bar_of(step, total, parts, ProgressDrawTarget::hidden());
        if shown.visible {
            shown.show();
        }
    }

    fn advance(&self, done: u64) {
        lock(&self.shown).bar.set_position(done);
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        lock(&self.shown).bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;

    /// A terminal of 50 columns that keeps what is written.
    #[derive(Clone, Debug, Default)]
    struct Narrow(Arc<Mutex<Vec<String>>>);

    impl TermLike for Narrow {
        fn width(&self) -> u16 {
            50
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            lock(&self.0).push(text.to_owned());
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Long specs once made bars that wrapped: each redraw then left a line behind.
    #[test]
    fn a_bar_fits_one_line_and_says_how_long_it_takes() {
        let step = "leveled(ratio=10, l0=2, pick=min_overlap): load(keys=400k, value=1000B)";
        let parts = || Some("3 of 17, 12s passed, about 56s left".to_owned());
        for (total, parts, words) in [
            (10, None, &["50 %", "elapsed", "left", "leveled("][..]),
            (0, None, &["elapsed"]),
            (10, parts(), &["50 %", "3 of 17", "56s left"]),
            (0, parts(), &["3 of 17", "56s left", "leveled("]),
        ] {
            let term = Narrow::default();
            let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
            let bar = bar_of(step, total, parts, target);
            bar.set_position(5);
            bar.tick();
            let lines = lock(&term.0).clone();
            let last = lines.iter().rfind(|line| !line.trim().is_empty()).expect("a bar");
            assert!(words.iter().all(|word| last.contains(word)), "{lines:?}");
            assert!(lines.iter().all(|line| console::measure_text_width(line) <= 50), "{lines:?}");
        }
    }

    #[test]
    fn time_left_follows_from_the_work_that_is_done() {
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let work = vec![10, 10, 40];
        let mut parts = Parts { work, begun: 0, start, before: Duration::ZERO };
        assert_eq!(parts.in_words(seconds(0)), "1 of 3, 0s passed");
        parts.begin(seconds(0));
        assert_eq!(parts.in_words(seconds(7)), "1 of 3, 7s passed");
        parts.begin(seconds(20));
        // 20 s for a sixth of the work. Of the second sixth, 5 s are over.
        assert_eq!(parts.in_words(seconds(25)), "2 of 3, 25s passed, about 2m left");
        // It takes longer than expected.
        assert_eq!(parts.left(seconds(60)), Some(seconds(80)));
        parts.begin(seconds(60));
        assert_eq!(parts.in_words(seconds(70)), "3 of 3, 70s passed, about 2m left");
        parts.begin(seconds(180));
        assert_eq!(parts.left(seconds(181)), None);
    }
}
