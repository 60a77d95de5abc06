//! Walks over the slices of a run.

use super::chunk::Chunk;
use crate::slice::Slice;
use std::sync::Arc;

/// Iterates over [`Slices`](super::Slices) in key order.
#[derive(Clone, Debug)]
pub struct SlicesIter<'a> {
    pub(super) front: std::slice::Iter<'a, Slice>,
    pub(super) inner: std::slice::Iter<'a, Arc<Chunk>>,
    pub(super) back: std::slice::Iter<'a, Slice>,
}

impl<'a> SlicesIter<'a> {
    /// Iterates over slices that lie in one place.
    #[inline]
    pub(super) fn of_one(slices: &'a [Slice]) -> SlicesIter<'a> {
        SlicesIter { front: slices.iter(), inner: [].iter(), back: [].iter() }
    }
}

impl<'a> Iterator for SlicesIter<'a> {
    type Item = &'a Slice;

    #[inline]
    fn next(&mut self) -> Option<&'a Slice> {
        loop {
            if let Some(slice) = self.front.next() {
                return Some(slice);
            }
            match self.inner.next() {
                Some(chunk) => self.front = chunk.slices.iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let inner: usize = self.inner.clone().map(|chunk| chunk.slices.len()).sum();
        let len = self.front.len() + inner + self.back.len();
        (len, Some(len))
    }
}

impl DoubleEndedIterator for SlicesIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(slice) = self.back.next_back() {
                return Some(slice);
            }
            match self.inner.next_back() {
                Some(chunk) => self.back = chunk.slices.iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

impl ExactSizeIterator for SlicesIter<'_> {}
