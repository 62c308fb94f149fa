//! Records of anybody's game, as the engine has to know them: packed as they are, with the columns that their schema
//! names, and their fields as tensors. What is true of one game alone is in `docs/format/records.md`.

mod columns;

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::container::packed::agree;
use gristmill_format::layout::Layout;
use gristmill_format::records::KIND;
use gristmill_format::records::pack::{Last, PackedGame, pack};
use gristmill_format::source::{Chunk, Kept};
use gristmill_format::{Error, Kind as Cause, Result};
use gristmill_runtime::table::FrameTable;
use gristmill_stages::config::EncoderConfig;

use super::{Held, Kind};
use crate::chunks::codec::{Called, Codec, Packing};
use crate::chunks::metadata::Games;
use crate::chunks::open::ChunkPack;
use crate::chunks::plain;
use crate::pack_table::Content;

/// Records of any game.
#[derive(Debug)]
pub struct Records;

impl Kind for Records {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "games of records"
    }

    fn files(&self) -> &'static str {
        "records of any game (.records)"
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::Fields
    }

    fn codec(&self) -> Option<&'static dyn Codec> {
        Some(&Records)
    }

    fn declared(&self) -> Option<&'static str> {
        Some(
            "records of a game, which streams take by the encoder `fields` alone: declare them, or feed a pack of them by \
             gristmill.DataLoader(gristmill.open(PACK), batch_size=...) in Python",
        )
    }

    fn held(&self, held: &Held<'_>) -> String {
        let folder = held.folder.display();
        if held.loose {
            let files = held.files("a file of games of records", "files of games of records");
            return format!(
                "holds {files}: `gristmill pack {folder} PACK` makes a pack of them, and a stream with the encoder `fields` takes them"
            );
        }
        format!("holds a pack of records: gristmill.DataLoader feeds gristmill.open({:?}) in Python", held.folder)
    }
}

impl Codec for Records {
    fn called(&self) -> Called {
        Called::of::<gristmill_format::records::pack::Records>()
    }

    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        columns::columns()
    }

    fn varies(&self) -> bool {
        true
    }

    fn own_columns(&self, packed: &[u8]) -> Result<Vec<(String, &'static str)>> {
        let schema = PackedGame::new(packed)?.parse()?;
        Ok(schema.names().map(str::to_owned).zip(schema.types()).collect())
    }

    fn agree(&self, first: &[u8], other: &[u8]) -> Result<()> {
        let (first, other) = (PackedGame::new(first)?, PackedGame::new(other)?);
        if first.schema() == other.schema() { Ok(()) } else { first.parse()?.agree(&other.parse()?) }
    }

    fn layout(&self, first: &dyn Fn() -> Result<Vec<u8>>) -> Result<Arc<Layout>> {
        Ok(Arc::clone(PackedGame::new(&first()?)?.parse()?.layout()))
    }

    fn contents(&self, pack: &ChunkPack, games: Range<u64>) -> Result<Vec<Content>> {
        plain::contents(pack, games, |bytes, records| Ok((PackedGame::new(bytes)?.parse()?.key(records), 0)))
    }

    /// Packing has found out who games are.
    fn known(&self, database: &Games, games: Range<u64>) -> gristmill_runtime::Result<Option<Vec<Content>>> {
        database.identities(games)
    }

    fn packing(&self) -> Option<Packing> {
        let pack = |chunk: &Chunk, _: &mut Kept, out: &mut Vec<u8>| pack(chunk, out);
        Some(Packing { label: "games of records", pack, facts: columns::facts })
    }

    /// The records of a game.
    fn records<'a>(&self, pack: &ChunkPack, bytes: &'a [u8], frames: Option<usize>) -> Result<&'a [u8]> {
        let game = PackedGame::new(bytes)?;
        if let Some(frames) = frames {
            agree(game.frames(), frames)?;
            let schema = pack.with_tools(|tools| game.parse_with(tools.tool::<Last>()))?;
            if **schema.layout() != *pack.layout() {
                let detail =
                    format!("records of {} in a pack of {}", schema.layout().to_descr(), pack.layout().to_descr());
                return Err(Error::new(Cause::WrongSize, detail));
            }
        }
        Ok(game.records())
    }
}
