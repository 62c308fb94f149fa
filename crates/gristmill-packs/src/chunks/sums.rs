//! What the games of a chunk file weigh by one rule <-> a small file beside it, so that they are weighed once.
//! Good for nothing but this very file: what does not fit or is damaged is not used, and weighed again.

use std::path::{Path, PathBuf};

use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::container::sums;
use gristmill_runtime::error::Result;
use gristmill_runtime::store::files;
use gristmill_runtime::store::publish::write_whole;

/// The file of sums by the rule of this id, beside the chunk file at `chunks`.
pub(crate) fn path(chunks: &Path, rule: u64) -> PathBuf {
    let name = chunks.file_name().unwrap_or_default().to_string_lossy();
    chunks.with_file_name(sums::beside(&name, rule))
}

/// What each game of the chunk file at `chunks` weighs by a rule, where that is kept.
pub fn read(chunks: &Path, index: &ChunkFile, rule: u64) -> Option<Vec<f32>> {
    let path = path(chunks, rule);
    let bytes = files::read(&path, sums::size(index.len())).ok()??;
    sums::read(&bytes, index.identity(), rule, index.len())
}

/// All sums that are kept of the chunk file at `chunks`: ids of rules, ascending, and what each game weighs.
pub fn all(chunks: &Path, index: &ChunkFile) -> Vec<(u64, Vec<f32>)> {
    let mut rules = rules(chunks);
    rules.sort_unstable();
    rules.into_iter().filter_map(|rule| Some((rule, read(chunks, index, rule)?))).collect()
}

/// Ids of the rules by which sums lie beside the chunk file at `chunks`, usable or not.
fn rules(chunks: &Path) -> Vec<u64> {
    let names = chunks.parent().and_then(|folder| files::names(folder).ok()).unwrap_or_default();
    let of = |name: &str| sums::named(name).filter(|(file, _)| chunks.ends_with(file)).map(|(_, rule)| rule);
    names.iter().filter_map(|name| of(name)).collect()
}

/// Writes the sums beside the chunk file at `chunks`, whose index has the checksum `index`; whole or not at all.
///
/// Errors: `Path`.
pub fn write(chunks: &Path, index: u64, rule: u64, weights: &[f32]) -> Result<()> {
    write_whole(&path(chunks, rule), &[&sums::write(index, rule, weights)])
}
