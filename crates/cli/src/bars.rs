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

impl Progress for Bars {
    fn begin(&self, step: &str, total: u64) {
        let mut shown = lock(&self.shown);
        shown.bar.finish_and_clear();
        let template = match total {
            0 => "{spinner} {msg} {elapsed}",
            _ => "{bar:24} {percent:>3} % {msg} {eta}",
        };
        let hidden = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total), hidden);
        let style = ProgressStyle::with_template(template).expect("the templates are right");
        shown.bar = bar.with_style(style).with_message(step.to_owned());
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
