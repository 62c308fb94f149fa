//! Buffers that count themselves: how many there are and how many bytes they take, wherever they are at the moment.
//! Refuses nothing: the code that hands buffers out checks the count first.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What buffers of one kind take together.
#[derive(Debug, Default)]
pub struct Count {
    bytes: AtomicUsize,
    buffers: AtomicUsize,
}

impl Count {
    /// Bytes of all buffers.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many buffers there are.
    pub fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }
}

/// A buffer that is counted as long as it lives; one made by `default` never is.
#[derive(Debug, Default)]
pub struct Counted<T> {
    buffer: T,
    bytes: usize,
    of: Option<Arc<Count>>,
}

impl<T: Default> Counted<T> {
    /// An empty buffer that counts in `of`.
    pub fn new(of: &Arc<Count>) -> Self {
        of.buffers.fetch_add(1, Ordering::Relaxed);
        Counted { buffer: T::default(), bytes: 0, of: Some(Arc::clone(of)) }
    }
}

impl<T> Counted<T> {
    /// Says how many bytes it takes from now on.
    pub fn takes(&mut self, bytes: usize) {
        if let Some(of) = &self.of {
            of.bytes.fetch_add(bytes, Ordering::Relaxed);
            of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if let Some(of) = &self.of {
            of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            of.buffers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.buffer
    }
}

impl<T> DerefMut for Counted<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_count_while_they_live() {
        let count = Arc::<Count>::default();
        let mut first: Counted<Vec<u8>> = Counted::new(&count);
        first.extend([1, 2, 3]);
        first.takes(100);
        let mut second: Counted<Vec<u8>> = Counted::new(&count);
        second.takes(10);
        assert_eq!((count.buffers(), count.bytes()), (2, 110));
        first.takes(3);
        let taken = std::mem::take(&mut first);
        assert_eq!((count.buffers(), count.bytes(), &taken[..]), (2, 13, &[1, 2, 3][..]));
        drop(first);
        drop(second);
        drop(taken);
        assert_eq!((count.buffers(), count.bytes()), (0, 0));
        Counted::<Vec<u8>>::default().takes(5);
    }
}
