//! A picture and the order of a pass -> the picture put together again of its tiles in another order.
//! Every size is checked before a picture is cut.

use gristmill_format::{Error, Kind, Result};
use gristmill_stages::stage::pair::class_order;

/// The sizes of pictures.
#[derive(Debug, Clone, Copy)]
pub struct Picture {
    /// Channels, rows, columns.
    pub shape: [usize; 3],
    /// Bytes of an element.
    pub item: usize,
}

/// Orders of tiles, by class.
#[derive(Debug)]
pub struct Puzzle {
    picture: Picture,
    /// Tiles of a row, and of a column.
    side: usize,
    /// For each class the tile that stands at each place, row by row.
    orders: Vec<usize>,
    classes: u64,
    seed: u64,
}

impl Puzzle {
    /// Orders of `side * side` tiles, one class after another. Each tile is the upper left part of its cell, smaller by two
    /// in both directions.
    ///
    /// Errors: `WrongSize` for pictures that are too small and orders that are not whole, `OutOfRange` for no tile.
    pub fn new(picture: Picture, side: usize, orders: Vec<usize>, seed: u64) -> Result<Self> {
        let tiles = side.saturating_mul(side);
        let [_, rows, columns] = picture.shape;
        if side == 0 || rows / side < 3 || columns / side < 3 {
            let detail = format!("pictures of {rows} x {columns} are too small for {tiles} tiles");
            return Err(Error::new(Kind::WrongSize, detail));
        }
        if orders.is_empty() || !orders.len().is_multiple_of(tiles) {
            return Err(Error::new(Kind::WrongSize, format!("{} places of {tiles} tiles", orders.len())));
        }
        if let Some(tile) = orders.iter().find(|tile| **tile >= tiles) {
            return Err(Error::new(Kind::OutOfRange, format!("tile {tile} of {tiles}")));
        }
        let classes = (orders.len() / tiles) as u64;
        Ok(Puzzle { picture, side, orders, classes, seed })
    }

    /// The class of a pair in a pass: all classes in an order of the pass, again and again.
    pub(super) fn class(&self, pair: u64, pass: u64) -> u64 {
        class_order(self.classes, self.seed, pass).apply(pair % self.classes)
    }

    /// Sees to it that pictures have `bytes` bytes.
    pub(super) fn check(&self, bytes: usize) -> Result<()> {
        let Picture { shape, item } = self.picture;
        if shape.iter().try_fold(item, |size, dim| size.checked_mul(*dim)) == Some(bytes) {
            return Ok(());
        }
        Err(Error::new(Kind::WrongSize, format!("{bytes} bytes for a picture of shape {shape:?}")))
    }

    /// Bytes of what is put together.
    pub(super) fn bytes(&self) -> usize {
        let (rows, columns) = self.tile();
        self.picture.shape[0] * self.side * rows * self.side * columns * self.picture.item
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> (usize, usize) {
        let [_, rows, columns] = self.picture.shape;
        (rows / self.side - 2, columns / self.side - 2)
    }

    /// Puts the tiles of a picture together in the order of a class.
    pub(super) fn put(&self, class: u64, picture: &[u8], out: &mut [u8]) {
        let Picture { shape: [channels, rows, columns], item } = self.picture;
        let (side, (height, width)) = (self.side, self.tile());
        let order = &self.orders[class as usize * side * side..][..side * side];
        for (place, tile) in order.iter().enumerate() {
            let (from, to) = ((tile / side, tile % side), (place / side, place % side));
            for channel in 0..channels {
                for y in 0..height {
                    let start = (channel * rows + from.0 * (rows / side) + y) * columns + from.1 * (columns / side);
                    let end = (channel * side * height + to.0 * height + y) * side * width + to.1 * width;
                    let line = &picture[start * item..(start + width) * item];
                    out[end * item..(end + width) * item].copy_from_slice(line);
                }
            }
        }
    }
}
