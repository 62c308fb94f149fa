//! Records of a chunk -> what stands for their positions, for the steps that read positions.
//! A function of the record alone, in the encoder's layout, so that one position has one key whatever file it is in.

use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use xxhash_rust::xxh3::Xxh3;

use super::Chain;

impl Chain {
    /// Keys of some frames of a chunk; none where no step reads positions.
    pub(super) fn keys(&self, chunk: &Chunk, conform: &Conform, frames: impl Iterator<Item = usize>) -> Vec<u64> {
        if self.position.is_empty() {
            return Vec::new();
        }
        let mut record = vec![0; self.plan.encoder.input().size()];
        let key = |frame| {
            conform.record(chunk.record(frame), &mut record);
            let mut hash = Xxh3::new();
            self.position.iter().for_each(|bytes| hash.update(&record[bytes.clone()]));
            hash.digest()
        };
        frames.map(key).collect()
    }
}
