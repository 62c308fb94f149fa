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

    fn is_plain(&self) -> bool {
        true
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
    use gristmill_format::container::described::Described;
    use gristmill_runtime::store::Residence;

    use super::*;

    const SCHEMA: &str = r#"{"layout": "[('n', '<u8'), ('pad', '|u1', (3,)), ('k', '<u2')]", "identity": ["n"], "columns": [], "facts": []}"#;
    const SIZE: usize = 13;

    fn record(row: u64) -> Vec<u8> {
        [&row.to_le_bytes()[..], &[row as u8; 3], &(row as u16 ^ 0x55AA).to_le_bytes()].concat()
    }

    /// A chunk file of games of these lengths, whose first row has number `first`.
    fn write(path: &Path, mut first: u64, lengths: &[u32]) -> u64 {
        let (mut out, mut writer) = (MAGIC.to_vec(), ChunkFileWriter::new(Records.tag()));
        for (i, frames) in lengths.iter().enumerate() {
            let records: Vec<u8> = (first..first + u64::from(*frames)).flat_map(record).collect();
            let facts = "[]".repeat(i % 2);
            let mut packed = Vec::new();
            let described = Described { frames: *frames as usize, texts: [SCHEMA, &facts], records: &records };
            described.write(&mut packed).unwrap();
            writer.add(&format!("game {i}"), *frames, &packed).unwrap();
            out.extend(packed);
            first += u64::from(*frames);
        }
        out.extend(writer.finish());
        std::fs::write(path, out).unwrap();
        first
    }

    #[test]
    fn records_and_their_parts_are_copied_from_any_file_and_game() {
        let folder = tempfile::tempdir().unwrap();
        let lengths: Vec<u32> = (0..40).map(|i| [1, 2, 250, 17][i % 4]).collect();
        let first = write(&folder.path().join("games-00000.chunks"), 0, &lengths);
        let rows = write(&folder.path().join("games-00001.chunks"), first, &[300, 1, 5]);
        let pack = ChunkPack::open(folder.path(), Residence::Mapped).unwrap();
        assert_eq!((FrameTable::len(&pack), pack.layout().size()), (rows, SIZE));
        let parts = pack.parts().unwrap();
        // The first time games are checked, the second time they are known.
        for turn in 0..2 {
            for count in [0, 1, 255, 256, 257, 2000] {
                let wanted: Vec<u64> = (0..count).map(|i| (i * 977 + turn + rows - 3) % rows).collect();
                let records = pack.gathered(&wanted).unwrap();
                assert_eq!(records, wanted.iter().flat_map(|row| record(*row)).collect::<Vec<_>>(), "{count} rows");
                let (mut n, mut k) = (vec![0; wanted.len() * 8], vec![0; wanted.len() * 2]);
                parts.copy(&wanted, &[(0, 8), (11, 2)], &mut [&mut n, &mut k]).unwrap();
                assert_eq!(n, wanted.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<_>>());
                assert!(records.chunks(SIZE).zip(k.chunks(2)).all(|(record, k)| record[11..] == *k));
            }
        }
        for beyond in [rows, u64::MAX] {
            let mut out = [0; 2 * SIZE];
            let refused = parts.copy(&[0, beyond], &[(0, SIZE)], &mut [&mut out]).unwrap_err();
            assert_eq!(refused.kind(), Cause::Missing);
        }
    }

    #[test]
    fn a_damaged_game_is_refused_by_its_name_and_others_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games-00000.chunks");
        write(&path, 0, &[10, 10]);
        let mut bytes = std::fs::read(&path).unwrap();
        let place = bytes.windows(SIZE).position(|window| window == record(15)).unwrap();
        bytes[place] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let pack = ChunkPack::open(folder.path(), Residence::Mapped).unwrap();
        for _ in 0..2 {
            assert_eq!(pack.gathered(&[3, 9]).unwrap(), [record(3), record(9)].concat());
            let refused = pack.gathered(&[3, 10]).unwrap_err();
            assert!(refused.kind() == Cause::Corrupt && refused.to_string().contains("game 1"), "{refused}");
        }
    }
}
