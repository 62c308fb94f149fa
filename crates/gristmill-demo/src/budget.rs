//! How many bytes the reading of one file may make beside its frames: one count for all of its parts, so that many small claims
//! are no way around the bound. Counts; allocates nothing.

use std::cell::Cell;

use gristmill_bytes::error::{Error, Kind, Result};

/// Maximum number of bytes of one file, unpacked: a larger one is to be split into several shards.
pub const MAX_BYTES: usize = 2 << 30;

/// What one file may still take.
#[derive(Debug)]
pub(super) struct Budget {
    max: usize,
    taken: Cell<usize>,
}

impl Budget {
    /// A budget of `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Budget { max, taken: Cell::new(0) }
    }

    /// What is left.
    pub(super) fn left(&self) -> usize {
        self.max.saturating_sub(self.taken.get())
    }

    /// Counts bytes that are about to be made.
    ///
    /// Errors: `TooLarge` where they do not fit.
    pub(super) fn take(&self, bytes: usize) -> Result<()> {
        if bytes > self.left() {
            let detail =
                format!("its values take more than {} bytes together; raise the bound if they are real", self.max);
            return Err(Error::new(Kind::TooLarge, detail));
        }
        self.taken.set(self.taken.get() + bytes);
        Ok(())
    }

    /// What `make` gives; what it took is given back afterwards, since it is gone, or in the frames, which have a bound of their
    /// own.
    pub(super) fn meanwhile<T>(&self, make: impl FnOnce() -> T) -> T {
        let before = self.taken.get();
        let made = make();
        self.taken.set(before);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_claims_add_up() {
        let budget = Budget::new(100);
        assert!((0..10).all(|_| budget.take(10).is_ok()));
        assert_eq!((budget.left(), budget.take(1).unwrap_err().kind()), (0, Kind::TooLarge));
        let budget = Budget::new(100);
        assert!((0..10).all(|_| budget.meanwhile(|| budget.take(90)).is_ok()));
        assert_eq!(budget.left(), 100);
    }
}
