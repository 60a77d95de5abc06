//! How commands fail: one line on standard error, and an exit code.

use anyhow::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The command could not do what it was asked for.
const FAILED: u8 = 1;
/// What it was asked for makes no sense.
const BAD_ARGUMENT: u8 = 2;

/// Something on the command line is wrong.
#[derive(Debug)]
struct BadArgument(String);

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArgument {}

/// An error that says what is wrong on the command line.
pub(crate) fn bad_argument(told: impl fmt::Display) -> Error {
    BadArgument(told.to_string()).into()
}

/// Tells `error` and gives the exit code. Whoever reads our output no longer has had enough: that
/// is no failure.
pub(crate) fn report(error: &Error) -> ExitCode {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().any(|cause| cause.downcast_ref().is_some_and(is_pipe)) {
        return ExitCode::SUCCESS;
    }
    let code =
        if error.chain().any(|cause| cause.is::<BadArgument>()) { BAD_ARGUMENT } else { FAILED };
    tell(&told(error));
    ExitCode::from(code)
}

/// All of what `error` says, from what was asked for down to its cause.
fn told(error: &Error) -> String {
    format!("{error:#}")
}

/// Prints one line on standard error, if anybody reads it.
pub(crate) fn tell(message: &str) {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let _gone = writeln!(io::stderr(), "lsmith: {}", lines.collect::<Vec<_>>().join(" "));
}

/// What to do when the command line could not be parsed: print the help that was asked for, or say
/// in one line what is wrong.
pub(crate) fn of_parsing(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nobody to tell if nobody reads it.
        let _gone = error.print();
        return ExitCode::SUCCESS;
    }
    tell(&one_line(error));
    ExitCode::from(BAD_ARGUMENT)
}

/// The first paragraph of `error`, and what may have been meant.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        || error.kind() == ErrorKind::MissingSubcommand
    {
        let known = error.get(ContextKind::ValidSubcommand).map(texts).unwrap_or_default();
        let known =
            if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) };
        return format!("a command is missing{known}");
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraph: Vec<&str> =
        text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let mut line = paragraph.join(" ");
    if let Some(meant) = meant(error) {
        line = format!("{line}; did you mean `{meant}`?");
    }
    line
}

/// The right spelling nearest to what was written.
fn meant(error: &clap::Error) -> Option<String> {
    let [wrong, suggested] = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ]
    .into_iter()
    .find_map(|(wrong, suggested)| Some([error.get(wrong)?, error.get(suggested)?].map(texts)))?;
    let known: Vec<&str> = suggested.iter().map(String::as_str).collect();
    let nearest = lsmith_spec::nearest(wrong.first()?, &known);
    // The likeliest suggestion stands last.
    nearest.or(known.last().copied()).map(str::to_owned)
}

fn texts(value: &ContextValue) -> Vec<String> {
    match value {
        ContextValue::String(text) => vec![text.clone()],
        ContextValue::Strings(texts) => texts.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::told;
    use lsmith::env::{Fault, FaultEnv, Lasting, MemEnv, OpClass};
    use lsmith::{DEFAULT_KEYSPACE, Store};
    use std::io::ErrorKind;
    use std::sync::Arc;

    /// It was told that a merge failed, but not why.
    #[test]
    fn a_full_device_is_named_with_the_path() {
        let env = FaultEnv::new(Arc::new(MemEnv::new()));
        let store = Store::builder("/store").env(Arc::new(env.clone())).lockstep(true);
        let store = store.memtable_bytes(1000).log_bytes(1 << 20).open().unwrap();
        let keyspace = store.keyspace(DEFAULT_KEYSPACE).unwrap();
        let (class, kind) = (Some(OpClass::Write), ErrorKind::StorageFull);
        env.set(Fault { class, after: 0, lasting: Lasting::Forever, kind });
        let mut puts = (0..1000).map(|number| keyspace.put(format!("{number}"), [7; 100]));
        let error = puts.find_map(Result::err).expect("the merge has no room");
        let told = told(&anyhow::Error::new(error).context("the load"));
        let start = "the load: writes are refused because a merge failed: cannot write in /store/";
        assert!(told.starts_with(start), "{told}");
        assert!(told.ends_with(".table: no space left on device"), "{told}");
    }
}
