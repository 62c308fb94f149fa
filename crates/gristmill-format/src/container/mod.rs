//! How bytes are boxed (gzip, tar): knows no game.

pub mod gzip;
pub mod pickle;
pub mod salvage;
pub mod tar;
