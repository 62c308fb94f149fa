//! What a pack of 2048 games is on disk, beside its rows: database, valuation names, manifest, list of shards.
//! Reads and writes these files; the jobs that make packs and the readers that feed from them share it.

pub mod manifest;
pub mod metadata;
pub mod shards;
pub mod valuation;
pub mod writer;

/// Name of the database in a pack.
pub const METADATA: &str = "metadata.db";

/// Name of the file with the names of valuation types.
pub const VALUATION_TYPES: &str = "valuation_types.json";

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";

/// Name under which a job on a pack stages its files: see [`crate::store::publish`].
pub const STAGING: &str = "pack";
