//! What the engine needs of training rows of KataGo: they are packed as they are, and have columns and tensors.
//! A chunk is some consecutive rows of a shard, since shards have no games.

pub mod columns;

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::container::packed::agree;
use gristmill_format::encode::Encoder;
use gristmill_format::katago::form::{GLOBALS, PLANES};
use gristmill_format::katago::pack::{Last, PackedRows, pack};
use gristmill_format::katago::row::board;
use gristmill_format::katago::{KIND, RowEncoder};
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, Kept};
use gristmill_format::{Error as FormatError, Kind as Cause, Result as FormatResult};
use gristmill_runtime::error::Result;
use gristmill_runtime::table::FrameTable;
use gristmill_stages::config::EncoderConfig;
use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3;

use super::{Encoding, Held, Kind, of_tensors};
use crate::chunks::codec::{Called, Codec, Packing};
use crate::chunks::open::ChunkPack;
use crate::chunks::plain;
use crate::pack_table::Content;

/// Training rows of KataGo.
#[derive(Debug)]
pub struct KataGo;

impl Kind for KataGo {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "rows of KataGo"
    }

    fn files(&self) -> &'static str {
        "shards of KataGo (.npz)"
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::Of(KIND.to_owned())
    }

    fn encoding(&self) -> Option<&dyn Encoding> {
        Some(&KataGo)
    }

    fn codec(&self) -> Option<&'static dyn Codec> {
        Some(&KataGo)
    }

    fn held(&self, held: &Held<'_>) -> String {
        let folder = held.folder.display();
        if held.loose {
            let files = held.files("a shard of KataGo", "shards of KataGo");
            return format!(
                "holds {files}: `gristmill pack {folder} PACK` makes a pack of them, and a stream with the encoder `katago` and \
                 max_solid_bytes takes them"
            );
        }
        format!("holds a pack of rows of KataGo: `gristmill feed {folder}` feeds it")
    }
}

impl Encoding for KataGo {
    fn of_stream(&self, tensors: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(RowEncoder::declared(tensors))
    }

    fn of_rows(&self, tensors: &[String], layout: &Layout, _: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(RowEncoder::new(layout, tensors))
    }

    fn decides(&self, _: Value, tensors: &[String]) -> Value {
        json!({ "katago": tensors })
    }
}

impl Codec for KataGo {
    fn called(&self) -> Called {
        Called::of::<gristmill_format::katago::pack::KataGo>()
    }

    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        columns::columns()
    }

    /// By their members.
    fn varies(&self) -> bool {
        true
    }

    fn agree(&self, first: &[u8], other: &[u8]) -> FormatResult<()> {
        let (first, other) = (PackedRows::new(first)?.descr(), PackedRows::new(other)?.descr());
        if first == other {
            return Ok(());
        }
        let detail =
            format!("rows of {other}, the pack has {first}: shards whose members differ are packs of their own");
        Err(FormatError::new(Cause::WrongSize, detail))
    }

    fn layout(&self, first: &dyn Fn() -> FormatResult<Vec<u8>>) -> FormatResult<Arc<Layout>> {
        Ok(Arc::clone(PackedRows::new(&first()?)?.form()?.layout()))
    }

    fn derived(&self) -> &'static [&'static str] {
        &["points", "stones"]
    }

    fn derive(&self, i: usize, layout: &Layout, record: &[u8]) -> FormatResult<i64> {
        let board = board(layout, record);
        Ok(if i == 0 { board.points } else { board.own + board.other }.into())
    }

    /// Two chunks are the same if they have the same boards in the same order, whatever their targets are.
    fn contents(&self, pack: &ChunkPack, games: Range<u64>) -> FormatResult<Vec<Content>> {
        plain::contents(pack, games, |bytes, records| {
            let (form, mut hash) = (PackedRows::new(bytes)?.form()?, Xxh3::new());
            for record in records.chunks_exact(form.layout().size()) {
                [PLANES, GLOBALS].iter().for_each(|member| hash.update(form.bytes(member, record)));
            }
            Ok((hash.digest128(), 0))
        })
    }

    fn packing(&self) -> Option<Packing> {
        let pack = |chunk: &Chunk, _: &mut Kept, out: &mut Vec<u8>| pack(chunk, out);
        Some(Packing { label: "rows of KataGo", pack, facts: columns::facts })
    }

    /// The records of a chunk.
    fn records<'a>(&self, pack: &ChunkPack, bytes: &'a [u8], frames: Option<usize>) -> FormatResult<&'a [u8]> {
        let packed = PackedRows::new(bytes)?;
        if let Some(frames) = frames {
            agree(packed.frames(), frames)?;
            let form = pack.with_tools(|tools| packed.form_of(tools.tool::<Last>()))?;
            if **form.layout() != *pack.layout() {
                let detail = format!("rows of {} in a pack of {}", packed.descr(), pack.layout().to_descr());
                return Err(FormatError::new(Cause::WrongSize, detail));
            }
            packed.check(&form)?;
        }
        Ok(packed.records())
    }
}
