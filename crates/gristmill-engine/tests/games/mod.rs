//! Small games and tars of them for tests: plain V6 records, which the readers take without gzip.

use gristmill_format::chess::{FrameMut, InputFormat, Version};
use gristmill_format::container::tar::TarWriter;

/// A game of `frames` V6 records that all carry `mark`.
pub(crate) fn game(frames: usize, mark: u8) -> Vec<u8> {
    let mut bytes = vec![0; frames * Version::V6.bytes()];
    for record in bytes.chunks_exact_mut(Version::V6.bytes()) {
        FrameMut::blank(record, InputFormat::Classical).unwrap();
        record[7440..8272].fill(mark);
    }
    bytes
}

/// A tar of games, named `training.<i>.gz`, of the given frames each.
pub(crate) fn tar(frames: &[usize]) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    for (i, frames) in frames.iter().enumerate() {
        tar.append(&format!("d/training.{i}.gz"), &game(*frames, i as u8)).unwrap();
    }
    tar.finish().unwrap()
}
