//! The rescorer: published vectors, each pass on games and tablebases of our own, conversions, and what is refused.
#![allow(clippy::excessive_precision, clippy::neg_multiply, reason = "expected values stand as they were published")]
#![allow(unreachable_pub)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used)]

mod conversion;
mod mappings;
mod passes;
mod played;
mod quirks;
mod refusals;
mod tables;
mod vectors;
mod versions;
