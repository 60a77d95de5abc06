//! Bytes and texts on their way in and out.

use crate::error::{Done, invalid};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Deref;
use std::{ptr, slice};

/// Returns the bytes at `start`.
///
/// # Safety
/// `start` points to `len` readable bytes that do not change within the call, unless `len` is 0.
pub(crate) unsafe fn bytes<'a>(start: *const c_char, len: usize) -> Done<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(invalid(format!("expected {len} bytes, found a null pointer")));
    }
    if isize::try_from(len).is_err() {
        return Err(invalid(format!("expected fewer than 2^63 bytes, found {len}")));
    }
    // SAFETY: the caller promises it, and the length is in range.
    Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
}

/// Returns the bytes at `start`, or `None` for a null pointer: an end of a range that has no bound.
///
/// # Safety
/// As [`bytes`], unless `start` is null.
pub(crate) unsafe fn bound<'a>(start: *const c_char, len: usize) -> Done<Option<&'a [u8]>> {
    if start.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller promises it.
    unsafe { bytes(start, len) }.map(Some)
}

/// Returns a text; `what` names it in the error.
///
/// # Safety
/// `start` is null or points to bytes that end with a zero byte.
pub(crate) unsafe fn text<'a>(start: *const c_char, what: &str) -> Done<&'a str> {
    // SAFETY: the caller promises it.
    let text = unsafe { optional_text(start, what) }?;
    text.ok_or_else(|| invalid(format!("expected {what}, found a null pointer")))
}

/// Returns a text, or `None` for a null pointer.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(start: *const c_char, what: &str) -> Done<Option<&'a str>> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(start) };
    let text = text.to_str();
    text.map(Some).map_err(|_| invalid(format!("expected {what} in UTF-8, found other bytes")))
}

/// Returns a copy of `bytes` that the caller frees, with a zero byte behind it.
pub(crate) fn copy_out(bytes: &[u8]) -> Done<*mut c_char> {
    // SAFETY: any size may be asked for.
    let copy = unsafe { libc::malloc(bytes.len() + 1) }.cast::<u8>();
    if copy.is_null() {
        return Err(invalid(format!("expected memory for {} bytes, found none", bytes.len())));
    }
    // SAFETY: the new place has room for the bytes and the zero, and overlaps nothing.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
        *copy.add(bytes.len()) = 0;
    }
    Ok(copy.cast())
}

/// Lends `bytes`: puts their number into `len` and returns their place.
pub(crate) fn lend(bytes: &[u8], len: Option<&mut usize>) -> *const c_char {
    if let Some(len) = len {
        *len = bytes.len();
    }
    bytes.as_ptr().cast()
}

/// Frees what a call returned for the caller to free. It is `free` of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_free(start: *mut c_void) {
    // SAFETY: the caller promises that it is null or came from `copy_out`.
    unsafe { libc::free(start) }
}

/// A value that was not copied. It keeps its block or its file mapped until it is destroyed.
#[derive(Debug)]
pub struct lsmith_pinned_t(Box<dyn Pinned>);

pub(crate) trait Pinned: Deref<Target = [u8]> + std::fmt::Debug {}

impl<T: Deref<Target = [u8]> + std::fmt::Debug> Pinned for T {}

impl lsmith_pinned_t {
    pub(crate) fn new(value: impl Pinned + 'static) -> Box<lsmith_pinned_t> {
        Box::new(lsmith_pinned_t(Box::new(value)))
    }
}

/// Returns the bytes of a pinned value, and puts their number into `len`.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_pinned_value(
    value: Option<&lsmith_pinned_t>,
    len: Option<&mut usize>,
) -> *const c_char {
    lend(value.map_or(&[], |value| &value.0), len)
}

/// Destroys a pinned value.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_pinned_destroy(value: Option<Box<lsmith_pinned_t>>) {
    drop(value);
}
