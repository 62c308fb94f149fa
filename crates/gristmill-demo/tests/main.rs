//! Demonstrations through their public face: native files, shards, vectors, damaged bytes. One program,
//! since each that is linked costs as much as its tests.

mod native;
mod shards;
mod vectors;
