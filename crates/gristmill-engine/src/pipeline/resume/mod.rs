//! Where a loader stands -> documents that it resumes from, and back. Batches that follow are the same.

pub(in crate::pipeline) mod envelope;
pub(in crate::pipeline) mod journals;
pub(in crate::pipeline) mod needed;
pub(in crate::pipeline) mod papers;
pub(in crate::pipeline) mod parts;
pub(in crate::pipeline) mod recall;
pub(in crate::pipeline) mod restore;
pub(in crate::pipeline) mod saved;
pub(in crate::pipeline) mod state;
pub(in crate::pipeline) mod vanished;
