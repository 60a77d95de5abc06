//! The operations of a core workload in order.

use super::distribution::Picker;
use super::mix::Choice;
use super::{Purpose, Ycsb};
use crate::{Op, Rng};

/// First the load phase, then the run phase.
#[derive(Clone, Debug)]
pub(crate) struct YcsbOps<'a> {
    ycsb: &'a Ycsb,
    /// The next record of the load phase.
    next_load: u64,
    /// Operations left in the run phase.
    run_left: u64,
    picker: Picker,
    choices: Rng,
    keys: Rng,
    absent_keys: Rng,
    scan_lengths: Rng,
    value_lengths: Rng,
}

impl<'a> YcsbOps<'a> {
    pub(super) fn new(ycsb: &'a Ycsb, seed: u64) -> Self {
        let core = &ycsb.core;
        Self {
            ycsb,
            next_load: core.inserted.start,
            run_left: core.operation_count,
            picker: Picker::new(&core.requests, core.inserted.clone(), core.record_count),
            choices: Purpose::Choices.rng(seed),
            keys: Purpose::Keys.rng(seed),
            absent_keys: Purpose::AbsentKeys.rng(seed),
            scan_lengths: Purpose::ScanLengths.rng(seed),
            value_lengths: Purpose::ValueLengths.rng(seed),
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        let core = &self.ycsb.core;
        if self.next_load < core.inserted.end {
            self.next_load += 1;
            return Some(Op::put(self.next_load - 1, self.value_bytes()));
        }
        self.run_left = self.run_left.checked_sub(1)?;
        Some(match core.mix.draw(&mut self.choices) {
            Choice::Read => Op::read(self.picker.draw(&mut self.keys)),
            Choice::ReadAbsent => {
                let absent = &self.ycsb.absent;
                let count = absent.end - absent.start;
                Op::read(absent.start + self.absent_keys.below(count))
            }
            Choice::Update => Op::put(self.picker.draw(&mut self.keys), self.value_bytes()),
            Choice::Insert => Op::put(self.picker.insert(), self.value_bytes()),
            Choice::Delete => Op::delete(self.picker.draw(&mut self.keys)),
            Choice::Scan => {
                let item = self.picker.draw(&mut self.keys);
                Op::scan(item, core.scan_lengths.draw(&mut self.scan_lengths))
            }
            Choice::ReadModifyWrite => {
                Op::read_modify_write(self.picker.draw(&mut self.keys), self.value_bytes())
            }
        })
    }

    #[inline]
    fn value_bytes(&mut self) -> u32 {
        self.ycsb.values.draw(&mut self.value_lengths)
    }
}
