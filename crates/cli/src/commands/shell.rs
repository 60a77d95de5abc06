//! `completions` and `man`: what shells and readers of manuals need, made from the arguments.

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::completing;
use crate::output::{Output, print_json};
use anyhow::Context;
use serde_json::json;

pub(crate) fn completions(wanted: &CompletionsArgs, json: bool) -> anyhow::Result<()> {
    if !wanted.words.is_empty() {
        let mut output = Output::new();
        completing::candidates(&wanted.words).iter().try_for_each(|word| output.line(word))?;
        return Ok(output.finish()?);
    }
    let mut script = Vec::new();
    let mut command = args::command();
    clap_complete::generate(wanted.shell, &mut command, "lsmith", &mut script);
    let script = completing::asking(wanted.shell, &String::from_utf8_lossy(&script));
    if json {
        return print_json(&json!({ "shell": wanted.shell.to_string(), "script": script }));
    }
    let mut output = Output::new();
    output.bytes(script.as_bytes())?;
    Ok(output.finish()?)
}

pub(crate) fn man(wanted: &ManArgs, json: bool) -> anyhow::Result<()> {
    let dir = &wanted.dir;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_page(&command, dir, &mut pages)?;
    if json {
        return print_json(&json!({ "pages": pages }));
    }
    let mut output = Output::new();
    pages.iter().try_for_each(|page| output.line(page))?;
    Ok(output.finish()?)
}

/// Writes the page of `command`, and the pages of its subcommands, into `dir`. Appends their paths
/// to `pages`.
fn write_page(
    command: &clap::Command,
    dir: &std::path::Path,
    pages: &mut Vec<String>,
) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let path = dir.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    pages.push(path.display().to_string());
    command.get_subcommands().try_for_each(|command| write_page(command, dir, pages))
}
