//! Workloads through their public interface.

mod fuzz;
mod garbage;
mod infos;
mod kinds;
mod limits;
mod lives;
mod mix;
mod public_traces;
mod recording;
mod steady;
mod trace;
mod ycsb;

use lsmith_workload::{Inputs, Op, Workload, WorkloadError};
use std::io::BufRead;

/// One file in memory, under any name.
struct File<'a>(&'a [u8]);

impl Inputs for File<'_> {
    fn open<'a>(&'a self, file: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        if file == "missing" { Err("no such file".to_owned()) } else { Ok(Box::new(self.0)) }
    }
}

fn build_with(text: &str, file: &[u8]) -> Result<Workload, WorkloadError> {
    Workload::from_spec(&text.parse().expect("the spec parses"), &File(file))
}

fn build(text: &str) -> Workload {
    build_with(text, b"").unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    build_with(text, b"").expect_err(text).to_string()
}

fn ops(workload: &Workload) -> Vec<Op> {
    workload.ops().collect::<Result<_, _>>().expect("the stream is sound")
}

fn key(workload: &Workload, item: u64) -> String {
    let mut key = Vec::new();
    workload.key(item, &mut key);
    assert_eq!(key.len(), workload.key_bytes(item));
    String::from_utf8(key).expect("keys are text here")
}

/// Share of the operations that `is` holds for.
fn share(ops: &[Op], is: impl Fn(&Op) -> bool) -> f64 {
    ops.iter().filter(|op| is(op)).count() as f64 / ops.len() as f64
}
