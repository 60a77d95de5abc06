//! Runs tests for Linux on machines of other kinds: with pointers of 32 bits, and with the bytes of
//! numbers in the other order.

use crate::chores::{answers, cargo, run};
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where Debian has the libraries of s390x for an emulator.
const LIBRARIES: &str = "/usr/s390x-linux-gnu";

/// A machine of another kind.
struct Machine {
    target: &'static str,
    linker: &'static str,
    /// What runs its programs; nothing if this machine does.
    runner: Option<&'static str>,
    /// Packages of Debian that have what it needs.
    packages: &'static str,
    /// Packages whose unit tests run there.
    suites: &'static [&'static str],
}

const MACHINES: [Machine; 2] = [
    Machine {
        target: "i686-unknown-linux-gnu",
        linker: "i686-linux-gnu-gcc",
        runner: None,
        packages: "gcc-i686-linux-gnu libc6-i386 lib32gcc-s1",
        suites: &["lsmith-storage"],
    },
    Machine {
        target: "s390x-unknown-linux-gnu",
        linker: "s390x-linux-gnu-gcc",
        runner: Some("qemu-s390x"),
        packages: "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user",
        suites: &[],
    },
];

impl Machine {
    /// Returns true if its programs can be built and run here. Says otherwise what is missing.
    fn is_here(&self, installed: &str) -> bool {
        if !installed.lines().any(|line| line == self.target) {
            return false; // Its check has said so.
        }
        let runs = match self.runner {
            Some(runner) => answers(runner) && Path::new(LIBRARIES).exists(),
            None => cfg!(target_arch = "x86_64") && Path::new("/lib/ld-linux.so.2").exists(),
        };
        if !runs || !answers(self.linker) {
            let Machine { target, packages, .. } = self;
            eprintln!("skipped the tests of {target} (`apt-get install {packages}` on x86-64)");
            return false;
        }
        true
    }

    /// Returns `cargo test` for this machine.
    fn test(&self, root: &Path) -> Command {
        let mut test = cargo(root);
        let name = self.target.to_uppercase().replace('-', "_");
        test.args(["test", "--target", self.target]);
        test.env(format!("CARGO_TARGET_{name}_LINKER"), self.linker);
        if let Some(runner) = self.runner {
            test.env(format!("CARGO_TARGET_{name}_RUNNER"), format!("{runner} -L {LIBRARIES}"));
        }
        test
    }
}

/// Runs tests on all machines that can be had here: their own suites, and one that reads the stores
/// of the others.
pub(crate) fn machines(root: &Path, installed: &str) -> Result<()> {
    let here: Vec<_> = MACHINES.iter().filter(|machine| machine.is_here(installed)).collect();
    if here.is_empty() {
        return Ok(());
    }
    let dir = root.join("target/machines");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    // In the second round each finds the stores of all.
    for _ in 0..2 {
        let mut own = cargo(root);
        crosswise(own.arg("test"), &dir)?;
        for machine in &here {
            crosswise(&mut machine.test(root), &dir)?;
        }
    }
    let left = fs::read_dir(&dir)?.count();
    ensure!(left == here.len() + 1, "{left} machines have left stores in {}", dir.display());
    for machine in here.into_iter().filter(|machine| !machine.suites.is_empty()) {
        let mut suite = machine.test(root);
        for package in machine.suites {
            suite.args(["-p", package]);
        }
        run(suite.arg("--lib").env("LSMITH_QUICK", "1"))?;
    }
    Ok(())
}

/// Leaves stores in `dir`, and reads the stores of other machines.
fn crosswise(test: &mut Command, dir: &Path) -> Result<()> {
    test.args(["-p", "lsmith", "--features", "encryption", "--test", "machines"]);
    run(test.env("LSMITH_MACHINES", dir))
}
