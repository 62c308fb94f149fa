//! How bytes are boxed (gzip, npy, npz, pickle, tar, zstd): knows no game.

pub mod gzip;
pub mod gzip_stream;
pub mod npy;
pub mod npz;
pub mod pickle;
pub mod salvage;
pub mod tar;
pub mod zstd;
pub mod zstd_stream;
