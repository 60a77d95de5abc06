//! Files with correct checksums whose parts disagree, as a faulty writer would leave them.

use super::*;
use crate::error::Error;
use crate::format::{
    BlockBuilder, Fence, FencesBuilder, Filter, FilterBuilder, SEAL_BYTES, SealedPlace, Section,
    common_prefix_bytes, key_hash, seal, unseal,
};
use crate::table::{ProfileGrain, ReadTable};
use lsmith_tree::logical_bytes;

fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> =
        (0..40u64).map(|n| Entry::put(format!("key{n:02}"), 50 + n, [5; 20])).collect();
    entries.extend((1..20).rev().map(|seq| Entry::put("more", seq, [6; 20])));
    entries
}

/// Returns the file of [`entries`] after `change` was made to the payload of the part at `section`,
/// which keeps its length and gets a new seal; and the place of that part.
fn resealed(
    section: impl FnOnce(&Table) -> Section,
    change: impl FnOnce(&mut [u8]),
) -> (Section, Arc<MemEnv>) {
    let (disk, _) = write(&entries(), &options(300));
    let section = section(&open(&disk, &Arc::new(BlockCache::new(0))).unwrap());
    let disk = changed(&disk, |bytes| {
        let range = section.start as usize..section.end as usize;
        let place = SealedPlace { table: TABLE, offset: section.start };
        let mut part = unseal(&bytes[range.clone()], place).unwrap().to_vec();
        change(&mut part);
        seal(&mut part, 0, place);
        bytes[range].copy_from_slice(&part);
    });
    (section, disk)
}

/// Returns the error of `verify` for the [`resealed`] file.
fn verify_changed(
    section: impl FnOnce(&Table) -> Section,
    change: impl FnOnce(&mut [u8]),
) -> (Section, Error) {
    let (section, disk) = resealed(section, change);
    let error = match open(&disk, &Arc::new(BlockCache::new(0))) {
        Ok(table) => table.verify(&[KeyRange::ALL]).expect_err("the parts disagree"),
        Err(error) => error,
    };
    assert_eq!(error.path(), Some(path()));
    (section, error)
}

#[track_caller]
fn check(outcome: (Section, Error), what: &str) {
    let (section, error) = outcome;
    assert!(error.to_string().contains(what), "{error}");
    assert!(section.contains(&error.offset().expect("damage has an offset")), "{error}");
}

#[test]
fn filter_that_excludes_a_key_is_found() {
    let filter = |table: &Table| table.file.parts().unwrap().footer.filter;
    let outcome = verify_changed(filter, |payload| {
        let mut builder = FilterBuilder::new(10);
        (0..41u64).for_each(|n| builder.add(key_hash(&n.to_be_bytes())));
        let other = builder.finish();
        assert!(Filter::parse(&other).is_ok());
        payload.copy_from_slice(&other);
    });
    check(outcome, "the filter excludes a key");
}

#[test]
fn properties_with_wrong_counts_are_found() {
    let properties = |table: &Table| table.file.parts().unwrap().footer.properties;
    let outcome = verify_changed(properties, |payload| {
        assert_eq!(payload[1], 59, "the number of entries");
        payload[1] = 58;
    });
    check(outcome, "do not agree with the entries");
}

/// Also if only a part of the table is checked.
#[test]
fn profile_with_wrong_counts_is_found() {
    let options = TableOptions { grain: ProfileGrain::Blocks, ..options(300) };
    let (disk, _) = write(&entries(), &options);
    let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
    let section = table.file.parts().unwrap().footer.properties;
    let disk = changed(&disk, |bytes| {
        let range = section.start as usize..section.end as usize;
        let place = SealedPlace { table: TABLE, offset: section.start };
        let payload = unseal(&bytes[range.clone()], place).unwrap();
        let parts = table.file.parts().unwrap();
        let mut facts = TableFacts { profile: parts.facts.profile.clone(), ..parts.facts };
        // One more entry below the third point, which changes nothing else.
        facts.profile[2].below.entries += 1;
        let mut changed = facts.encode();
        assert_eq!(changed.len(), payload.len());
        seal(&mut changed, 0, place);
        bytes[range].copy_from_slice(&changed);
    });
    let damaged = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
    let profile = &table.tree_table().profile;
    let block = |index: usize| KeyRange {
        start: profile[index - 1].key.clone(),
        end: profile[index].after.clone(),
    };
    for index in 1..profile.len() {
        let found = damaged.verify(&[block(index)]);
        assert_eq!(found.is_err(), [2, 3].contains(&index), "block {index}");
    }
    assert!(damaged.verify(&[KeyRange::ALL]).is_err());
}

#[test]
fn properties_with_another_number_of_blocks_are_found() {
    let properties = |table: &Table| table.file.parts().unwrap().footer.properties;
    let outcome = verify_changed(properties, |payload| payload[0] += 1);
    check(outcome, "have different numbers of blocks");
}

/// Writes the index again with other fences of the same length.
fn verify_with_fences(change: impl Fn(usize, &mut Vec<u8>, &mut bool)) -> (Section, Error) {
    let index = |table: &Table| table.file.parts().unwrap().footer.index;
    let (disk, _) = write(&entries(), &options(300));
    let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
    verify_changed(index, |payload| {
        let mut builder = FencesBuilder::default();
        for index in 0..table.fences.count() {
            let place = table.fences.place(index);
            let mut key = table.fences.key(index).to_vec();
            let mut continued = table.fences.is_continued(index);
            change(index, &mut key, &mut continued);
            let block_bytes = (place.end - place.start) as usize;
            builder.add(Fence { key: &key, continued, block_bytes });
        }
        payload.copy_from_slice(&builder.finish());
    })
}

#[test]
fn fences_that_do_not_fit_their_blocks_are_found() {
    let what = "a fence does not fit its block";
    // Too high, too low, and a continued block without its mark.
    check(
        verify_with_fences(|index, key, _| {
            *key.last_mut().unwrap_or(&mut 0) += u8::from(index == 1)
        }),
        what,
    );
    check(
        verify_with_fences(|index, key, _| {
            *key.last_mut().unwrap_or(&mut 0) -= u8::from(index == 1)
        }),
        what,
    );
    check(verify_with_fences(|_, _, continued| *continued = false), what);
    check(verify_with_fences(|index, _, continued| *continued |= index == 1), what);
}

/// Replaces the first block by other entries that take the same number of bytes.
fn verify_with_first_block(
    change: impl FnOnce(&mut Vec<Entry>, &mut Vec<usize>),
) -> (Section, Error) {
    verify_changed(
        |table| table.fences.place(0),
        |payload| {
            let mut entries = entries();
            let mut shared: Vec<usize> = entries
                .windows(2)
                .map(|pair| common_prefix_bytes(&pair[0].key, &pair[1].key))
                .collect();
            shared.insert(0, 0);
            change(&mut entries, &mut shared);
            let mut out = Vec::new();
            let mut builder = BlockBuilder::default();
            let mut bytes = 0;
            for (entry, shared) in entries.iter().zip(shared) {
                bytes += logical_bytes(entry.key.len(), entry.value.len());
                if bytes <= 300 {
                    builder.add(&mut out, shared, &entry.as_ref());
                }
            }
            builder.finish(&mut out, SealedPlace { table: TABLE, offset: 0 });
            out.truncate(out.len() - SEAL_BYTES);
            assert_eq!(out.len(), payload.len());
            payload.copy_from_slice(&out);
        },
    )
}

#[test]
fn entries_out_of_order_are_found() {
    let outcome = verify_with_first_block(|entries, _| entries.swap(3, 4));
    check(outcome, "out of order");
}

#[test]
fn versions_out_of_order_are_found() {
    // The same key twice, with the greater sequence number behind: "key03" becomes "key02".
    let outcome = verify_with_first_block(|entries, shared| {
        entries[3].key = entries[2].key.clone();
        // One byte less for the key, three more for sizes that are not the usual ones.
        entries[3].value.truncate(18);
        shared[3] = 5;
    });
    check(outcome, "out of order");
}

#[test]
fn keys_that_share_less_than_they_could_are_found() {
    let outcome = verify_with_first_block(|entries, shared| {
        shared[3] -= 1;
        // One byte more for the key, three more for sizes that are not the usual ones.
        entries[3].value.truncate(16);
    });
    check(outcome, "shares fewer bytes than it could");
}

#[test]
fn cursor_that_meets_an_invalid_entry_is_on_no_entry() {
    let block = |table: &Table| table.fences.place(0);
    let (section, disk) = resealed(block, |payload| {
        // The second entry starts behind the first: a byte, the key, the value.
        let second = 1 + 5 + 20;
        let head = 4 << 2 | 2;
        let delta = 2;
        assert_eq!(payload[second..second + 3], [head, delta, b'1'], "a usual entry with a number");
        // The last byte of the key is decoded as the length of the value and the kind, with the
        // bytes behind it.
        payload[second] |= 1;
        payload[second + 2..second + 5].fill(0xff);
    });
    let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
    for fill in [CacheFill::Yes, CacheFill::No] {
        let mut cursor = table.cursor(fill);
        cursor.seek_first().unwrap();
        assert!(cursor.entry().is_some());
        let error = cursor.next().expect_err("no value is so long");
        assert!(section.contains(&error.offset().expect("damage has an offset")), "{error}");
        assert_eq!(cursor.entry(), None);
        cursor.seek(b"key00\0").expect_err("the next entry has no end");
        assert_eq!(cursor.entry(), None);
        cursor.seek(b"more").unwrap();
        assert!(cursor.entry().is_some());
    }
}
