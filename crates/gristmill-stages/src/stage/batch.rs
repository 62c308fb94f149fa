//! Rows -> numbered batches of a fixed size; decides what becomes of the rows left over at the end.
//! Only counts: the rows' bytes are encoded elsewhere.

/// What becomes of the last partial batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenPartial {
    /// A smaller batch.
    Keep,
    /// Nothing.
    Drop,
    /// A full batch with zero rows at its end.
    Pad,
}

/// Where in which batch a row goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the batch, from 0.
    pub batch: u64,
    /// Row within the batch.
    pub row: usize,
    /// Whether it is the batch's last row.
    pub last: bool,
}

/// Deals rows to batches.
#[derive(Debug, Clone)]
pub struct Batcher {
    size: usize,
    batch: u64,
    row: usize,
}

impl Batcher {
    /// Batches of `size` rows, from batch number `first` on.
    pub fn new(size: usize, first: u64) -> Self {
        Batcher { size: size.max(1), batch: first, row: 0 }
    }

    /// The place of the next row.
    pub fn place(&mut self) -> Place {
        let place = Place { batch: self.batch, row: self.row, last: self.row + 1 == self.size };
        self.row += 1;
        if place.last {
            self.row = 0;
            self.batch += 1;
        }
        place
    }

    /// Rows per batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of the batch that the next row goes to.
    pub fn number(&self) -> u64 {
        self.batch
    }

    /// Rows in the batch that is not full yet.
    pub fn partial(&self) -> usize {
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fill_one_batch_after_the_other() {
        let mut batcher = Batcher::new(2, 7);
        let places: Vec<(u64, usize, bool)> =
            (0..5).map(|_| batcher.place()).map(|p| (p.batch, p.row, p.last)).collect();
        assert_eq!(places, [(7, 0, false), (7, 1, true), (8, 0, false), (8, 1, true), (9, 0, false)]);
        assert_eq!((batcher.number(), batcher.partial()), (9, 1));
    }
}
