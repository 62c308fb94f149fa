//! Packed trajectories of a chunk file -> chunks: each trajectory is a chunk, and comes back as the records that it was.

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, check_room};
use gristmill_bytes::error::Result;
use gristmill_bytes::source::{Chunk, Limits};

use super::decode::{PackedTrajectory, Scratch};
use crate::budget::MAX_BYTES;
use crate::trajectory::KIND;

/// What a chunk file of packed trajectories says that it holds.
pub const CODEC: Codec = *b"demo\0\0\0\x01";

/// How sources call chunk files of packed trajectories.
pub const PACKED: &str = "demo.chunks";

/// A chunk file of packed trajectories.
pub type PackedDemos = PackedFile<Demo>;

/// Trajectories of demonstrations, as chunks.
#[derive(Debug)]
pub struct Demo;

impl Packing for Demo {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "packed trajectories";

    fn limits() -> Limits {
        Limits { max_chunk_bytes: MAX_BYTES }
    }

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        let packed = PackedTrajectory::new(bytes)?;
        agree(packed.frames(), frames)?;
        let (size, layout) = (packed.record_bytes(), packed.about()?.layout);
        let count = match wanted {
            Wanted::Rows(rows) => rows.len(),
            Wanted::All | Wanted::Judged => frames,
        };
        let bytes = check_room(count, size, max)?;
        out.bytes.reserve_exact(bytes);
        out.bytes.resize(bytes, 0);
        let scratch = out.kept.tool::<Scratch>();
        scratch.forget();
        for (i, record) in out.bytes.chunks_exact_mut(size.max(1)).enumerate() {
            let frame = if let Wanted::Rows(rows) = wanted { rows[i] as usize } else { i };
            packed.record(frame, scratch, record).map_err(|e| e.in_frame(frame))?;
        }
        (out.layout, out.frames) = (Some(layout), count);
        Ok(())
    }
}
