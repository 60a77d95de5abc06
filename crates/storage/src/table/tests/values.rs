//! Value files with records that nothing but the value betrays.

use super::super::{BlockCache, Codec, OpenFiles, ValueFile, ValueWriter};
use crate::env::{Env, MemEnv};
use crate::error::ErrorKind;
use crate::reference::{Packing, StoredBytes, ValueReference};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/000009.values";

/// Returns what is stored of a value with `codec`, and the reference to it.
fn packed(codec: Codec, value: &[u8]) -> (Vec<u8>, ValueReference) {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let mut writer = ValueWriter::create(&env, Path::new(PATH), 9, codec).unwrap();
    let reference = writer.add(value).unwrap();
    writer.finish().unwrap();
    let file = ValueFile::open(&*env, Path::new(PATH), 9, &OpenFiles::few()).unwrap();
    assert_eq!(file.read(&reference).unwrap(), value);
    (file.read_stored(&reference).unwrap().to_vec(), reference)
}

#[test]
fn values_survive_and_are_copied_as_they_are() {
    let zstd = |level| Codec::Zstd { level };
    for (codec, other) in [(Codec::Lz4, Codec::Lz4), (zstd(1), zstd(9)), (Codec::None, zstd(1))] {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let mut writer = ValueWriter::create(&env, Path::new(PATH), 9, other).unwrap();
        let mut all = Vec::new();
        for length in [0, 1, 7, 100, 1000, 70_000, 2 << 20] {
            let value = vec![length as u8; length];
            let (stored, reference) = packed(codec, &value);
            all.push((writer.copy(&stored, &reference).unwrap(), value.clone()));
            all.push((writer.add(&value).unwrap(), value));
        }
        assert_eq!(writer.file_bytes(), writer.finish().unwrap());
        let cache = BlockCache::new(0);
        let file = ValueFile::open(&*env, Path::new(PATH), 9, &OpenFiles::few()).unwrap();
        let file = file.mapped(&cache);
        for (reference, value) in &all {
            assert!(file.read(reference).unwrap() == value, "{reference:?}");
            let looked = file.look(reference, false, &cache, &*env).unwrap();
            assert!(&looked[..] == value && looked.into_shared() == value, "{reference:?}");
            assert!(reference.stored.bytes <= reference.value_bytes);
        }
        assert!(file.damage().unwrap().is_empty());
    }
}

/// The checksum is right, and what is stored cannot be what the reference says.
#[test]
fn sealed_nonsense_is_damage_of_its_record() {
    let value = vec![7; 5000];
    for codec in [Codec::Lz4, Codec::Zstd { level: 3 }] {
        let (right, reference) = packed(codec, &value);
        let other = |packing| match packing {
            Packing::Lz4 => Packing::Zstd,
            Packing::Plain | Packing::Zstd => Packing::Lz4,
        };
        let of = |packing, value_bytes| {
            let stored = StoredBytes { packing, ..reference.stored };
            ValueReference { stored, value_bytes, ..reference }
        };
        let packing = reference.stored.packing;
        let wrong_length = [&4999_u32.to_le_bytes()[..], &right[4..]].concat();
        let huge = [&u32::MAX.to_le_bytes()[..], &right[4..]].concat();
        for (stored, reference) in [
            (right[..right.len() - 1].to_vec(), of(packing, 5000)),
            (right[..3].to_vec(), of(packing, 5000)),
            (Vec::new(), of(packing, 5000)),
            (right.clone(), of(other(packing), 5000)),
            (right.clone(), of(packing, 4999)),
            (right.clone(), of(packing, u32::MAX)),
            (wrong_length, of(packing, 4999)),
            (huge, of(packing, u32::MAX)),
        ] {
            let env: Arc<dyn Env> = Arc::new(MemEnv::new());
            let mut writer = ValueWriter::create(&env, Path::new(PATH), 9, codec).unwrap();
            let before = writer.add(b"before").unwrap();
            let wrong = writer.copy(&stored, &reference).unwrap();
            let after = writer.add(&value).unwrap();
            writer.finish().unwrap();
            let cache = BlockCache::new(0);
            let file = ValueFile::open(&*env, Path::new(PATH), 9, &OpenFiles::few()).unwrap();
            for file in [file.mapped(&cache), reopened(&*env)] {
                let errors = [
                    file.read(&wrong).unwrap_err(),
                    file.look(&wrong, false, &cache, &*env).unwrap_err(),
                ];
                for error in errors {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    let place = (error.path(), error.offset());
                    assert_eq!(place, (Some(Path::new(PATH)), Some(wrong.offset)));
                }
                assert_eq!(file.read(&before).unwrap(), &b"before"[..]);
                assert_eq!(file.read(&after).unwrap(), value);
                // Without a reference, a value may have the length that its record says.
                let damage = file.damage().unwrap();
                assert!(damage.iter().all(|error| error.offset() == Some(wrong.offset)));
                assert_eq!(
                    damage.len(),
                    usize::from(stored != right || packing != wrong.stored.packing)
                );
            }
        }
    }
}

fn reopened(env: &dyn Env) -> ValueFile {
    ValueFile::open(env, Path::new(PATH), 9, &OpenFiles::few()).unwrap()
}
