use super::*;

fn size(bytes: u64, entries: u64) -> Size {
    Size { bytes, entries, tombstones: 0 }
}

/// Blocks of 100 bytes, entries of 10.
const RULES: BlockRules = BlockRules {
    block_bytes: 100,
    full_bytes: 100,
    before: None,
    empty_bytes: 0,
    allowed_bytes: i64::MAX,
};

fn write(front: Front, takes_after: bool, bytes: u64) -> Option<Write> {
    Some(Write { front, takes_after, bytes })
}

#[test]
fn a_full_block_holds_as_many_mean_entries_as_fit() {
    assert_eq!(full_bytes(4096, size(1170, 10)), 35 * 117);
    assert_eq!(full_bytes(4096, size(1179, 10)), 35 * 117);
    assert_eq!(full_bytes(4096, size(4096, 1)), 4096);
    assert_eq!(full_bytes(4096, size(5000, 1)), 5000);
    assert_eq!(full_bytes(4096, size(0, 0)), 4096);
    assert_eq!(full_bytes(4096, size(3, 7)), 4096);
    assert_eq!((room(4095, 95), room(4095, 4096)), (4000, 0));
}

#[test]
fn blocks_are_cut_before_the_entry_that_does_not_fit() {
    let mut merge = BlockMerge::new(RULES);
    assert_eq!(merge.add(60), None);
    assert_eq!(merge.add(40), None);
    assert_eq!(merge.add(10), write(Front::Nothing, false, 100));
    assert_eq!(merge.add(500), write(Front::Nothing, false, 10));
    assert_eq!(merge.add(1), write(Front::Nothing, false, 500));
    assert_eq!(merge.end(None), write(Front::Nothing, false, 1));
}

#[test]
fn no_two_neighbours_fit_into_one() {
    let mut merge = BlockMerge::new(BlockRules { before: Some(40), ..RULES });
    assert!(!merge.may_keep(size(60, 6)), "it would fit into the block before");
    assert!(merge.may_keep(size(61, 6)));
    assert_eq!(merge.keep(size(61, 6)), None);
    assert_eq!(merge.add(39), None);
    assert!(!merge.may_keep(size(100, 10)), "what is open would fit into the last block");
    assert_eq!(merge.add(10), None);
    assert!(!merge.may_keep(size(51, 5)), "it would fit behind what is open");
    assert!(merge.may_keep(size(52, 5)));
    assert_eq!(merge.keep(size(52, 5)), write(Front::Nothing, false, 49));
    assert_eq!(merge.end(Some(49)), None);
}

#[test]
fn the_last_block_joins_what_it_fits_with() {
    let mut merge = BlockMerge::new(RULES);
    assert_eq!(merge.keep(size(70, 7)), None);
    assert_eq!(merge.add(20), None);
    assert_eq!(merge.clone().end(None), write(Front::Kept, false, 90));
    assert_eq!(merge.clone().end(Some(11)), write(Front::Kept, false, 90));
    assert_eq!(merge.clone().end(Some(10)), write(Front::Kept, true, 100));
    // A block closed early, for an entry that is too large for it.
    assert_eq!(merge.add(90), write(Front::Kept, false, 90));
    assert_eq!(merge.end(Some(10)), write(Front::Nothing, true, 100));
}

#[test]
fn blocks_beside_the_output_join_too() {
    let rules = BlockRules { before: Some(50), ..RULES };
    assert_eq!(BlockMerge::new(rules).end(Some(50)), write(Front::Before, true, 100));
    assert_eq!(BlockMerge::new(rules).end(Some(51)), None);
    assert_eq!(BlockMerge::new(RULES).end(Some(10)), None);
    let mut merge = BlockMerge::new(rules);
    assert_eq!(merge.add(30), None);
    assert_eq!(merge.clone().end(Some(20)), write(Front::Before, true, 100));
    assert_eq!(merge.end(Some(21)), write(Front::Before, false, 80));
    let mut merge = BlockMerge::new(rules);
    assert_eq!(merge.keep(size(60, 6)), None);
    assert_eq!(merge.end(Some(40)), write(Front::Kept, true, 100));
}

/// The paper's rule in slots: kept if no more than `allowed - B + 1` slots are then empty.
#[test]
fn the_level_keeps_to_its_allowance_of_empty_room() {
    for allowed in 0..300 {
        for records in 1..=10_u64 {
            let rules = BlockRules { empty_bytes: 40, allowed_bytes: allowed, ..RULES };
            let merge = BlockMerge::new(rules);
            let empty = 4 + (10 - records as i64);
            let expected = empty <= allowed / 10 - 10 + 1;
            let message = format!("{records} records, {allowed} bytes allowed");
            assert_eq!(merge.may_keep(size(records * 10, records)), expected, "{message}");
        }
    }
    let mut merge = BlockMerge::new(BlockRules { allowed_bytes: 129, ..RULES });
    assert!(!merge.may_keep(size(60, 6)));
    merge.begin_target(90);
    assert!(merge.may_keep(size(60, 6)), "the block that goes gives its room back");
    assert_eq!(merge.keep(size(60, 6)), None);
    assert!(!merge.may_keep(size(80, 8)));
}

#[test]
fn pieces_have_a_least_size() {
    assert!(is_piece(0, false, [50]) && is_piece(1, false, [50]));
    assert!(!is_piece(101, false, [50, 50]) && is_piece(101, false, [50, 50, 1]));
    assert!(is_piece(1000, true, [50]));
    assert!(!is_piece(u64::MAX, false, [50, 50]));
    // It looks no further than it must.
    assert!(is_piece(100, false, std::iter::repeat(50)));
}

/// Any sequence of entries and of blocks that may be kept: nothing is lost, no block is larger than
/// it may be, no two neighbours fit into one.
#[test]
fn any_merge_leaves_blocks_that_do_not_fit_together() {
    let mut state: u64 = 1;
    let mut below = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for round in 0..3000 {
        let before = (below(2) == 0).then(|| 1 + below(120));
        let after = (below(2) == 0).then(|| 1 + below(120));
        let largest = [10, 60, 150][round % 3];
        let mut merge = BlockMerge::new(BlockRules { before, ..RULES });
        let mut blocks: Vec<u64> = before.into_iter().collect();
        let put = |blocks: &mut Vec<u64>, write: Option<Write>| {
            let Some(write) = write else { return };
            if write.front != Front::Nothing {
                blocks.pop();
            }
            blocks.push(write.bytes);
        };
        let mut sum = blocks.iter().sum::<u64>() + after.unwrap_or(0);
        for _ in 0..below(30) {
            let block = size(1 + below(120), 1);
            if below(3) == 0 && merge.may_keep(block) {
                put(&mut blocks, merge.keep(block));
                blocks.push(block.bytes);
                sum += block.bytes;
            } else {
                let entry = 1 + below(largest);
                put(&mut blocks, merge.add(entry));
                sum += entry;
            }
        }
        let last = merge.end(after);
        put(&mut blocks, last);
        if !last.is_some_and(|write| write.takes_after) {
            blocks.extend(after);
        }
        assert_eq!(blocks.iter().sum::<u64>(), sum, "round {round}");
        let thin = blocks.windows(2).find(|pair| pair[0] + pair[1] <= 100);
        assert_eq!(thin, None, "round {round}: {blocks:?}");
    }
}
