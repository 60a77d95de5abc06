//! Reads the files that workloads name.

use flate2::bufread::MultiGzDecoder;
use lsmith_workload::Inputs;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Bytes that are read from a file at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The first bytes of what gzip writes.
const GZIP: &[u8] = b"\x1f\x8b";

/// The first bytes of what zstd writes.
#[cfg(feature = "zstd")]
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Reads the files of workloads from the file system, as far as they are needed. Relative paths
/// start at the working directory. What gzip or zstd has compressed is decompressed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileInputs;

impl Inputs for FileInputs {
    fn open<'a>(&'a self, file: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => missing(Path::new(file)),
            _ => format!("cannot be read: {error}"),
        };
        let opened = File::open(file).map_err(failed)?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, opened);
        let start = input.fill_buf().map_err(failed)?;
        if start.starts_with(GZIP) || file.ends_with(".gz") {
            return Ok(decompressed(MultiGzDecoder::new(input)));
        }
        #[cfg(feature = "zstd")]
        if start.starts_with(ZSTD) {
            let decoder = zstd::stream::read::Decoder::with_buffer(input);
            return Ok(decompressed(decoder.map_err(failed)?));
        }
        Ok(Box::new(input))
    }
}

fn decompressed<'a>(decoder: impl Read + 'a) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, Decompressed(decoder)))
}

/// A decoder whose errors say that the file is damaged.
struct Decompressed<R>(R);

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damaged = |error: io::Error| {
            io::Error::new(error.kind(), format!("the compressed file is damaged: {error}"))
        };
        self.0.read(buffer).map_err(damaged)
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
