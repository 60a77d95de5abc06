//! A recording of the store, beside all else that is done to it.

use crate::oracle::{Fed, Key, What, Written};
use crate::run::Run;
use crate::scripted::{Call, Op, Script};
use lsmith::RecordOptions;
use lsmith::env::{Env, MemEnv};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const FOLDER: &str = "/recordings";

/// Lines wait for this long until they are written.
const WAIT_SECONDS: u64 = 6;

/// What a disk does to recordings.
#[derive(Default)]
pub(crate) struct Tape {
    /// Seconds by which its clock is fast.
    seconds: AtomicU64,
    /// True if recordings cannot be written.
    fails: AtomicBool,
}

/// The script of a disk. Each disk of a run has the same tape.
pub(crate) struct OnTape(pub(crate) Arc<Tape>);

impl Script for OnTape {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        let OnTape(tape) = self;
        if call.op == Op::Now {
            call.time += Duration::from_secs(tape.seconds.load(Ordering::SeqCst));
        }
        if call.is_before(Op::Write) && call.is_of("recording") && tape.fails.load(Ordering::SeqCst)
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// A recording of all keys that is under way.
pub(crate) struct Recorded {
    path: PathBuf,
    /// The number of the first write in it.
    from: u64,
    /// The keys that were there at its beginning, with the lengths of their values. `None` if the
    /// oracle cannot say.
    base: Option<Vec<(Key, usize)>>,
    /// True if a write of the file may have failed.
    may_lack: bool,
}

/// What a file has: the lines of its whole parts, and true if nothing follows them.
struct Found {
    lines: Vec<String>,
    is_whole: bool,
}

impl Run {
    pub(crate) fn record_options(&mut self) -> RecordOptions {
        RecordOptions { one_in: 1, base: self.dice.chance(50), ..RecordOptions::default() }
    }

    /// Notes that the store is recorded in a new file at `path`.
    pub(crate) fn note_recording(&mut self, path: PathBuf, base: Option<Vec<(Key, usize)>>) {
        self.recorded = Some(Recorded { path, from: self.last() + 1, base, may_lack: false });
    }

    /// Begins a recording, ends it, lets time pass, or lets the disk fail.
    pub(crate) fn record(&mut self) {
        if self.recorded.is_none() {
            let options = self.record_options();
            let base = (options.base && self.knows_base()).then(|| self.base());
            let path = self.store().record(FOLDER, &options).unwrap();
            return self.note_recording(path, base);
        }
        match self.dice.below(8) {
            0..=1 => self.stop_recording(),
            2 => {
                self.tape.fails.store(true, Ordering::SeqCst);
                self.recorded.as_mut().unwrap().may_lack = true;
                self.pass();
                self.write();
                // The write has met the failure, unless the threads that merge have before.
                let told = self.store().recording().unwrap();
                assert!(told.ended.is_some(), "{told:?}");
                self.stop_recording();
            }
            _ => self.pass(),
        }
    }

    fn pass(&self) {
        self.tape.seconds.fetch_add(WAIT_SECONDS, Ordering::SeqCst);
    }

    /// Ends the recording and looks at it.
    pub(crate) fn stop_recording(&mut self) {
        if self.recorded.is_some() {
            self.store().stop_recording().unwrap().expect("the store is recorded");
            self.check_recording(true);
        }
    }

    /// Checks the recording, which has ended: by power loss, or in a clean way.
    pub(crate) fn check_recording(&mut self, is_clean: bool) {
        self.tape.fails.store(false, Ordering::SeqCst);
        let Some(recorded) = self.recorded.take() else { return };
        let is_complete = is_clean && !recorded.may_lack;
        let Some(found) = found(&self.env, &recorded.path) else {
            assert!(!is_clean, "{} is gone", recorded.path.display());
            return;
        };
        assert!(found.is_whole || !is_complete, "a part is damaged: {:?}", found.lines);
        let count = follow(&found.lines, &self.oracle.batches, recorded.from);
        let last = self.oracle.last + 1;
        if is_complete {
            assert_eq!(count, last, "the recording lacks writes: {:?}", found.lines);
        }
        let is_base_whole = found.lines.iter().any(|line| line == "base");
        if let (Some(there), true) = (recorded.base, is_base_whole) {
            assert_eq!(loads(&found.lines), there, "the base");
        }
    }

    /// Returns true if the oracle says what a read of all that is there finds. With a filter that
    /// depends on merges, and with expiry on the clock.
    fn knows_base(&self) -> bool {
        use crate::Feature::{Expiry, Filter};
        !self.has(Filter) && !self.has(Expiry)
    }

    fn base(&self) -> Vec<(Key, usize)> {
        let spaces = self.oracle.spaces.iter();
        let all = spaces.flat_map(|space| space.content(u64::MAX, self.now()));
        let mut keys: Vec<_> = all.map(|(key, (value, _))| (key, value.len())).collect();
        keys.sort();
        keys
    }
}

/// Reads the file at `path`, up to the first part that is damaged. `None` if there is none.
fn found(env: &MemEnv, path: &Path) -> Option<Found> {
    let file = env.open(path).ok()?;
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let (mut lines, mut part, mut part_bytes) = (vec![], vec![], vec![]);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line).trim_end().to_string();
        if let Some(check) = text.strip_prefix("check,") {
            let step =
                |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            let hash = part_bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
            if check != format!("{},{hash:016x}", part_bytes.len()) {
                return Some(Found { lines, is_whole: false });
            }
            part_bytes.clear();
            lines.append(&mut part);
        } else if !text.starts_with("lsmith recording ") {
            part_bytes.extend_from_slice(line);
            part.push(text);
        }
    }
    Some(Found { lines, is_whole: part.is_empty() })
}

/// Checks that `lines` have the writes of `batches` from number `from` on. Returns the number
/// behind the last one.
fn follow(lines: &[String], batches: &[Written], from: u64) -> u64 {
    let writes = ["put", "put_until", "delete", "combine", "delete_range"];
    let mut found = lines.iter().filter_map(|line| {
        let (_, line) = line.split_once(',')?;
        let (op, line) = line.split_once(',')?;
        let (number, line) = line.split_once(',')?;
        writes.contains(&op).then(|| (number.to_string(), format!("{op},{line}")))
    });
    let mut ids: BTreeMap<String, u64> = BTreeMap::new();
    let mut next = from;
    for batch in batches.iter().filter(|batch| batch.first >= from) {
        let Some(changes) = &batch.changes else {
            // Their order is up to the store.
            for write in batch.first..=batch.last {
                if found.next().is_none() {
                    return write;
                }
            }
            next = batch.last + 1;
            continue;
        };
        for (change, write) in changes.iter().zip(batch.first..) {
            let Some((number, line)) = found.next() else { return write };
            assert_eq!(line, text(change), "write {write}");
            let id = *ids.entry(number.clone()).or_insert(change.space());
            assert_eq!(id, change.space(), "write {write} is one to keyspace {number}");
        }
        next = batch.last + 1;
    }
    assert_eq!(found.next(), None, "the last write is {}", next - 1);
    next
}

/// Returns the line of a write, from its kind on and without its keyspace.
fn text(change: &Fed) -> String {
    match change {
        Fed::Key(_, key, What::Put(value, None)) => format!("put,{},{}", escaped(key), value.len()),
        Fed::Key(_, key, What::Put(value, Some(_))) => {
            format!("put_until,{},{}", escaped(key), value.len())
        }
        Fed::Key(_, key, What::Delete) => format!("delete,{},0", escaped(key)),
        Fed::Key(_, key, What::Combine(operand)) => {
            format!("combine,{},{}", escaped(key), operand.len())
        }
        Fed::Range(_, start, end) => {
            let start = if start.is_empty() { &[0][..] } else { start };
            let end = end.as_deref().unwrap_or(&[0xff; 64]);
            format!("delete_range,{},0,{}", escaped(start), escaped(end))
        }
    }
}

/// Returns a key of the tests as a recording has it.
fn escaped(key: &[u8]) -> String {
    let escape = |byte: &u8| match byte {
        b'!'..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    key.iter().map(escape).collect()
}

/// Returns the keys of the base, with the lengths of their values.
fn loads(lines: &[String]) -> Vec<(Key, usize)> {
    let mut keys: Vec<(Key, usize)> = vec![];
    for line in lines {
        if let [_, "load", _, key, size] = line.split(',').collect::<Vec<_>>()[..] {
            assert!(!key.contains('\\'), "a key of the tests");
            keys.push((key.as_bytes().to_vec(), size.parse().unwrap()));
        }
    }
    keys.sort();
    keys
}
