//! Positions of Stockfish's binpack, as the engine has to know them: packed as records, with their columns and tensors.
//! A chunk is a chain: positions of a game that follow from each other.

pub mod columns;

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::Result as FormatResult;
use gristmill_format::binpack::record::{BYTES, DERIVED, at};
use gristmill_format::binpack::{KIND, Position, PositionEncoder, layout, pack};
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

/// Positions of Stockfish's binpack.
#[derive(Debug)]
pub struct Binpack;

impl Kind for Binpack {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "chains of Stockfish's binpack"
    }

    fn files(&self) -> &'static str {
        "Stockfish's binpacks (.binpack)"
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::Of(KIND.to_owned())
    }

    fn encoding(&self) -> Option<&dyn Encoding> {
        Some(&Binpack)
    }

    fn codec(&self) -> Option<&'static dyn Codec> {
        Some(&Binpack)
    }
}

impl Encoding for Binpack {
    fn of_stream(&self, tensors: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(PositionEncoder::new(tensors))
    }

    fn of_rows(&self, tensors: &[String], _: &Layout, _: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(PositionEncoder::new(tensors))
    }

    fn decides(&self, _: Value, tensors: &[String]) -> Value {
        json!({ "binpack": tensors })
    }
}

impl Codec for Binpack {
    fn called(&self) -> Called {
        Called::of::<pack::Chains>()
    }

    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        columns::columns()
    }

    fn layout(&self, _: &dyn Fn() -> FormatResult<Vec<u8>>) -> FormatResult<Arc<Layout>> {
        Ok(Arc::clone(layout()))
    }

    fn derived(&self) -> &'static [&'static str] {
        &DERIVED
    }

    fn derive(&self, i: usize, _: &Layout, record: &[u8]) -> FormatResult<i64> {
        Position::new(record)?.derived(i)
    }

    /// Chains are the same if all their positions have the same men with the same rights. Moves and scores do not count.
    fn contents(&self, pack: &ChunkPack, games: Range<u64>) -> FormatResult<Vec<Content>> {
        plain::contents(pack, games, |_, records| {
            let mut hash = Xxh3::new();
            records.as_chunks::<BYTES>().0.iter().for_each(|record| hash.update(&record[..at::MOVE]));
            Ok((hash.digest128(), 0))
        })
    }

    fn packing(&self) -> Option<Packing> {
        Some(Packing::as_it_is("positions of Stockfish's binpack", columns::facts))
    }

    /// The records of a chunk: all of it. Their sum was held against the index; a record is checked where it is used, since few of a
    /// chain are.
    fn records<'a>(&self, _: &ChunkPack, bytes: &'a [u8], frames: Option<usize>) -> FormatResult<&'a [u8]> {
        if let Some(frames) = frames {
            agree(bytes.len() / BYTES, frames)?;
        }
        Ok(bytes)
    }
}
