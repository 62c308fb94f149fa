//! The bytes of one inflated game -> V6 or V7 frames with their layout.
//! Never trusts a version: the size must agree with it in every record.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Kind, Result};
use crate::layout::{Layout, Scalar};
use crate::source::Chunk;

static LAYOUTS: LazyLock<[Option<Arc<Layout>>; 2]> = LazyLock::new(|| {
    [8352, 8392].map(|rest| {
        Layout::packed(&[("version", Scalar::U32, &[]), ("rest", Scalar::Void(rest), &[])]).ok().map(Arc::new)
    })
});

/// Takes `chunk.bytes` as one game and sets `layout` and `frames`.
///
/// Errors: `Empty`, `Truncated`, `UnknownVersion`, `WrongSize`, with frame and byte of the inflated game.
pub fn parse(chunk: &mut Chunk) -> Result<()> {
    chunk.frames = 0;
    let bytes = &chunk.bytes[..];
    let Some(head) = bytes.first_chunk::<4>() else {
        return Err(Error::new(Kind::Empty, format!("a game of {} bytes", bytes.len())).at_byte(0));
    };
    let version = u32::from_le_bytes(*head);
    let (size, layout) = match version {
        6 => (8356, &LAYOUTS[0]),
        7 => (8396, &LAYOUTS[1]),
        _ => return Err(Error::new(Kind::UnknownVersion, format!("version {version}")).at_byte(0)),
    };
    if !bytes.len().is_multiple_of(size) {
        return Err(Error::new(Kind::WrongSize, format!("{} bytes are not whole {size}-byte records", bytes.len()))
            .at_byte((bytes.len() / size * size) as u64));
    }
    for (i, record) in bytes.chunks_exact(size).enumerate() {
        if record[..4] != head[..] {
            return Err(Error::new(Kind::UnknownVersion, "the version changes within the game")
                .in_frame(i)
                .at_byte((i * size) as u64));
        }
    }
    chunk.frames = bytes.len() / size;
    chunk.layout = layout.clone();
    Ok(())
}
