use std::path::Path;

/// `BLESS=1` writes it anew.
#[test]
fn the_header_is_made_from_the_crate() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    // It reads the modules that this one names.
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let header = folder.join("include/lsmith.h");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&header, &made).unwrap();
    }
    let kept = std::fs::read(&header).unwrap_or_default();
    let is_same = kept == made;
    assert!(is_same, "include/lsmith.h differs: BLESS=1 cargo test -p lsmith-capi writes it anew");
}
