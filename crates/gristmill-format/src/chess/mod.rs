//! Leela Chess Zero records: bytes to V6/V7 frames, frames to tensors.
