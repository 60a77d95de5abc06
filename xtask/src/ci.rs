//! All checks of CI, in its order.

use crate::chores::{cargo, package, plain, run, schedules};
use crate::{c, commands, jvm, pages, platforms, python, tidy, wasm};
use anyhow::Result;
use std::path::Path;

/// Runs the steps of CI in the same order. Tidy comes before the tests, so that it fails early.
pub(crate) fn ci(root: &Path) -> Result<()> {
    run(cargo(root).args(["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(cargo(root).args(lints))?;
    tidy::report(root)?;
    commands::check(root, false)?;
    let pages = ["doc", "--workspace", "--no-deps"];
    run(cargo(root).args(pages).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(cargo(root).args(["test", "--workspace"]))?;
    plain(root)?;
    package(root)?;
    platforms::platforms(root, true)?;
    c::c(root)?;
    python::python(root)?;
    jvm::jvm(root)?;
    schedules(root)?;
    wasm::wasm(root)?;
    pages::run(root, None)
}
