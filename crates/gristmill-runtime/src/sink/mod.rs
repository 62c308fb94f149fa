//! Where what the river does leaves it besides the batches themselves. Reads snapshots, touches nothing that flows.

mod connection;
pub mod desk;
pub mod http;
pub mod prometheus;
pub mod quantity;
pub mod token;
