//! `lsmith db` on media that can only be read.

use std::process::Command;

/// Makes a store on a medium that then becomes read-only, and calls every command that reads.
const SCRIPT: &str = r#"
mount -t tmpfs none "$D" || exit 77
set -e
db="$LSMITH db $D/store"
$db put apple red
$db compact
$db put pear green
mount -o remount,ro "$D"
test "$($db get apple)" = red
test "$($db get pear)" = green
test "$($db scan)" = "$(printf 'apple\tred\npear\tgreen')"
test "$($db verify)" = "no damage found"
$db tree > "$T/tree"
$db stats > "$T/stats"
$db keyspaces > "$T/keyspaces"
$db list > "$T/list"
$db export "$T/apple.table"
$db repair "$T/saved" | grep -q "holds all entries"
test "$($LSMITH db $T/saved scan)" = "$(printf 'apple\tred\npear\tgreen')"
if $db put apple blue 2> "$T/told"; then exit 1; fi
grep -q "Read-only file system" "$T/told"
if grep -q "in in" "$T/told"; then exit 1; fi
echo all was read
"#;

/// What broke: all of these commands were refused. The twin that runs everywhere is a test of the
/// store, `what_can_only_be_read_is_read`.
#[test]
fn commands_that_read_work_on_a_read_only_medium() {
    let [dir, aside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT]);
    command.env("LSMITH", env!("CARGO_BIN_EXE_lsmith"));
    command.env("D", dir.path()).env("T", aside.path());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return eprintln!("left out: no `unshare`: {error}"),
    };
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || told.starts_with("unshare:") {
        return eprintln!("left out: no mount: {told}");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.ends_with("all was read\n"), "{said}{told}");
}
