//! Boards of bulletformat, as the engine has to know them: packed as they are, with their columns and tensors.
//! A chunk is a run of boards of a file, since such files have no games.

pub mod columns;

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::Result as FormatResult;
use gristmill_format::bullet::board::{BYTES, check_all};
use gristmill_format::bullet::{Board, BoardEncoder, KIND, layout};
use gristmill_format::container::packed::agree;
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_runtime::error::Result;
use gristmill_stages::config::EncoderConfig;
use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3;

use super::{Encoding, Kind, of_tensors};
use crate::chunks::codec::{Called, Codec, Packing};
use crate::chunks::open::ChunkPack;
use crate::chunks::plain;
use crate::pack_table::Content;

/// Boards of bulletformat.
#[derive(Debug)]
pub struct Bullet;

impl Kind for Bullet {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "boards of bulletformat"
    }

    fn files(&self) -> &'static str {
        "boards of bulletformat (.bf, .bullet, .bulletformat)"
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::Of(KIND.to_owned())
    }

    fn encoding(&self) -> Option<&dyn Encoding> {
        Some(&Bullet)
    }

    fn codec(&self) -> Option<&'static dyn Codec> {
        Some(&Bullet)
    }
}

impl Encoding for Bullet {
    fn of_stream(&self, tensors: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(BoardEncoder::new(tensors))
    }

    fn of_rows(&self, tensors: &[String], _: &Layout, _: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(BoardEncoder::new(tensors))
    }

    fn decides(&self, _: Value, tensors: &[String]) -> Value {
        json!({ "bullet": tensors })
    }
}

impl Codec for Bullet {
    fn called(&self) -> Called {
        Called::of::<gristmill_format::bullet::pack::Bullet>()
    }

    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        columns::columns()
    }

    fn layout(&self, _: &dyn Fn() -> FormatResult<Vec<u8>>) -> FormatResult<Arc<Layout>> {
        Ok(Arc::clone(layout()))
    }

    fn derived(&self) -> &'static [&'static str] {
        &["men"]
    }

    fn derive(&self, _: usize, _: &Layout, record: &[u8]) -> FormatResult<i64> {
        Ok(Board::new(record)?.men().into())
    }

    /// Chunks are the same where the same men stand on the same squares, or left and right are exchanged, whatever is known of them.
    fn contents(&self, pack: &ChunkPack, games: Range<u64>) -> FormatResult<Vec<Content>> {
        plain::contents(pack, games, |_, records| {
            let mut hashes = [Xxh3::new(), Xxh3::new()];
            for record in records.chunks_exact(BYTES) {
                let board = Board::new(record)?;
                hashes.iter_mut().zip([false, true]).for_each(|(hash, turned)| hash.update(&board.position(turned)));
            }
            let [plain, turned] = hashes.map(|hash| hash.digest128());
            Ok((plain.min(turned), u8::from(turned < plain)))
        })
    }

    fn packing(&self) -> Option<Packing> {
        Some(Packing::as_it_is("boards of bulletformat", columns::facts))
    }

    /// The records of a chunk: all of it.
    fn records<'a>(&self, _: &ChunkPack, bytes: &'a [u8], frames: Option<usize>) -> FormatResult<&'a [u8]> {
        if let Some(frames) = frames {
            check_all(bytes, 0)?;
            agree(bytes.len() / BYTES, frames)?;
        }
        Ok(bytes)
    }
}
