//! What several stores of a process share.

use crate::error::{call, invalid, lsmith_error_t, quietly};
use lsmith::{Builder, Memory, Threads};

/// What several stores of a process share: one limit on their memory, and the threads that merge.
#[derive(Debug)]
pub struct lsmith_shared_t {
    memory: Option<Memory>,
    threads: Option<Threads>,
}

impl lsmith_shared_t {
    pub(crate) fn give_to(&self, builder: Builder) -> Builder {
        let builder = match &self.memory {
            Some(memory) => builder.memory(memory),
            None => builder,
        };
        match &self.threads {
            Some(threads) => builder.shared_threads(threads),
            None => builder,
        }
    }
}

/// Returns what stores share: a limit of `memory_bytes` on the memory of all of them together, or
/// none if that is 0, and `threads` threads that merge for all, or threads of their own if that is
/// 0. Returns null on error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_shared_create(
    memory_bytes: u64,
    threads: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_shared_t>> {
    call(error, None, || {
        if (1..1 << 20).contains(&memory_bytes) {
            let message =
                format!("memory of {memory_bytes} bytes: expected at least 1048576, or 0");
            return Err(invalid(message));
        }
        let memory = (memory_bytes > 0).then(|| Memory::new(memory_bytes));
        let threads = (threads > 0).then(|| Threads::new(threads)).transpose()?;
        Ok(Some(Box::new(lsmith_shared_t { memory, threads })))
    })
}

/// Destroys the handle. Stores that were opened with it keep what they share.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_shared_destroy(shared: Option<Box<lsmith_shared_t>>) {
    quietly((), || drop(shared));
}

/// Returns the bytes that all stores with this limit hold in memory now; 0 without a limit.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_shared_memory(shared: Option<&lsmith_shared_t>) -> u64 {
    quietly(0, || {
        let memory = shared.and_then(|shared| shared.memory.as_ref());
        memory.map_or(0, Memory::bytes)
    })
}
