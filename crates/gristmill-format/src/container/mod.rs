//! How bytes are boxed (gzip, npy, tar): knows no game.

pub mod gzip;
pub mod gzip_stream;
pub mod npy;
pub mod salvage;
pub mod tar;
