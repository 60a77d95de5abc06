//! Reads of keys whose value follows from several entries.

use super::view::Value;
use super::{Moment, Version};
use lsmith_storage::combine::{Combiner, Stack};
use lsmith_storage::error::Result;
use lsmith_storage::format::key_hash;
use lsmith_storage::table::ReadCount;
use lsmith_tree::SeqNo;

impl Version {
    /// Returns the value of `key`, whose newest entry at `moment` does not say it by itself: it is
    /// a combine, or it expires. Reads all entries down to the first that is no combine. A range
    /// delete with the number `erased` hides older ones.
    #[cold]
    #[inline(never)]
    pub(super) fn combine(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        mut erased: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<Value<'_>>> {
        loop {
            let stack = self.stack(key, moment, erased, reads)?;
            // A range delete may have come between the two, and operands above it.
            let newest = self.newest_erased(key, moment);
            if newest == erased {
                let value = stack.combine(key, Some(&*self.rules))?;
                return Ok(value.map(Value::InMemory));
            }
            erased = newest;
        }
    }

    /// Returns the entries of `key` at `moment` down to the first that is no combine, without
    /// those that the range delete with the number `erased` hides.
    fn stack(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        erased: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Stack> {
        let mut stack = Stack::at(self.rules.now()?, erased);
        self.active.push_on(&mut stack, key, || moment.in_memory());
        for memory in self.memory.iter() {
            if !stack.is_whole() {
                memory.push_on(&mut stack, key, moment);
            }
        }
        let hash = key_hash(key);
        for table in self.runs.iter().filter_map(|run| run.table_of(key)) {
            let mut seq = moment.in_tables();
            while !stack.is_whole()
                && let Some((block, slot)) = table.table().find(key, hash, seq, reads)?
            {
                stack.push(slot.kind, slot.seq, block.shared_value(&slot));
                // A combine always has a number, and older entries of the table smaller ones.
                let Some(older) = slot.seq.0.checked_sub(1) else { break };
                seq = SeqNo(older);
            }
        }
        Ok(stack)
    }
}
