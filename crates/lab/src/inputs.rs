//! Reads the files that workloads name.

use flate2::read::MultiGzDecoder;
use lsmith_workload::Inputs;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Reads the files of workloads from the file system. Relative paths start at the working
/// directory. Files that end in `.gz` are decompressed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileInputs;

impl Inputs for FileInputs {
    fn read(&self, file: &str) -> Result<Vec<u8>, String> {
        let bytes = std::fs::read(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(Path::new(file)),
            _ => format!("cannot be read: {error}"),
        })?;
        if !file.ends_with(".gz") {
            return Ok(bytes);
        }
        let mut text = Vec::new();
        match MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(format!("the compressed file is damaged: {error}")),
        }
    }
}

/// Returns the message for a missing file at `path`, with the nearest name in its directory.
fn missing(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(dir) else {
        return "no such file, nor its directory".to_owned();
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    // A missing file extension is too many letters for `nearest`.
    let longer = known.iter().find(|known| !name.is_empty() && known.starts_with(&*name)).copied();
    match longer.or_else(|| lsmith_spec::nearest(&name, &known)) {
        Some(nearest) => format!("no such file; did you mean `{}`?", dir.join(nearest).display()),
        None => "no such file".to_owned(),
    }
}
