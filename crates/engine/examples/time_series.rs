//! A time series of bounded size: the merge policy `fifo`.
//!
//! `fifo` never merges, so each byte is written to the log and once to a table. While storage holds
//! more than `bytes`, the policy drops the oldest run (sorted run) unread. This is the one policy
//! that loses data, and it is meant to. To bound the age and not the size, give the keyspace an
//! `Expiry`.
//!
//! A key is a sensor and a time. Filters hold the sensor as a prefix, so that a scan skips runs
//! without it.
//!
//! `cargo run -p lsmith --example time_series`

use lsmith::{KeyspaceOptions, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

fn key(sensor: u32, time: u64) -> Vec<u8> {
    [&sensor.to_be_bytes()[..], &time.to_be_bytes()].concat()
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).open()?;
    let options = KeyspaceOptions {
        policy: Some("fifo(bytes=256KiB)".into()),
        memtable_bytes: Some(32 << 10),
        prefix_bytes: Some(4),
        ..Default::default()
    };
    let points = store.keyspace_with("points", &options)?;
    for time in 0..10_000_u64 {
        for sensor in 1..=3 {
            points.put(key(sensor, time), (time as f64).sin().to_le_bytes())?;
        }
    }
    store.flush()?;

    let (oldest, _) = points.prefix(2_u32.to_be_bytes()).next().ok_or("no points")??;
    let oldest = u64::from_be_bytes(oldest[4..].try_into()?);
    writeln!(out, "old points of sensor 2 are gone: {}", oldest > 5_000)?;
    let last: Vec<_> = points.range(key(2, 9_998)..key(3, 0)).collect::<lsmith::Result<_>>()?;
    writeln!(out, "{} points since 9998", last.len())?;
    writeln!(out, "storage is bounded: {}", points.stats().logical_bytes <= 256 << 10)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
