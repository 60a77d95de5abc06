//! An append table, as far as it can be read.

use super::blocks::{
    FoundBlock, FoundRoot, block_ending, blocks, has_node, root_block_ending, roots,
};
use super::open_keys::OpenKeys;
use super::salvage::salvage;
use super::walk::{AppendPart, AppendWalk, RemainsEntry};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{AppendRoot, FOOTER_BYTES, Footer, Span};
use crate::table::append::parts::{RootFilter, read_root};
use crate::table::open_files::OpenFiles;
use crate::table::table_file::TableFile;
use lsmith_tree::KeyRange;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

/// One root of an append table, as far as it can be read.
#[derive(Debug)]
pub struct AppendRemains {
    file: TableFile,
    file_bytes: u64,
    /// The bytes that may belong to the root.
    end: u64,
    top: Top,
    /// The footer of the root, if it can be read.
    pub footer: Option<Footer>,
    /// The root, if it can be read.
    pub root: Option<AppendRoot>,
    /// All damage of footer, root block and filter.
    pub damage: Vec<Error>,
    blocks: OnceCell<Vec<FoundBlock>>,
}

/// What is known of the uppermost node.
#[derive(Debug)]
enum Top {
    /// There is none: the table is empty.
    None,
    /// Its place, and a range with all keys of the table.
    Node(Span, KeyRange),
    /// Nothing. The offset of the damage, and what it is.
    Lost(u64, String),
}

impl AppendRemains {
    /// Reads the root with the name `root` of the file at `path`, which should hold `table`.
    /// Without a name, reads the root at the end of the file. `files` counts the descriptor of the
    /// file.
    ///
    /// # Errors
    /// Fails with `Io` if the file cannot be opened, and with `Unsupported` if the root has another
    /// format version or unknown features. Damage is no error.
    pub fn open(
        env: &dyn Env,
        path: &Path,
        table: u64,
        root: Option<u64>,
        files: &Arc<OpenFiles>,
    ) -> Result<AppendRemains> {
        let file = TableFile::open(env, path, table, files)?;
        let file_bytes = file.bytes()?;
        let end = root.unwrap_or(file_bytes);
        let mut remains = AppendRemains {
            file,
            file_bytes,
            end: end.min(file_bytes),
            top: Top::None,
            footer: None,
            root: None,
            damage: Vec::new(),
            blocks: OnceCell::new(),
        };
        remains.find_top(end)?;
        remains.check_filter();
        Ok(remains)
    }

    /// Returns true if the file at `path`, which should hold `table`, is an append table. If all
    /// its footers are damaged, its nodes decide.
    ///
    /// # Errors
    /// Fails with `Io` if the file cannot be read.
    pub fn is_append(env: &dyn Env, path: &Path, table: u64) -> Result<bool> {
        let file = TableFile::open(env, path, table, &OpenFiles::few())?;
        if file.footer().is_ok() {
            return Ok(false);
        }
        let bytes = file.bytes()?;
        Ok(!roots(&file, bytes)?.is_empty() || has_node(&file, bytes))
    }

    fn find_top(&mut self, end: u64) -> Result<()> {
        let error = match read_root(&self.file, end) {
            Ok(parts) => {
                self.footer = Some(parts.footer);
                self.take_root(parts.root);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(error) => error,
        };
        let offset = error.offset().unwrap_or_default();
        self.top = Top::Lost(offset, error.message().to_string());
        self.damage.push(error);
        let Some(footer_start) = end.checked_sub(FOOTER_BYTES as u64) else { return Ok(()) };
        if end > self.file_bytes {
            return Ok(());
        }
        match self.file.append_footer(end) {
            // The last node is the uppermost one.
            Ok(footer) => {
                let top = block_ending(&self.file, footer.index.end);
                if let Some((span, _)) = top.filter(|(span, _)| span.offset >= footer.index.start) {
                    self.top = Top::Node(span, KeyRange::ALL);
                }
                self.footer = Some(footer);
            }
            Err(_) => {
                if let Some(root) = root_block_ending(&self.file, footer_start) {
                    self.take_root(root);
                }
            }
        }
        Ok(())
    }

    fn take_root(&mut self, root: AppendRoot) {
        self.top = match root.levels {
            0 => Top::None,
            _ => Top::Node(root.top.node, KeyRange::inclusive(&root.first_key, &root.last_key)),
        };
        self.root = Some(root);
    }

    fn check_filter(&mut self) {
        let Some(root) = &self.root else { return };
        self.damage.extend(RootFilter::read(&self.file, root).err());
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns all roots of the file whose footers are whole, oldest first.
    ///
    /// # Errors
    /// Fails with `Io` if the file cannot be read.
    pub fn roots(&self) -> Result<Vec<FoundRoot>> {
        roots(&self.file, self.file_bytes)
    }

    /// Returns the damage that hides the whole table, if there is such.
    pub fn lost_top(&self) -> Option<Error> {
        match &self.top {
            Top::Lost(offset, what) => Some(Error::corruption(self.file.path(), *offset, what)),
            _ => None,
        }
    }

    /// Returns a walk over the leaves that may have keys within `range`. If the
    /// [top is lost](AppendRemains::lost_top), it has none.
    pub fn walk(&self, range: &KeyRange) -> AppendWalk {
        let top = match &self.top {
            Top::Node(span, keys) => Some((*span, keys.clone())),
            _ => None,
        };
        AppendWalk::new(top, OpenKeys::new(range.clone()))
    }

    /// Returns the next part of `walk`: a leaf or a damaged node.
    pub fn next_part(&self, walk: &mut AppendWalk) -> Option<AppendPart> {
        walk.next(&self.file)
    }

    /// Returns what the file has of lost keys within `keys`, one entry for each key: the newest one
    /// that can be known. Newer entries may be lost.
    pub fn salvage(&self, keys: &KeyRange) -> Vec<RemainsEntry> {
        let all = self.blocks.get_or_init(|| {
            let roots = roots(&self.file, self.end).unwrap_or_default();
            blocks(&self.file, self.end, &roots)
        });
        salvage(&self.file, all, keys)
    }
}
