//! Chess, as the engine has to know it: packed games, what rules may use of a position, and tensors of Leela Chess Zero.

pub mod columns;
mod encoding;
mod games;

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::Result as FormatResult;
use gristmill_format::chess::identity::{Identity, identity};
use gristmill_format::chess::pack::{PackedGame, Packer, Position};
use gristmill_format::chess::weight::layout_judged;
use gristmill_format::chess::{Frame, InputFormat, KIND, Version, layout_v7};
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, Kept};
use gristmill_format::weigh::Weigher;
use gristmill_runtime::error::Result;
use gristmill_runtime::sql::SqlValue;
use gristmill_runtime::table::Pick;
use gristmill_stages::config::EncoderConfig;
use xxhash_rust::xxh3::xxh3_128;

use super::{Held, Kind};
use crate::chunks::codec::{Called, Codec, Packing};
use crate::chunks::metadata::Games;
use crate::chunks::open::ChunkPack;
use crate::pack_table::Content;

/// Planes of the pieces of both sides in the position itself, six each; the thirteenth of a board tells repetitions.
const PIECES: usize = 12;

/// Bit of `invariance_info` that says in canonical formats that Black is to move.
const BLACK: u8 = 1 << 7;

/// Games of chess.
#[derive(Debug)]
pub struct Chess;

impl Kind for Chess {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "games of chess"
    }

    fn files(&self) -> &'static str {
        "games of chess (.gz, plain records, a .tar of them, or PGN)"
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::Chess
    }

    fn codec(&self) -> Option<&'static dyn Codec> {
        Some(&Chess)
    }

    fn held(&self, held: &Held<'_>) -> String {
        held.fed("a file of chess games", "files of chess games")
    }
}

impl Codec for Chess {
    fn called(&self) -> Called {
        Called::of::<gristmill_format::chess::pack::Chess>()
    }

    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        columns::columns()
    }

    fn beside(&self) -> usize {
        columns::BESIDE
    }

    fn class_column(&self) -> Option<&'static str> {
        Some("result")
    }

    fn class(&self, game: &Chunk) -> FormatResult<Option<SqlValue>> {
        if game.frames == 0 { Ok(None) } else { columns::result(game).map(|result| Some(f64::from(result).into())) }
    }

    fn said(&self, facts: &[SqlValue]) -> Vec<(String, String)> {
        columns::tags(facts)
    }

    /// V7, whatever was packed.
    fn layout(&self, _: &dyn Fn() -> FormatResult<Vec<u8>>) -> FormatResult<Arc<Layout>> {
        Ok(Arc::clone(layout_v7()))
    }

    fn derived(&self) -> &'static [&'static str] {
        &["men", "black_to_move"]
    }

    fn derive(&self, i: usize, _: &Layout, record: &[u8]) -> FormatResult<i64> {
        let frame = Frame::new(record)?;
        Ok(match i {
            0 => (0..PIECES).map(|plane| i64::from(frame.plane(plane).count_ones())).sum(),
            _ => match frame.input_format()? {
                InputFormat::Classical | InputFormat::Castling => i64::from(frame.side_to_move_or_enpassant() != 0),
                _ => i64::from(frame.invariance_info() & BLACK != 0),
            },
        })
    }

    fn contents(&self, pack: &ChunkPack, games: Range<u64>) -> FormatResult<Vec<Content>> {
        let (mut position, mut records) = (Position::default(), Vec::new());
        let content = |game: u64| {
            let size = games::records(pack, game, &mut position, &mut records)?;
            let Identity { key, black_first } = identity(&records, size)?;
            Ok(Content { game, key, image: black_first.into(), records: xxh3_128(&records) })
        };
        games.map(content).collect()
    }

    fn known(&self, database: &Games, games: Range<u64>) -> Result<Option<Vec<Content>>> {
        database.identities(games)
    }

    fn gather(&self, pack: &ChunkPack, rows: &[u64], out: &mut [u8]) -> FormatResult<()> {
        games::gather(pack, rows, out)
    }

    fn encode(
        &self,
        pack: &ChunkPack,
        encoder: &dyn Encoder,
        picks: &[Pick],
        out: &mut [&mut [u8]],
    ) -> FormatResult<()> {
        games::encode(pack, encoder, picks, out)
    }

    fn packing(&self) -> Option<Packing> {
        let pack = |chunk: &Chunk, tools: &mut Kept, out: &mut Vec<u8>| {
            tools.tool::<Packer>().pack(version(chunk), chunk.records(), out)
        };
        Some(Packing { label: "chess chunks", pack, facts: |chunk| columns::facts(version(chunk), chunk) })
    }

    fn weigher(&self) -> Option<Arc<dyn Weigher>> {
        Some(Arc::new(columns::WEIGHER))
    }

    fn judged(&self, bytes: &[u8], out: &mut Chunk) -> FormatResult<()> {
        let packed = PackedGame::new(bytes)?;
        out.layout = Some(Arc::clone(layout_judged()));
        packed.judged(Position::default, &mut out.bytes)?;
        out.frames = packed.frames();
        Ok(())
    }
}

fn version(chunk: &Chunk) -> Version {
    let wide = chunk.layout.as_ref().is_some_and(|layout| layout.size() == Version::V7.bytes());
    if wide { Version::V7 } else { Version::V6 }
}
