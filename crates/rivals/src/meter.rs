//! What the process has cost so far: CPU time, bytes to the device, memory, files.

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the process must do nothing to be taken for settled.
const QUIET: Duration = Duration::from_millis(300);

/// What the process had cost at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// User and system time of all threads.
    pub(crate) cpu: Duration,
    /// Bytes read from the device.
    pub(crate) read_bytes: u64,
    /// Bytes of pages made dirty, to be written to the device.
    pub(crate) written_bytes: u64,
    /// The part of them that vanished before it was written.
    pub(crate) cancelled_bytes: u64,
}

impl Reading {
    /// Reads the counters of this process.
    pub(crate) fn now() -> Result<Reading> {
        let io = fs::read_to_string("/proc/self/io").context("/proc/self/io")?;
        Ok(Reading {
            cpu: cpu(),
            read_bytes: field(&io, "read_bytes:")?,
            written_bytes: field(&io, "write_bytes:")?,
            cancelled_bytes: field(&io, "cancelled_write_bytes:")?,
        })
    }

    /// What was added since `earlier`.
    pub(crate) fn since(self, earlier: Reading) -> Reading {
        Reading {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            cancelled_bytes: self.cancelled_bytes.saturating_sub(earlier.cancelled_bytes),
        }
    }

    /// Bytes that reach the device.
    pub(crate) fn device_bytes(self) -> u64 {
        self.written_bytes.saturating_sub(self.cancelled_bytes)
    }
}

/// Bytes that this thread has read from the device so far.
pub(crate) fn thread_read_bytes() -> Result<u64> {
    let path = "/proc/thread-self/io";
    field(&fs::read_to_string(path).context(path)?, "read_bytes:")
}

/// CPU time of the process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Memory of the process that is resident, in bytes.
pub(crate) fn rss_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    Ok(field(&status, "VmRSS:")? * 1024)
}

/// The number behind `name` at the beginning of a line.
fn field(text: &str, name: &str) -> Result<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    let number = rest.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no number in `{name}`"))
}

/// Bytes that the files below `folder` take on the device. Files that go away meanwhile count
/// nothing.
pub(crate) fn disk_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => disk_bytes(&entry.path()),
        Ok(data) => data.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

/// Waits until the process has used next to no CPU time for a while, for stores that do not say
/// when their work in the background has come to rest.
pub(crate) fn wait_until_quiet() {
    let mut quiet_since = Instant::now();
    let mut before = cpu();
    while quiet_since.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(30));
        let now = cpu();
        if now - before > Duration::from_millis(1) {
            quiet_since = Instant::now();
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_at_the_beginning_of_a_line() {
        let text = "write_bytes: 12\ncancelled_write_bytes: 3\n";
        assert_eq!(field(text, "cancelled_write_bytes:").unwrap(), 3);
        assert_eq!(field(text, "write_bytes:").unwrap(), 12);
        assert!(field(text, "read_bytes:").is_err());
    }

    #[test]
    fn files_and_work_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let before = Reading::now().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        let path = dir.path().join("inner/file");
        fs::write(&path, vec![1; 100_000]).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        assert!(disk_bytes(dir.path()) >= 100_000);
        assert!(Reading::now().unwrap().since(before).cpu > Duration::ZERO);
        assert!(rss_bytes().unwrap() > 100_000);
    }
}
