mod announced;

use super::*;
use std::io::ErrorKind;
use std::sync::Arc;

fn root() -> &'static Path {
    Path::new("/")
}

fn read(env: &dyn Env, path: &str) -> Vec<u8> {
    let file = env.open(Path::new(path)).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn write(env: &dyn Env, path: &str, bytes: &[u8]) -> Box<dyn WriteFile> {
    let mut file = env.create(Path::new(path)).unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn write_synced(env: &dyn Env, path: &str, bytes: &[u8]) {
    write(env, path, bytes).sync().unwrap();
}

#[test]
fn real_environment_keeps_the_contract() {
    let temp = tempfile::tempdir().unwrap();
    contract::check(&RealEnv::new(), &temp.path().join("store"));
}

#[test]
fn plain_environment_keeps_the_contract() {
    let temp = tempfile::tempdir().unwrap();
    contract::check(&RealEnv::new().plain(), &temp.path().join("store"));
    contract::check(&RealEnv::new().unmapped(), &temp.path().join("unmapped"));
    contract::check(&RealEnv::new().direct(), &temp.path().join("direct"));
}

/// A system without holes says so, and changes nothing: a store rewrites the table instead.
#[test]
fn plain_environment_punches_no_holes_and_maps_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    let env = RealEnv::new().plain();
    let mut file = env.create(&path).unwrap();
    file.write_all(&[7; 3 * PAGE_BYTES as usize]).unwrap();
    file.sync().unwrap();
    assert_eq!(kind(env.punch(&path, 0..PAGE_BYTES)), Some(ErrorKind::Unsupported));
    assert!(read(&env, path.to_str().unwrap()).iter().all(|byte| *byte == 7));
    assert!(env.open(&path).unwrap().map().unwrap().is_none());
}

#[test]
fn memory_environment_keeps_the_contract() {
    contract::check(&MemEnv::new(), Path::new("/store"));
    contract::check(&MemEnv::with_capacity(64 << 20), Path::new("relative"));
}

#[test]
fn fault_environment_without_faults_keeps_the_contract() {
    contract::check(&FaultEnv::new(Arc::new(MemEnv::new())), Path::new("/store"));
    contract::check(&FaultEnv::over(MemEnv::new().unmapped()), Path::new("/store"));
}

#[cfg(feature = "encryption")]
#[test]
fn encrypted_environment_keeps_the_contract() {
    use crate::cipher::{Keys, MasterKey};
    let keys = || Keys::new(MasterKey::aes_256_gcm([3; 32]));
    let temp = tempfile::tempdir().unwrap();
    let real = CipherEnv::new(Arc::new(RealEnv::new()), keys());
    contract::check(&real, &temp.path().join("store"));
    contract::check(&CipherEnv::new(Arc::new(MemEnv::new()), keys()), Path::new("/store"));
    let faults = FaultEnv::new(Arc::new(CipherEnv::new(Arc::new(MemEnv::new()), keys())));
    contract::check(&faults, Path::new("/store"));
}

#[test]
fn real_logs_have_all_their_space_allocated() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log");
    let _log = RealEnv::new().create_log(&path, 1 << 20).unwrap();
    assert!(crate::system::held_bytes(&std::fs::metadata(&path).unwrap()) >= 1 << 20);
}

#[test]
fn power_loss_keeps_synced_bytes_and_loses_the_rest() {
    let env = MemEnv::new();
    let mut file = write(&env, "/a", b"synced");
    file.sync().unwrap();
    file.write_all(b" lost").unwrap();
    let log = env.create_log(Path::new("/log"), 4096).unwrap();
    log.append(&[1; 600]).unwrap();
    log.sync(SyncReach::Data).unwrap();
    log.append(&[2; 600]).unwrap();
    env.sync_dir(root()).unwrap();
    write_synced(&env, "/b", b"a file without a name");

    let after = env.crash_clone(1, 0.0);
    assert_eq!(after.list(root()).unwrap(), ["a", "log"]);
    assert_eq!(read(&after, "/a"), b"synced");
    let mut expected = vec![1; 600];
    expected.resize(4096, 0);
    assert!(read(&after, "/log") == expected);

    let lucky = env.crash_clone(1, 1.0);
    assert_eq!(lucky.list(root()).unwrap(), ["a", "b", "log"]);
    assert_eq!(&read(&lucky, "/log")[..600], &[1; 600]);
    assert_eq!(lucky.crash_clone(1, 0.0).list(root()).unwrap(), ["a", "b", "log"]);
}

#[test]
fn sectors_survive_power_loss_independently() {
    let env = MemEnv::new();
    let log = env.create_log(Path::new("/log"), 1 << 20).unwrap();
    env.sync_dir(root()).unwrap();
    log.sync(SyncReach::All).unwrap();
    log.append(&[1; 512 * 64]).unwrap();
    let mut kept = 0;
    let mut out_of_order = 0;
    for seed in 0..100 {
        let after = read(&env.crash_clone(seed, 0.5), "/log");
        let sectors: Vec<bool> = after[..512 * 64]
            .chunks(512)
            .map(|sector| {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "all of it or nothing");
                sector[0] == 1
            })
            .collect();
        kept += sectors.iter().filter(|kept| **kept).count();
        out_of_order += sectors.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        assert!(after == read(&env.crash_clone(seed, 0.5), "/log"), "equal seeds, equal results");
    }
    // Of 6,400 sectors 3,200 are expected to survive, with a standard deviation of 40.
    assert!((2_900..3_500).contains(&kept), "{kept}");
    assert!(out_of_order > 1_000, "{out_of_order}");
}

#[test]
fn a_log_may_lose_its_later_appends_within_a_sector() {
    let env = MemEnv::new();
    let log = env.create_log(Path::new("/log"), 4096).unwrap();
    env.sync_dir(root()).unwrap();
    log.sync(SyncReach::All).unwrap();
    (0..4).for_each(|_| log.append(&[1; 64]).unwrap());
    let lengths: std::collections::BTreeSet<usize> = (0..200)
        .map(|seed| read(&env.crash_clone(seed, 0.5), "/log").iter().filter(|b| **b == 1).count())
        .collect();
    assert_eq!(Vec::from_iter(lengths), [0, 64, 128, 192, 256]);
}

#[test]
fn an_unsynced_rename_happens_as_a_whole_or_not() {
    let env = MemEnv::new();
    write_synced(&env, "/current", b"old");
    write_synced(&env, "/next", b"new");
    env.sync_dir(root()).unwrap();
    env.rename(Path::new("/next"), Path::new("/current")).unwrap();
    let mut seen = [0, 0];
    for seed in 0..100 {
        let after = env.crash_clone(seed, 0.5);
        let happened = after.list(root()).unwrap() == ["current"];
        assert_eq!(read(&after, "/current"), if happened { b"new" } else { b"old" });
        if !happened {
            assert_eq!(read(&after, "/next"), b"new");
        }
        seen[usize::from(happened)] += 1;
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
    env.sync_dir(root()).unwrap();
    assert_eq!(env.crash_clone(0, 0.0).list(root()).unwrap(), ["current"]);
}

#[test]
fn an_unsynced_removal_may_be_undone() {
    let env = MemEnv::new();
    write_synced(&env, "/a", b"here");
    env.sync_dir(root()).unwrap();
    env.remove_file(Path::new("/a")).unwrap();
    assert_eq!(read(&env.crash_clone(0, 0.0), "/a"), b"here");
    assert_eq!(env.crash_clone(0, 1.0).list(root()).unwrap(), Vec::<String>::new());
    env.sync_dir(root()).unwrap();
    assert_eq!(env.crash_clone(0, 0.0).list(root()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_directory_whose_parent_is_not_synced_may_be_lost() {
    let env = MemEnv::new();
    env.create_dir_all(Path::new("/a/b")).unwrap();
    write_synced(&env, "/a/b/file", b"x");
    env.sync_dir(Path::new("/a/b")).unwrap();
    env.sync_dir(root()).unwrap();
    assert_eq!(env.crash_clone(0, 0.0).list(Path::new("/a")).unwrap(), Vec::<String>::new());
    env.sync_dir(Path::new("/a")).unwrap();
    assert_eq!(read(&env.crash_clone(0, 0.0), "/a/b/file"), b"x");
}

#[test]
fn cut_log_may_be_long_again_until_it_is_synced() {
    let env = MemEnv::new();
    let log = env.create_log(Path::new("/log"), 64).unwrap();
    log.append(&[1; 8]).unwrap();
    log.sync(SyncReach::All).unwrap();
    env.sync_dir(root()).unwrap();
    log.append(&[2; 8]).unwrap();
    log.cut().unwrap();
    let length = |env: &MemEnv| read(env, "/log").len();
    assert_eq!(length(&env.crash_clone(0, 0.0)), 64);
    assert_eq!(length(&env.crash_clone(0, 1.0)), 16);
    assert_eq!(
        read(&env.crash_clone(0, 0.0), "/log")[..16],
        [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    );

    log.sync(SyncReach::Data).unwrap();
    assert_eq!(length(&env.crash_clone(0, 0.0)), 64);
    assert_eq!(read(&env.crash_clone(0, 0.0), "/log")[8..16], [2; 8]);
    log.sync(SyncReach::All).unwrap();
    assert_eq!(length(&env.crash_clone(0, 0.0)), 16);
    assert_eq!(kind(log.append(&[3; 8])), Some(ErrorKind::InvalidInput));
}

#[test]
fn a_killed_process_leaves_all_but_buffers_and_locks() {
    let env = MemEnv::new();
    let log = env.create_log(Path::new("/log"), 64).unwrap();
    log.append(&[1; 8]).unwrap();
    let large = vec![2; 1 << 20];
    let mut file = write(&env, "/written", &large);
    file.write_all(b"in the buffer").unwrap();
    let _held = env.lock(root()).unwrap();
    let removed = env.open(Path::new("/written")).unwrap();

    let after = env.process_crash_clone();
    assert_eq!(&read(&after, "/log")[..9], &[1, 1, 1, 1, 1, 1, 1, 1, 0]);
    assert!(read(&after, "/written") == large);
    assert_eq!(kind(env.lock(root())), Some(ErrorKind::WouldBlock));
    assert_eq!(kind(after.lock(root())), None);
    // Bytes that were not synced before are not synced now.
    assert_eq!(after.crash_clone(0, 0.0).list(root()).unwrap(), Vec::<String>::new());
    drop(removed);
}

#[test]
fn full_disk_takes_bytes_that_fit_and_frees_room() {
    let env = MemEnv::with_capacity(1000);
    let mut file = write(&env, "/a", &[1; 700]);
    file.sync().unwrap();
    assert_eq!(env.free_bytes(root()).unwrap(), 300);
    assert_eq!(kind(env.create_log(Path::new("/log"), 301)), Some(ErrorKind::StorageFull));
    assert_eq!(env.list(root()).unwrap(), ["a"]);
    file.write_all(&[2; 400]).unwrap();
    assert_eq!(kind(file.sync()), Some(ErrorKind::StorageFull));
    assert_eq!(kind(file.sync()), Some(ErrorKind::Other), "a failed file stays failed");
    assert_eq!((env.free_bytes(root()).unwrap(), read(&env, "/a").len()), (0, 1000));

    env.remove_file(Path::new("/a")).unwrap();
    assert_eq!(env.free_bytes(root()).unwrap(), 0, "an open file keeps its room");
    assert_eq!(env.process_crash_clone().free_bytes(root()).unwrap(), 1000);
    drop(file);
    assert_eq!(env.free_bytes(root()).unwrap(), 1000);
    let log = env.create_log(Path::new("/log"), 600).unwrap();
    assert_eq!(env.free_bytes(root()).unwrap(), 400);
    log.append(&[1; 600]).unwrap();
    assert_eq!(env.crash_clone(0, 1.0).free_bytes(root()).unwrap(), 400);
}

#[test]
fn hole_frees_room_and_must_lie_within_its_file() {
    let env = MemEnv::with_capacity(10 * PAGE_BYTES);
    write_synced(&env, "/a", &vec![1; 8 * PAGE_BYTES as usize + 1]);
    env.sync_dir(root()).unwrap();
    let punch = |range| kind(env.punch(Path::new("/a"), range));
    for bad in [1..PAGE_BYTES, 0..PAGE_BYTES + 1, 0..0, 0..9 * PAGE_BYTES] {
        assert_eq!(punch(bad), Some(ErrorKind::InvalidInput));
    }
    let free = |env: &MemEnv| env.free_bytes(root()).unwrap();
    assert_eq!(free(&env), 2 * PAGE_BYTES - 1);
    assert_eq!((punch(PAGE_BYTES..3 * PAGE_BYTES), free(&env)), (None, 4 * PAGE_BYTES - 1));
    assert_eq!((punch(PAGE_BYTES..4 * PAGE_BYTES), free(&env)), (None, 5 * PAGE_BYTES - 1));
    assert_eq!(env.held_bytes(Path::new("/a")).unwrap(), 5 * PAGE_BYTES + 1);
    for copy in [env.power_loss(1, Loss::Nothing), env.process_crash_clone()] {
        assert_eq!(free(&copy), 5 * PAGE_BYTES - 1);
        assert!(read(&copy, "/a") == read(&env, "/a"));
    }
    let undone = env.power_loss(1, Loss::Everything);
    assert_eq!(free(&undone), 2 * PAGE_BYTES - 1);
    assert!(read(&undone, "/a") == vec![1; 8 * PAGE_BYTES as usize + 1]);
    env.sync_file(Path::new("/a")).unwrap();
    assert_eq!(free(&env.power_loss(1, Loss::Everything)), 5 * PAGE_BYTES - 1);
    env.remove_file(Path::new("/a")).unwrap();
    assert_eq!(free(&env), 10 * PAGE_BYTES);

    let env = env.without_punching();
    write_synced(&env, "/b", &[1; 5000]);
    let refused = kind(env.punch(Path::new("/b"), 0..PAGE_BYTES));
    assert_eq!(refused, Some(ErrorKind::Unsupported));
    assert_eq!(kind(env.crash_clone(1, 0.0).punch(root(), 0..1)), Some(ErrorKind::Unsupported));
}

#[test]
fn damage_changes_the_bytes_read() {
    let env = MemEnv::new();
    let path = Path::new("/a");
    write_synced(&env, "/a", b"abc");
    env.flip(path, 1, 0x20).unwrap();
    assert_eq!(read(&env, "/a"), b"aBc");
    assert_eq!(kind(env.flip(path, 3, 1)), Some(ErrorKind::UnexpectedEof));
    env.truncate(path, 2).unwrap();
    env.truncate(path, 100).unwrap();
    assert_eq!(read(&env, "/a"), b"aB");
    let _log = env.create_log(Path::new("/log"), 16).unwrap();
    env.flip(Path::new("/log"), 9, 0xFF).unwrap();
    assert_eq!(read(&env, "/log"), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn faults_hit_the_chosen_operation() {
    let env = FaultEnv::new(Arc::new(MemEnv::new()));
    let full =
        |class, after, lasting| Fault { class, after, lasting, kind: ErrorKind::StorageFull };
    let log = env.create_log(Path::new("/log"), 80).unwrap();
    env.set(full(Some(OpClass::Append), 1, Lasting::Once));
    log.append(&[1; 8]).unwrap();
    assert_eq!(kind(log.append(&[2; 8])), Some(ErrorKind::StorageFull));
    assert_eq!(log.bytes(), 8, "what failed had no effect");
    log.append(&[3; 8]).unwrap();
    assert_eq!((env.count(OpClass::Append), env.count_all()), (3, 4));

    env.set(full(None, 0, Lasting::Forever));
    assert_eq!(kind(log.sync(SyncReach::Data)), Some(ErrorKind::StorageFull));
    assert_eq!(kind(env.create(Path::new("/a"))), Some(ErrorKind::StorageFull));
    assert_eq!(kind(env.sync_dir(root())), Some(ErrorKind::StorageFull));
    env.clear();
    log.sync(SyncReach::Data).unwrap();

    let mut file = write(&env, "/a", b"a");
    env.set(full(Some(OpClass::Write), 0, Lasting::Once));
    assert_eq!(kind(file.write_all(b"b")), Some(ErrorKind::StorageFull));
    assert_eq!(kind(file.sync()), Some(ErrorKind::Other), "a failed file stays failed");
}

#[test]
fn every_class_of_operation_can_fail() {
    let path = Path::new("/a");
    for class in OpClass::ALL {
        let env = FaultEnv::new(Arc::new(MemEnv::new()));
        env.set(Fault {
            class: Some(class),
            after: 0,
            lasting: Lasting::Once,
            kind: ErrorKind::TimedOut,
        });
        let mut failed = Vec::new();
        let mut run = |class, result: Option<ErrorKind>| {
            if result == Some(ErrorKind::TimedOut) {
                failed.push(class);
            }
        };
        run(OpClass::Create, kind(env.create_dir_all(Path::new("/dir"))));
        let mut file = env.create(path).unwrap();
        run(OpClass::Write, kind(file.write_all(b"x")));
        run(OpClass::Sync, kind(file.sync()));
        run(OpClass::Open, kind(env.open(path)));
        let opened = env.open(path).unwrap();
        run(OpClass::Read, kind(opened.read_exact_at(&mut [], 0)));
        run(OpClass::Map, kind(opened.map()));
        run(OpClass::Measure, kind(opened.bytes()));
        run(OpClass::Measure, kind(env.file_bytes(path)));
        run(OpClass::Measure, kind(env.held_bytes(path)));
        run(OpClass::List, kind(env.list(root())));
        run(OpClass::FreeBytes, kind(env.free_bytes(root())));
        run(OpClass::Lock, kind(env.lock(root())));
        run(OpClass::SyncDir, kind(env.sync_dir(root())));
        run(OpClass::Link, kind(env.link(path, Path::new("/c"))));
        run(OpClass::Rename, kind(env.rename(path, Path::new("/b"))));
        run(OpClass::CreateLog, kind(env.create_log(Path::new("/log"), 8)));
        let log = env.create_log(Path::new("/log2"), 8).unwrap();
        run(OpClass::Append, kind(log.append(&[1; 8])));
        run(OpClass::LogSync, kind(log.sync(SyncReach::All)));
        run(OpClass::Cut, kind(log.cut()));
        run(OpClass::Punch, kind(env.punch(Path::new("/log2"), 0..PAGE_BYTES)));
        run(OpClass::Remove, kind(env.remove_file(Path::new("/log2"))));
        assert_eq!(failed, [class]);
    }
}

#[test]
fn a_map_shows_the_file_and_garbage_where_a_hole_is_punched() {
    let env = MemEnv::new();
    let path = Path::new("/a");
    write_synced(&env, "/a", &vec![7; 3 * PAGE_BYTES as usize]);
    let [one, other] = [(), ()].map(|()| env.open(path).unwrap().map().unwrap().unwrap());
    let copy = env.process_crash_clone();
    env.punch(path, PAGE_BYTES..2 * PAGE_BYTES).unwrap();
    for map in [&one, &other] {
        let pages: Vec<&[u8]> = map.chunks(PAGE_BYTES as usize).collect();
        assert!(pages[0].iter().chain(pages[2]).all(|byte| *byte == 7));
        assert!(pages[1].iter().all(|byte| ![0, 7].contains(byte)), "nobody may look there");
    }
    let read = read(&env, "/a");
    assert!(read[PAGE_BYTES as usize..2 * PAGE_BYTES as usize].iter().all(|byte| *byte == 0));
    assert!(env.open(path).unwrap().map().unwrap().unwrap() == read, "a new map shows the hole");
    // The maps of one disk do not affect the maps of another.
    let map = copy.open(path).unwrap().map().unwrap().unwrap();
    env.punch(path, 0..PAGE_BYTES).unwrap();
    assert!(map.iter().all(|byte| *byte == 7));
    assert!(env.unmapped().open(path).unwrap().map().unwrap().is_none());
}

/// Returns a disk with changes in a known order: a file of two pages and a log of four appends,
/// each with a synced name, and a file whose name is not synced.
fn changed_disk() -> MemEnv {
    let env = MemEnv::new();
    let mut file = env.create(Path::new("/pages")).unwrap();
    let log = env.create_log(Path::new("/log"), 4096).unwrap();
    env.sync_dir(root()).unwrap();
    log.sync(SyncReach::All).unwrap();
    file.sync().unwrap();
    // Longer than the buffer, so that it is written at once.
    file.write_all(&[1; 300_000]).unwrap();
    (0..4).for_each(|_| log.append(&[2; 512]).unwrap());
    drop(env.create(Path::new("/new")).unwrap());
    env
}

/// Returns the surviving bytes of the file and of the log, and whether the new name survives.
fn survived(env: &MemEnv) -> (usize, usize, bool) {
    let ones = read(env, "/pages").iter().filter(|byte| **byte == 1).count();
    let twos = read(env, "/log").iter().filter(|byte| **byte == 2).count();
    (ones, twos, env.open(Path::new("/new")).is_ok())
}

#[test]
fn each_loss_destroys_the_documented_changes() {
    let env = changed_disk();
    let loses = |loss, seed| survived(&env.power_loss(seed, loss));
    assert_eq!(loses(Loss::Nothing, 1), (300_000, 2048, true));
    assert_eq!(loses(Loss::Everything, 1), (0, 0, false));
    assert_eq!(loses(Loss::Contents, 1), (0, 0, true));
    assert_eq!(loses(Loss::Names, 1), (300_000, 2048, false));
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let (pages, log, new) = loses(Loss::Later, seed);
        assert!(log == 0 || pages == 300_000, "{log}");
        assert!(!new || log == 2048);
        let (late_pages, late_log, late_new) = loses(Loss::Earlier, seed);
        assert_eq!((pages + late_pages, log + late_log), (300_000, 2048), "the same moment");
        assert!(new != late_new);
        seen.insert((pages, log, new));
    }
    let expected = [(0, 0, false), (300_000, 0, false), (300_000, 512, false)];
    assert_eq!(seen.len(), 7);
    assert!(seen.iter().take(3).eq(&expected), "{seen:?}");
}

#[test]
fn torn_sectors_hold_a_mixture() {
    let env = changed_disk();
    let mut mixed = 0;
    let mut garbage = 0;
    let mut torn = 0;
    let sector_is = |sector: &[u8], byte: u8| sector.iter().all(|other| *other == byte);
    for seed in 0..20 {
        let whole = env.power_loss(seed, Loss::Torn { logs: false });
        let log = read(&whole, "/log");
        assert!(log.chunks(512).all(|sector| sector_is(sector, 2) || sector_is(sector, 0)));
        for sector in read(&whole, "/pages").chunks(512) {
            let clean = sector_is(sector, 1) || sector_is(sector, 0);
            mixed += u32::from(!clean && sector.iter().all(|byte| *byte < 2));
            garbage += u32::from(sector.iter().any(|byte| *byte > 1));
        }
        let log_torn = read(&env.power_loss(seed, Loss::Torn { logs: true }), "/log");
        assert!(log_torn.chunks(8).all(|word| sector_is(word, 2) || sector_is(word, 0)));
        torn += log_torn.chunks(512).filter(|s| !sector_is(s, 2) && !sector_is(s, 0)).count();
    }
    assert!(mixed > 100 && garbage > 100 && torn > 5, "{mixed} {garbage} {torn}");
}

/// Returns the state that one failing operation leaves, on a new disk for each of `effects`.
fn left_by(
    class: OpClass,
    run: impl Fn(&FaultEnv) -> io::Result<()>,
    look: impl Fn(&MemEnv) -> String,
) -> Vec<String> {
    let left = class.effects().iter().map(|effect| {
        let disk = MemEnv::new();
        let env = FaultEnv::over(disk.clone());
        let lasting = Lasting::Once;
        let timed_out = ErrorKind::TimedOut;
        let fault = Fault { class: Some(class), after: 0, lasting, kind: timed_out };
        env.set_with(fault, *effect);
        assert_eq!(kind(run(&env)), Some(timed_out), "{class:?}");
        look(&disk)
    });
    left.collect()
}

#[test]
fn failed_operation_has_done_nothing_a_part_or_everything() {
    let path = Path::new("/a");
    let names = |disk: &MemEnv| disk.list(root()).unwrap().join(" ");
    let bytes = |disk: &MemEnv| String::from_utf8(read(disk, "/a")).unwrap().replace('\0', ".");
    let survived = |disk: &MemEnv| names(&disk.power_loss(0, Loss::Everything));
    let create = |env: &FaultEnv| env.create(path).map(drop);
    assert_eq!(left_by(OpClass::Create, create, names), ["", "a", "a"]);
    let dirs = |env: &FaultEnv| env.create_dir_all(Path::new("/b/c"));
    let depth = |disk: &MemEnv| format!("{:?}", disk.list(Path::new("/b")).ok());
    assert_eq!(left_by(OpClass::Create, dirs, depth), ["None", "Some([])", "Some([\"c\"])"]);
    let create_log = |env: &FaultEnv| env.create_log(path, 16).map(drop);
    let length = |disk: &MemEnv| format!("{:?}", disk.file_bytes(path).ok());
    assert_eq!(left_by(OpClass::CreateLog, create_log, length), ["None", "Some(8)", "Some(16)"]);
    let write = |env: &FaultEnv| env.create(path)?.write_all(b"abcdefgh");
    assert_eq!(left_by(OpClass::Write, write, bytes), ["", "abcd", "abcdefgh"]);
    let append = |env: &FaultEnv| env.create_log(path, 24)?.append(b"headheadabcdefgh");
    let stored =
        ["........................", "........abcd............", "headheadabcdefgh........"];
    assert_eq!(left_by(OpClass::Append, append, bytes), stored);
    let rename = |env: &FaultEnv| {
        env.create(path)?;
        env.rename(path, Path::new("/b"))
    };
    assert_eq!(left_by(OpClass::Rename, rename, names), ["a", "b"]);
    let link = |env: &FaultEnv| {
        env.create(path)?;
        env.link(path, Path::new("/b"))
    };
    assert_eq!(left_by(OpClass::Link, link, names), ["a", "a b"]);
    let remove = |env: &FaultEnv| {
        env.create(path)?;
        env.remove_file(path)
    };
    assert_eq!(left_by(OpClass::Remove, remove, names), ["a", ""]);
    let sync_dir = |env: &FaultEnv| {
        env.create(path)?;
        env.create(Path::new("/b"))?;
        env.sync_dir(root())
    };
    assert_eq!(left_by(OpClass::SyncDir, sync_dir, survived), ["", "a", "a b"]);
    let cut = |env: &FaultEnv| env.create_log(path, 16)?.cut();
    assert_eq!(left_by(OpClass::Cut, cut, length), ["Some(16)", "Some(0)"]);
}

/// A failed sync may mark the bytes as clean that it should have synced, so that no later sync
/// writes them.
#[test]
fn bytes_dropped_by_a_failed_sync_never_reach_the_device() {
    let path = Path::new("/a");
    let of_log = |env: &FaultEnv| {
        let log = env.create_log(path, 2048)?;
        env.sync_dir(root())?;
        log.append(&[5; 1024])?;
        let failed = log.sync(SyncReach::All);
        // By the same handle, and by another.
        log.sync(SyncReach::All)?;
        env.sync_file(path)?;
        failed
    };
    let of_file = |env: &FaultEnv| {
        let mut file = env.create(path)?;
        env.sync_dir(root())?;
        file.write_all(&[5; 2 * PAGE_BYTES as usize])?;
        let failed = file.sync();
        env.sync_file(path)?;
        failed
    };
    let look = |disk: &MemEnv| {
        let count = |disk: &MemEnv| read(disk, "/a").iter().filter(|byte| **byte == 5).count();
        format!("{} {}", count(disk), count(&disk.power_loss(0, Loss::Nothing)))
    };
    let left = left_by(OpClass::LogSync, of_log, look);
    assert_eq!(left, ["1024 1024", "1024 512", "1024 1024", "1024 0"]);
    // What takes their place after a cut reaches it.
    let of_cut = |env: &FaultEnv| {
        let failed = of_file(env);
        let mut file = env.append(path, 0)?;
        file.write_all(&[5; 2 * PAGE_BYTES as usize])?;
        file.sync()?;
        failed
    };
    let left = left_by(OpClass::Sync, of_cut, look);
    assert_eq!(left, ["8192 8192"; 4]);
    let left = left_by(OpClass::Sync, of_file, look);
    assert_eq!(left, ["0 0", "8192 4096", "8192 8192", "8192 0"]);
}
