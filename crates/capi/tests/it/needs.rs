//! What a host that merges neighbouring whole runs cannot express.

use lsmith::policy::Registry;
use lsmith_c::{
    lsmith_error_destroy, lsmith_error_message, lsmith_policy_check_pick, lsmith_policy_create,
    lsmith_policy_destroy,
};
use std::ffi::{CStr, CString};
use std::fs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hosts/conformance/needs.txt");

/// More of what policies can need.
const VARIANTS: [&str; 4] =
    ["auto(price=reads)", "auto(deletes_within=1MB)", "arce(price=reads)", "ucs(w=adaptive)"];

/// Returns what the policy needs beyond sizes, ages and levels of whole runs; `None` if nothing.
fn need(spec: &str) -> Option<String> {
    let spec = CString::new(spec).expect("a spec without zero bytes");
    let mut error = None;
    // SAFETY: the text is readable.
    let policy = unsafe { lsmith_policy_create(spec.as_ptr(), Some(&mut error)) };
    assert!(policy.is_some(), "{spec:?}");
    let is_host = lsmith_policy_check_pick(policy.as_deref(), Some(&mut error));
    lsmith_policy_destroy(policy);
    assert_eq!(is_host, error.is_none(), "{spec:?}");
    // SAFETY: a message is text that ends with a zero byte.
    let message =
        error.as_deref().map(|e| unsafe { CStr::from_ptr(lsmith_error_message(Some(e))) });
    let message = message.map(|message| message.to_string_lossy().into_owned());
    lsmith_error_destroy(error);
    message.map(|message| message.rsplit(", which ").next().unwrap_or_default().to_string())
}

/// Every host checks `hosts/conformance/needs.txt`: a spec in each line, and behind `->` what the
/// policy needs that hosts do not have, or `nothing`. `BLESS=1` writes it anew.
#[test]
fn hosts_refuse_the_policies_in_the_file() {
    let registry = Registry::builtin();
    let names = registry.infos().iter().map(|info| info.name.to_string());
    let specs = names.chain(VARIANTS.map(str::to_string));
    let line = |spec: String| {
        let need = need(&spec).unwrap_or_else(|| "nothing".to_string());
        format!("{spec} -> {need}\n")
    };
    let text: String = specs.map(line).collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(FILE, &text).expect("the file can be written");
    }
    let kept = fs::read_to_string(FILE).expect("the file is there");
    assert_eq!(kept, text, "BLESS=1 cargo test -p lsmith-capi writes needs.txt anew");
}
