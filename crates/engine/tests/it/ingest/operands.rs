//! Tables from outside with operands.
//!
//! Promised: operands apply to what lies beneath, once, and to nothing else. They need a keyspace
//! with their operator.

use crate::ingest::kinds::{DIR, World, assert_refused, expiring, ingest, numbers, shown, with};
use lsmith::{ErrorKind, IngestOptions, Keyspace, SeqNo};
use std::sync::Arc;

#[test]
fn operands_apply_to_what_lies_beneath() {
    let world = World::default();
    let store = world.open();
    let space = store.keyspace_with("space", &with("append")).unwrap();
    for key in ["a", "b", "c", "e"] {
        space.put(key, "1").unwrap();
    }
    space.combine("b", "2").unwrap();
    space.delete("c").unwrap();
    space.delete_range("e".."f").unwrap();
    store.flush().unwrap();
    let snapshot = store.snapshot();
    let made = world.table("/made", Some("append"), |writer| {
        for key in ["a", "b", "c", "d", "e"] {
            writer.combine(key, "x")?;
        }
        writer.put("p", "put")
    });
    ingest(&space, &[&made]).unwrap();
    let before = |space: &Keyspace| {
        let value = |key| snapshot.get(space, key).unwrap().map(|value| value.to_vec());
        assert_eq!(["a", "c", "d"].map(value), [Some(b"1".to_vec()), None, None]);
    };
    before(&space);
    assert_eq!(shown(&space), "a=1x b=12x c=x d=x e=x p=put");
    space.combine("a", "3").unwrap();
    space.put("b", "4").unwrap();
    ingest(&space, &[&made]).unwrap();
    let all = "a=1x3x b=4x c=xx d=xx e=xx p=put";
    assert_eq!(shown(&space), all);
    store.flush().unwrap();
    space.merge().unwrap();
    assert_eq!(shown(&space), all);
    before(&space);
    drop(snapshot);
    space.merge().unwrap();
    assert_eq!(shown(&space), all);
    let lost = World { env: world.env.crash_clone(3, 0.0), time: Arc::default() };
    drop((space, store));
    for world in [world, lost] {
        let store = world.open();
        assert_eq!(shown(&store.existing_keyspace("space").unwrap()), all);
        assert!(store.verify().unwrap().is_empty());
    }
}

/// Numbers say what an operand applies to, and that it is there already. What is older than
/// operands that a merge has joined cannot take part any more.
#[test]
fn operands_with_numbers_apply_once_and_where_they_belong() {
    let world = World::default();
    let store = world.open();
    let other = store.keyspace("other").unwrap();
    let seq = || store.snapshot().seq().0;
    let let_pass = || (0..5).for_each(|_| other.put("x", "").unwrap());
    let space = store.keyspace_with("space", &numbers(with("append"))).unwrap();
    let_pass();
    space.put("k", "v").unwrap();
    let first = seq();
    store.flush().unwrap();
    let_pass();
    space.combine("k", "2").unwrap();
    let_pass();
    store.flush().unwrap();
    space.combine("k", "4").unwrap();
    let last = seq();
    let table = |path: &str, operand: &str, seq: u64| {
        world.table(path, Some("append"), |writer| writer.combine_at("k", operand, SeqNo(seq)))
    };
    let three = table("/three", "3", last - 1);
    let one = table("/one", "1", first + 1);
    let snapshot = store.snapshot();
    for file in [&three, &one, &three, &one] {
        ingest(&space, &[file]).unwrap();
    }
    assert_eq!(shown(&space), "k=v1234");
    assert_eq!(snapshot.get(&space, "k").unwrap().unwrap(), "v24");
    drop(snapshot);
    let clash = table("/clash", "7", first + 1);
    assert_refused(&space, &clash, ErrorKind::InvalidArgument, "another entry with number");
    let newer = table("/newer", "5", last + 100);
    ingest(&space, &[&newer]).unwrap();
    assert_eq!(shown(&space), "k=v12345");
    space.merge().unwrap();
    assert_eq!(shown(&space), "k=v12345");
    let says = "or operands combined: deleted keys could come back, and operands apply too late";
    let put = world.table("/put", None, |writer| writer.put_at("k", "w", SeqNo(first - 1)));
    for file in [&one, &three, &put] {
        assert_refused(&space, file, ErrorKind::InvalidArgument, says);
    }
    let resurrect = IngestOptions::default().allow_resurrect(true);
    store.ingest(&space, &[&three], &resurrect).unwrap();
    assert_eq!(shown(&space), "k=v12345");
    // A merge that finds nothing beneath takes the key for absent.
    space.combine("n", "1").unwrap();
    store.flush().unwrap();
    let beneath = world.table("/beneath", None, |writer| writer.put_at("n", "v", SeqNo(1)));
    assert_refused(&space, &beneath, ErrorKind::InvalidArgument, says);
    drop((space, other));
}

/// Under a policy that counts in blocks, memory is folded. If that joined two operands, no merge
/// could tell that an entry between them comes too late.
#[test]
fn operands_with_numbers_stay_apart_in_folded_memory() {
    let world = World::default();
    let store = world.builder(DIR).policy("choose_best(ratio=3)").open().unwrap();
    let space = store.keyspace_with("space", &numbers(with("append"))).unwrap();
    // The value lies deeper than the level that memory goes to.
    space.put("k", "v").unwrap();
    (0..100).for_each(|number| space.put(format!("x{number}"), [7; 500]).unwrap());
    store.flush().unwrap();
    space.combine("k", "22").unwrap();
    let first = store.snapshot().seq().0;
    // Each seals a memtable.
    space.put("y1", [7; 500]).unwrap();
    space.combine("k", "44").unwrap();
    space.put("y2", [7; 500]).unwrap();
    assert!(store.stats().entries_folded > 0);
    let made = world
        .table("/made", Some("append"), |writer| writer.combine_at("k", "33", SeqNo(first + 1)));
    let error = ingest(&space, &[&made]).unwrap_err();
    assert!(error.to_string().contains("operands apply too late"), "{error}");
    assert_eq!(space.get("k").unwrap().unwrap(), "v2244");
}

#[test]
fn operands_need_their_operator() {
    let world = World::default();
    let store = world.open();
    let plain = store.keyspace("plain").unwrap();
    let counts = store.keyspace_with("counts", &with("counter")).unwrap();
    let sessions = store.keyspace_with("sessions", &expiring(None)).unwrap();
    let made = world.table("/made", Some("append"), |writer| writer.combine("a", "x"));
    for space in [&plain, &sessions] {
        let says =
            format!("no operands for the keyspace `{}`, found some for `append`", space.name());
        assert_refused(space, &made, ErrorKind::InvalidArgument, &says);
    }
    let says = "operator `counter` of the keyspace `counts`, found some for `append`";
    assert_refused(&counts, &made, ErrorKind::InvalidArgument, says);
    // Without an operand the name does not matter.
    let none = world.table("/none", Some("append"), |writer| writer.put("a", "x"));
    ingest(&plain, &[&none]).unwrap();
    assert_eq!(shown(&plain), "a=x");
}
