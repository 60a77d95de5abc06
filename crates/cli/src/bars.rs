//! Progress bars on a terminal, for commands that take more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lsmith_lab::Progress;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The bar on standard error, so that a signal can end it.
static SHOWN: Mutex<Option<Arc<Mutex<Shown>>>> = Mutex::new(None);

/// The time after which a command shows a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows each step of an experiment as a bar on standard error, after the first second of the
/// command. Shows nothing if standard error is not a terminal.
pub(crate) struct Bars {
    shown: Arc<Mutex<Shown>>,
    /// Dropped when the command ends; that ends the thread that waits for the first second.
    _running: Sender<()>,
}

struct Shown {
    /// True once the first second is over.
    visible: bool,
    bar: ProgressBar,
}

impl Bars {
    pub(crate) fn new() -> Bars {
        let shown = Arc::new(Mutex::new(Shown { visible: false, bar: ProgressBar::hidden() }));
        let (running, ended) = channel();
        if std::io::stderr().is_terminal() {
            let shown = Arc::clone(&shown);
            std::thread::spawn(move || {
                if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    lock(&shown).show();
                }
            });
        }
        *lock(&SHOWN) = Some(Arc::clone(&shown));
        Bars { shown, _running: running }
    }
}

impl Shown {
    fn show(&mut self) {
        self.visible = true;
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(100));
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

/// Returns the bar of a step of `total` units, 0 if unknown.
fn bar_of(step: &str, total: u64, target: ProgressDrawTarget) -> ProgressBar {
    // A wide message is cut to what is left of the line.
    let template = match total {
        0 => "{spinner} {elapsed} elapsed  {wide_msg}",
        _ => "{bar:12} {percent:>3} %  {elapsed} elapsed, {eta} left  {wide_msg}",
    };
    let style = ProgressStyle::with_template(template).expect("the templates are right");
    let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
    bar.with_style(style).with_message(step.to_owned())
}

impl Progress for Bars {
    fn begin(&self, step: &str, total: u64) {
        let mut shown = lock(&self.shown);
        shown.bar.finish_and_clear();
        shown.bar = bar_of(step, total, ProgressDrawTarget::hidden());
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
    use std::io;

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
        for (total, words) in
            [(10, &["50 %", "elapsed", "left", "leveled("][..]), (0, &["elapsed"])]
        {
            let term = Narrow::default();
            let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
            let bar = bar_of(step, total, target);
            bar.set_position(5);
            bar.tick();
            let lines = lock(&term.0).clone();
            let last = lines.iter().rfind(|line| !line.trim().is_empty()).expect("a bar");
            assert!(words.iter().all(|word| last.contains(word)), "{lines:?}");
            assert!(lines.iter().all(|line| console::measure_text_width(line) <= 50), "{lines:?}");
        }
    }
}
