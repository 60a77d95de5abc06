//! The commands that help a shell.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
    /// The words of a line, the last one to be completed; scripts ask for these
    #[arg(last = true, hide = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory that receives the pages; it is created if missing
    pub(crate) dir: PathBuf,
}
