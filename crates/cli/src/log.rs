//! Warnings and errors of the store: lines on standard error after a command that succeeded.
//!
//! Lines printed earlier would break the progress bar. The cause of a failure would be printed
//! twice: as a warning of the store, and as the error line of the command.

use crate::failure::print_line;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::filter::LevelFilter;

/// The most bytes of warnings that are kept.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Warnings and errors of the store, one line each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<u8>>>);

/// Starts to keep the warnings of the store.
pub(crate) fn begin() -> Warnings {
    let warnings = Warnings::default();
    let kept = warnings.clone();
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(move || kept.clone())
        .with_level(false)
        .with_target(false)
        .without_time()
        .with_ansi(false)
        .init();
    warnings
}

impl Warnings {
    /// Prints all kept warnings. Call it only after a command that succeeded.
    pub(crate) fn print(&self) {
        self.lines().iter().for_each(|line| print_line(&format!("warning: {line}")));
    }

    fn lines(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let mut lines: Vec<_> = text.lines().map(|line| line.trim().to_owned()).collect();
        if kept.len() >= KEPT_BYTES_MAX {
            lines.push("more warnings may have been dropped".to_owned());
        }
        lines
    }
}

impl Write for Warnings {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_BYTES_MAX {
            kept.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_up_to_a_bound() {
        let mut warnings = Warnings::default();
        warnings.write_all(b" one path=/x\n").unwrap();
        warnings.write_all(b"two\n").unwrap();
        assert_eq!(warnings.lines(), ["one path=/x", "two"]);
        for _ in 0..10_000 {
            warnings.write_all(b"the same over and over\n").unwrap();
        }
        let lines = warnings.lines();
        assert!(lines.len() < 4000, "{}", lines.len());
        assert_eq!(lines.last().unwrap(), "more warnings may have been dropped");
    }
}
