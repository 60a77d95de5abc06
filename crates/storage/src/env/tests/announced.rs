//! What a reader announced.

use super::write_synced;
#[cfg(feature = "encryption")]
use crate::env::cipher::{CipherEnv, FULL_BYTES};
use crate::env::{Env, RealEnv};
use std::ops::Range;
#[cfg(feature = "encryption")]
use std::sync::Arc;

/// Checks that the device reads what was announced once, of files past the system's cache. A read
/// of other bytes than announced would be a second one. The file has units of `unit` bytes.
fn check_announced(env: &dyn Env, unit: u64) {
    // In the build's own directory: temporary files may be in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("file");
    let all: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    write_synced(env, path.to_str().unwrap(), &all);
    let file = env.open(&path).unwrap();
    file.read_exact_at(&mut [0], 0).unwrap();
    // What this thread had devices read.
    let device_bytes = || {
        let io = std::fs::read_to_string("/proc/thread-self/io").ok()?;
        io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse::<u64>().ok()
    };
    let Some(before) = device_bytes() else { return };
    let mut announced = 0;
    // Every other one ends with a unit.
    let end = |number: u64| (3 * number + 2) * unit + number % 2 * number;
    let ranges: Vec<_> = (0..200).map(|number| 3 * number * unit + 7..end(number)).collect();
    for ranges in ranges.chunks(20) {
        let before = device_bytes().unwrap();
        ranges.iter().for_each(|range| file.announce(range.clone()));
        announced += device_bytes().unwrap() - before;
        for Range { start, end } in ranges.iter().cloned() {
            let mut read = vec![0; (end - start) as usize];
            file.read_exact_at(&mut read, start).unwrap();
            assert!(read == all[start as usize..end as usize]);
        }
    }
    let read = device_bytes().unwrap() - before;
    // Where no read begins early, or others read for this thread, none is counted then.
    assert!(announced == read || announced == 0, "{announced} bytes announced, {read} read");
}

#[test]
fn is_read_once() {
    check_announced(&RealEnv::new().direct(), 4096);
}

#[cfg(feature = "encryption")]
#[test]
fn is_read_once_of_an_encrypted_file() {
    use crate::cipher::{Keys, MasterKey};
    let keys = Keys::new(MasterKey::aes_256_gcm([3; 32]));
    check_announced(&CipherEnv::new(Arc::new(RealEnv::new().direct()), keys), FULL_BYTES);
}
