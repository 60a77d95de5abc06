//! The files that workloads name. The caller opens them.

use std::io::{BufRead, Read};

use crate::WorkloadError;

/// Most bytes of a file that is read as a whole, which people write: properties and sizes.
const BYTES_MAX: u64 = 16 << 20;

/// Opens the files that a workload names.
pub trait Inputs {
    /// Returns what reads `file`, decompressed, or a message that says why it cannot be had. A
    /// trace may be larger than memory, and is read no further than its workload needs.
    ///
    /// # Errors
    ///
    /// A message that makes sense after the name of the file, such as `no such file`.
    fn open<'a>(&'a self, file: &str) -> Result<Box<dyn BufRead + 'a>, String>;
}

/// Inputs for workloads without files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInputs;

impl Inputs for NoInputs {
    fn open<'a>(&'a self, _file: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        Err("no files can be read here".to_owned())
    }
}

/// Returns what reads `file`.
pub(crate) fn open<'a>(
    inputs: &'a dyn Inputs,
    file: &str,
) -> Result<Box<dyn BufRead + 'a>, WorkloadError> {
    inputs.open(file).map_err(|message| failed(file, message))
}

/// Returns all bytes of `file`, which must be no larger than what people write.
pub(crate) fn read_all(inputs: &dyn Inputs, file: &str) -> Result<Vec<u8>, WorkloadError> {
    whole(file, open(inputs, file)?)
}

/// Returns all bytes of `input`, which reads `file`, if people may have written it.
pub(crate) fn whole(file: &str, input: Box<dyn BufRead + '_>) -> Result<Vec<u8>, WorkloadError> {
    let mut text = Vec::new();
    let read = input.take(BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| failed(file, error.to_string()))?;
    match text.len() as u64 {
        ..=BYTES_MAX => Ok(text),
        _ => Err(failed(file, format!("expected at most {BYTES_MAX} bytes of text"))),
    }
}

pub(crate) fn failed(file: &str, message: String) -> WorkloadError {
    WorkloadError::Input { file: file.to_owned(), message }
}
