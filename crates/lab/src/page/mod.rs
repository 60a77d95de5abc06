//! Pages: one HTML file that shows what was measured, without a network.
//!
//! * [`Page`]: the content. [`Page::html`] returns the file.
//! * [`Group`]: one workload with its policies: costs, figures and trees.
//!
//! The trees of a group are a [`History`](crate::history::History) per policy.
//!
//! The scripts and styles of a page are the files `assets/*`. They are embedded, so that a page is
//! complete in itself. The content is JSON in the page. The scripts write it into the document as
//! text, never as HTML.

mod group;
mod table;
#[cfg(test)]
mod tests;

pub use group::{
    ALIKE, CostPoint, CostSource, Courses, Group, LeastPoint, PolicyCosts, PutTimes, least,
};
pub use table::{Column, Table};

use crate::report::Versions;
use anyhow::Context;
use serde::Serialize;
use std::path::Path;

const STYLE: &str = include_str!("assets/page.css");

/// The scripts, each after the scripts that it uses.
const SCRIPTS: [&str; 11] = [
    include_str!("assets/dom.js"),
    include_str!("assets/history.js"),
    include_str!("assets/clock.js"),
    include_str!("assets/chart.js"),
    include_str!("assets/pauses.js"),
    include_str!("assets/course.js"),
    include_str!("assets/costs.js"),
    include_str!("assets/trees.js"),
    include_str!("assets/bytes.js"),
    include_str!("assets/figures.js"),
    include_str!("assets/main.js"),
];

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// The title: the command and what it was given.
    pub title: String,
    /// Settings: names and values.
    pub facts: Vec<(String, String)>,
    /// One group per workload, or per keyspace of a store.
    pub groups: Vec<Group>,
}

/// The content of a page, with what every page has.
#[derive(Serialize)]
struct Content<'a> {
    #[serde(flatten)]
    page: &'a Page,
    versions: Versions,
}

impl Page {
    /// Returns the page as the text of an HTML file.
    ///
    /// # Errors
    /// Fails if the content cannot be serialized.
    pub fn html(&self) -> anyhow::Result<String> {
        let all = Content { page: self, versions: Versions::THIS };
        let json = serde_json::to_string(&all).context("the page has no JSON form")?;
        // A script ends at the first `</script`, whatever the script is.
        let content = json.replace('<', "\\u003c");
        // HTML has no control characters.
        let printable = self.title.replace(char::is_control, "\u{fffd}");
        let title = html_escape::encode_text(&printable);
        let scripts = SCRIPTS.concat();
        Ok(format!(
            "<!DOCTYPE html>\n\
             <html lang=\"en\">\n\
             <head>\n\
             <meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n\
             <style>\n{STYLE}</style>\n\
             </head>\n\
             <body>\n\
             <main id=\"page\"><h1>{title}</h1></main>\n\
             <noscript><p>This page needs its scripts.</p></noscript>\n\
             <script type=\"application/json\" id=\"content\">{content}</script>\n\
             <script>\n\"use strict\";\n(() => {{\n{scripts}}})();\n</script>\n\
             </body>\n\
             </html>\n"
        ))
    }

    /// Writes the page to the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let message = || format!("cannot write {}", path.display());
        std::fs::write(path, self.html()?).with_context(message)
    }
}
