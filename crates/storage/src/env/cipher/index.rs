//! Where the bytes of a file lie in its slots.

use super::slot::FULL_BYTES;
use std::io;

/// A slot from which on every slot is full, up to the next one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) slot: u64,
    /// The offset of its first byte.
    pub(super) start: u64,
}

/// Where the bytes of a file lie, up to `end`.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// In the order of slots. Empty for a file without slots.
    pub(super) breaks: Vec<Break>,
    /// The last slot.
    pub(super) last: u64,
    /// The offset behind the last byte of the last slot.
    pub(super) end: u64,
}

impl Index {
    /// Returns the index of a file whose slots begin with slot 1. `last` is its last slot, which
    /// ends at `end`. `start_of` returns the start of a slot, or `None` for a hole or damage.
    pub(super) fn build(
        last: Break,
        end: u64,
        mut start_of: impl FnMut(u64) -> io::Result<Option<u64>>,
    ) -> io::Result<Index> {
        let mut from = Break { slot: 1, start: 0 };
        let mut breaks = vec![from];
        // Ends of stretches that are still to be looked at, the next one last.
        let mut ends = vec![last];
        while let Some(end) = ends.pop() {
            if end.start != from.start + (end.slot - from.slot) * FULL_BYTES {
                if let Some(middle) = middle(from.slot, end.slot, &mut start_of)? {
                    ends.extend([end, middle]);
                    continue;
                }
                breaks.push(end);
            }
            from = end;
        }
        Ok(Index { breaks, last: last.slot, end })
    }

    /// Returns the last slot that begins at `offset` or in front of it.
    pub(super) fn slot_of(&self, offset: u64) -> u64 {
        let behind = self.breaks.partition_point(|found| found.start <= offset);
        let found = self.breaks[behind - 1];
        let next = self.breaks.get(behind).map_or(self.last + 1, |next| next.slot);
        (found.slot + (offset - found.start) / FULL_BYTES).min(next - 1)
    }

    /// Returns the offset of the first byte of `slot`.
    pub(super) fn start_of(&self, slot: u64) -> u64 {
        let behind = self.breaks.partition_point(|found| found.slot <= slot);
        let found = self.breaks[behind - 1];
        found.start + (slot - found.slot) * FULL_BYTES
    }

    /// Returns the offset behind the last byte that `slot` shows.
    pub(super) fn end_of(&self, slot: u64) -> u64 {
        if slot == self.last { self.end } else { self.start_of(slot + 1) }
    }
}

/// Returns a slot between `from` and `to` whose start is known, near the middle.
fn middle(
    from: u64,
    to: u64,
    start_of: &mut impl FnMut(u64) -> io::Result<Option<u64>>,
) -> io::Result<Option<Break>> {
    let middle = from + (to - from) / 2;
    for slot in (middle.max(from + 1)..to).chain((from + 1..middle).rev()) {
        if let Some(start) = start_of(slot)? {
            return Ok(Some(Break { slot, start }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the index of slots with these numbers of bytes; `None` is a hole behind full slots.
    fn index(slots: &[Option<u64>]) -> (Index, Vec<u64>, usize) {
        let mut starts = Vec::new();
        let mut end = 0;
        for bytes in slots {
            starts.push(end);
            end += bytes.unwrap_or(FULL_BYTES);
        }
        let mut looked = 0;
        let last = Break { slot: slots.len() as u64, start: starts[slots.len() - 1] };
        let built = Index::build(last, end, |slot| {
            looked += 1;
            let at = slot as usize - 1;
            Ok(slots[at].map(|_| starts[at]))
        });
        (built.unwrap(), starts, looked)
    }

    #[test]
    fn each_offset_lies_in_the_slot_that_holds_it() {
        let full = Some(FULL_BYTES);
        let cases: [&[Option<u64>]; 6] = [
            &[full; 100],
            &[Some(7)],
            &[full, full, Some(5), full, full, full, full, Some(9), Some(1), full, Some(3)],
            &[Some(1), Some(0), Some(2), full, Some(0), Some(4)],
            &[full, None, None, full, Some(8), full, None, full, Some(2)],
            &[full, None, None, None, Some(2)],
        ];
        for slots in cases {
            let (built, starts, _) = index(slots);
            for (at, start) in starts.iter().enumerate() {
                let bytes = slots[at].unwrap_or(FULL_BYTES);
                assert_eq!(built.start_of(at as u64 + 1), *start, "{slots:?}");
                assert_eq!(built.end_of(at as u64 + 1), start + bytes);
                for offset in [*start, start + bytes / 2, (start + bytes).saturating_sub(1)] {
                    if (*start..start + bytes).contains(&offset) {
                        assert_eq!(built.slot_of(offset), at as u64 + 1, "{slots:?} {offset}");
                    }
                }
            }
        }
        assert_eq!(index(&[full; 100_000]).2, 0, "a file without short slots is not searched");
    }

    #[test]
    fn few_slots_are_looked_at() {
        let mut slots = vec![Some(FULL_BYTES); 1 << 16];
        slots[777] = Some(9);
        slots[50_000] = Some(0);
        let (built, _, looked) = index(&slots);
        assert!(looked < 80, "{looked}");
        assert_eq!(built.breaks.len(), 3);
    }
}
