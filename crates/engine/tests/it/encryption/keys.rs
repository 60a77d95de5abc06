//! Missing, wrong and unwanted keys.

use super::{check, files, filled, keys, master, small};
use lsmith::cipher::Keys;
use lsmith::env::MemEnv;
use lsmith::{ErrorKind, Store};
use std::path::Path;
use std::sync::Arc;

/// Returns the message of the error of opening the store, which changes nothing.
fn refused(env: &MemEnv, keys: Option<Keys>) -> String {
    let before = files(env, Path::new("/store"));
    let builder = Store::builder("/store").env(Arc::new(env.clone()));
    let builder = keys.map_or(builder.clone(), |keys| builder.keys(keys));
    let reading = builder.clone().read_only(true).open().unwrap_err();
    let error = builder.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(error.to_string(), reading.to_string());
    assert!(before == files(env, Path::new("/store")), "nothing is changed");
    error.to_string()
}

#[test]
fn a_wrong_or_missing_key_is_named_and_changes_nothing() {
    let env = MemEnv::new();
    drop(filled(&env, keys()));
    let missing = refused(&env, None);
    assert!(missing.contains("the file is encrypted: give its key"), "{missing}");
    let wrong = refused(&env, Some(Keys::new(master(2))));
    let [right, other] = [keys(), Keys::new(master(2))].map(|keys| keys.newest_id());
    assert!(wrong.contains(&format!("is encrypted with key aes-256-gcm {right:016x}")), "{wrong}");
    assert!(wrong.contains(&format!("none of the given: aes-256-gcm {other:016x}")), "{wrong}");
    check(&small(&env, keys()).open().unwrap(), 0);
}

#[test]
fn a_store_in_clear_does_not_take_a_key_by_accident() {
    let env = MemEnv::new();
    let plain = || Store::builder("/store").env(Arc::new(env.clone())).memtable_bytes(8 << 10);
    let store = plain().open().unwrap();
    super::fill(&store, 0);
    drop(store);
    let message = refused(&env, Some(keys()));
    assert!(message.contains("the file is not encrypted, but a key was given"), "{message}");
    check(&plain().open().unwrap(), 0);
}

#[test]
fn a_key_is_never_printed() {
    let text = format!("{:?} {:?}", keys(), master(0xAB));
    assert!(text.contains("MasterKey(aes-256-gcm "), "{text}");
    for part in ["171", "ab, ab", "abab", "[1, 1"] {
        assert!(!text.to_lowercase().contains(part), "{text}");
    }
}
