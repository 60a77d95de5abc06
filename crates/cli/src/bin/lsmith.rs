//! The `lsmith` command with all built-in policies.

use lsmith_cli::policy::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    lsmith_cli::main(Registry::builtin())
}
