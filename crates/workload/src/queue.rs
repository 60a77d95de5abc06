//! `queue`: entries come at one end, and go at the other.

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use crate::Op;
use crate::info::{ParamUnit, VALUE, WorkloadInfo, param};
use crate::keys::{DecimalKeys, KeySpace};
use crate::parts::{KEYS_MAX, Parts, value_bytes};

/// Puts keys in ascending order. Whenever `keep + purge` of them are there, one range delete takes
/// the oldest `purge`. So a log behaves that is cut after each snapshot, or a queue that is read in
/// batches.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    keys: u64,
    keep: u64,
    purge: u64,
    value_bytes: u32,
}

impl Queue {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "queue",
        summary: "puts ascending keys, and deletes the oldest ones by ranges",
        source: "",
        argument: None,
        params: &[
            param("keys", ParamUnit::Count, "the number of puts, 1 to 2^32 - 1").or("1M"),
            param(
                "keep",
                ParamUnit::Count,
                "the number of keys that each range delete leaves; a tenth of all if left out",
            ),
            param(
                "purge",
                ParamUnit::Count,
                "the number of keys of a range delete; a tenth of `keep` if left out",
            ),
            VALUE,
        ],
        example: "queue(keys=20k, keep=4k, purge=1k, value=100B)",
    };

    pub(crate) fn build(params: &Params) -> Result<Parts<Self>, SpecError> {
        let keys = params.count("keys", 1_000_000, 1..=KEYS_MAX)?;
        let keep = params.count("keep", keys / 10, ..=KEYS_MAX)?;
        let purge = params.count("purge", (keep / 10).max(1), 1..=KEYS_MAX)?;
        let value_bytes = value_bytes(params, 1000)?;
        Ok(Parts {
            generator: Self { keys, keep, purge, value_bytes },
            keys: KeySpace::Decimal(DecimalKeys::sequential()),
            items: keys,
            spec: Spec::bare("queue")
                .with("keys", format_count(keys))
                .with("keep", format_count(keep))
                .with("purge", format_count(purge))
                .with("value", format_bytes(value_bytes.into())),
        })
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.keys + self.purges(self.keys)
    }

    /// Returns the number of range deletes of the first `puts` puts.
    fn purges(&self, puts: u64) -> u64 {
        puts.saturating_sub(self.keep) / self.purge
    }

    pub(crate) fn ops(&self) -> QueueOps {
        QueueOps { queue: self.clone(), puts: 0, purges: 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct QueueOps {
    queue: Queue,
    puts: u64,
    /// The number of range deletes so far.
    purges: u64,
}

impl QueueOps {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        if self.purges < self.queue.purges(self.puts) {
            let first = self.purges * self.queue.purge;
            self.purges += 1;
            return Some(Op::delete_range(first..first + self.queue.purge));
        }
        if self.puts == self.queue.keys {
            return None;
        }
        self.puts += 1;
        Some(Op::put(self.puts - 1, self.queue.value_bytes))
    }
}
