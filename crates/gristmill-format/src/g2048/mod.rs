//! The game 2048: step rows and the tensors made of them.

pub mod encode;
pub mod heuristic;
pub mod row;
