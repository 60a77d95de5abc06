//! Failures of commands: one line on standard error, and an exit code.

use crate::layout::has_colours;
use anyhow::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of a command that failed.
const FAILED: u8 = 1;
/// Exit code of a command with invalid arguments.
const BAD_ARGUMENT: u8 = 2;

/// An error in the command line.
#[derive(Debug)]
struct BadArgument(String);

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArgument {}

/// Returns an error with exit code 2. `message` names the wrong argument.
pub(crate) fn bad_argument(message: impl fmt::Display) -> Error {
    BadArgument(message.to_string()).into()
}

/// Prints `error` and returns the exit code. A closed pipe is a success: the reader needs no more.
pub(crate) fn report(error: &Error) -> ExitCode {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().any(|cause| cause.downcast_ref().is_some_and(is_pipe)) {
        return ExitCode::SUCCESS;
    }
    let code =
        if error.chain().any(|cause| cause.is::<BadArgument>()) { BAD_ARGUMENT } else { FAILED };
    print_line(&message(error));
    ExitCode::from(code)
}

/// Returns the message of `error` with all its causes, outermost first.
fn message(error: &Error) -> String {
    format!("{error:#}")
}

/// Prints `message` as one line on standard error. Ignores write errors.
pub(crate) fn print_line(message: &str) {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let name = if has_colours(&console::Term::stderr()) {
        console::style("lsmith:").force_styling(true).red().bold().to_string()
    } else {
        "lsmith:".to_owned()
    };
    let _gone = writeln!(io::stderr(), "{name} {}", lines.collect::<Vec<_>>().join(" "));
}

/// Prints the requested help, or one line with the parse error, and returns the exit code. If all
/// arguments of a command are missing, prints its help on standard error.
pub(crate) fn report_parsing(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A write error cannot be reported either.
        let _gone = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _gone = error.print();
    } else {
        print_line(&one_line(error));
    }
    ExitCode::from(BAD_ARGUMENT)
}

/// Returns the first paragraph of `error` as one line, with the nearest valid spelling.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::MissingSubcommand {
        let known = error.get(ContextKind::ValidSubcommand).map(texts).unwrap_or_default();
        let known =
            if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) };
        return format!("a command is missing{known}");
    }
    let rendered = error.render().to_string();
    let text = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    let paragraph: Vec<&str> =
        text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let mut line = paragraph.join(" ");
    if let Some(spelling) = nearest_spelling(error) {
        line = format!("{line}; did you mean `{spelling}`?");
    }
    line
}

/// Returns the valid spelling nearest to the wrong one.
fn nearest_spelling(error: &clap::Error) -> Option<String> {
    let [wrong, suggested] = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ]
    .into_iter()
    .find_map(|(wrong, suggested)| Some([error.get(wrong)?, error.get(suggested)?].map(texts)))?;
    let known: Vec<&str> = suggested.iter().map(String::as_str).collect();
    let nearest = lsmith_spec::nearest(wrong.first()?, &known);
    // clap puts the likeliest suggestion last.
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
    use super::message;
    use lsmith::env::{Fault, FaultEnv, Lasting, MemEnv, OpClass};
    use lsmith::{DEFAULT_KEYSPACE, Store};
    use std::io::ErrorKind;
    use std::sync::Arc;

    /// The message once named the failed merge without its cause.
    #[test]
    fn a_full_device_is_named_with_the_path() {
        let env = FaultEnv::new(Arc::new(MemEnv::new()));
        let builder = Store::builder("/store").env(Arc::new(env.clone())).lockstep(true);
        let store = builder.memtable_bytes(1000).log_bytes(1 << 20).open().unwrap();
        let keyspace = store.keyspace(DEFAULT_KEYSPACE).unwrap();
        let class = Some(OpClass::Write);
        let kind = ErrorKind::StorageFull;
        env.set(Fault { class, after: 0, lasting: Lasting::Forever, kind });
        let mut puts = (0..1000).map(|number| keyspace.put(format!("{number}"), [7; 100]));
        let error = puts.find_map(Result::err).expect("the merge has no room");
        let message = message(&anyhow::Error::new(error).context("the load"));
        let start = "the load: writes are refused until there is room: a merge failed: cannot \
                     write in /store/";
        assert!(message.starts_with(start), "{message}");
        assert!(message.ends_with(".table: no space left on device"), "{message}");
    }
}
