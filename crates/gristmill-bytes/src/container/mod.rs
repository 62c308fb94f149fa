//! How bytes are boxed (blocks, chunk files, described records, gzip, marks, npy, npz, packed chunks, pickle, shelves of
//! blocks, sums, tallies, tar, zstd): knows no game.

pub mod blocks;
pub mod chunks;
pub mod described;
pub mod gzip;
pub mod gzip_stream;
pub mod marks;
pub mod npy;
pub mod npz;
pub mod npz_write;
pub mod packed;
pub mod pickle;
pub mod salvage;
pub mod shelf;
mod starts;
pub mod sums;
pub mod tally;
pub mod tar;
pub mod zstd;
pub mod zstd_stream;
