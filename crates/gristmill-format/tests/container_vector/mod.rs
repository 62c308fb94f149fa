//! A published container with its mutations, and the real sample.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod real_sample;
mod synthetic;

use sha2::{Digest, Sha256};

/// SHA-256 as lower-case hex.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
