//! Leela Chess Zero records: bytes to V6/V7 frames, frames to tensors.

pub mod game;
pub mod source;
