//! Demonstrations, as the engine has to know them: packed trajectories, and the fields of their steps as tensors.

pub mod columns;
mod steps;
mod trajectories;

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::demo::KIND;
use gristmill_format::demo::encode::{FieldEncoder, declarations};
use gristmill_format::demo::pack::PackedTrajectory;
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::{Error as FormatError, Kind as Cause, Result as FormatResult};
use gristmill_runtime::error::Result;
use gristmill_runtime::table::Pick;
use gristmill_stages::config::EncoderConfig;
use serde_json::{Value, json};

use super::{Encoding, Held, Kind, Way, of_tensors};
use crate::chunks::codec::{Called, Codec};
use crate::chunks::metadata::Games;
use crate::chunks::open::ChunkPack;
use crate::pack_table::Content;

pub use trajectories::{begun, is_trajectories, name};

/// Demonstrations.
#[derive(Debug)]
pub struct Demo;

impl Kind for Demo {
    fn name(&self) -> &'static str {
        KIND
    }

    fn games(&self) -> &'static str {
        "demonstrations"
    }

    fn files(&self) -> &'static str {
        "demonstrations (.tar, .tar.zst, .tgz, .pkl.gz, .pkl, .npz)"
    }

    fn way(&self) -> Option<Way> {
        Some(Way::Sets)
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig::Fields
    }

    fn codec(&self) -> Option<&'static dyn Codec> {
        Some(&Demo)
    }

    fn declared(&self) -> Option<&'static str> {
        Some(
            "a pack of demonstrations, which streams take by the encoder `fields` alone: declare them, or feed it by \
             gristmill.DataLoader(gristmill.open(PACK), batch_size=...) in Python",
        )
    }

    fn declares(&self, records: &Layout) -> Vec<String> {
        declarations(records)
    }

    fn held(&self, held: &Held<'_>) -> String {
        if held.loose {
            return format!(
                "holds {}: gristmill.PairLoader or StepLoader feed gristmill.open of them in Python, a stream with the encoder \
                 `fields` and max_solid_bytes takes them, and `gristmill inspect {}` describes them",
                held.files("a file of demonstrations", "files of demonstrations"),
                held.folder.display()
            );
        }
        format!(
            "holds a pack of demonstrations: gristmill.DataLoader, PairLoader or StepLoader feed gristmill.open({:?}) in Python",
            held.folder
        )
    }
}

impl Codec for Demo {
    fn called(&self) -> Called {
        Called::of::<gristmill_format::demo::pack::Demo>()
    }

    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        columns::columns()
    }

    /// That of its first trajectory.
    fn layout(&self, first: &dyn Fn() -> FormatResult<Vec<u8>>) -> FormatResult<Arc<Layout>> {
        Ok(PackedTrajectory::new(&first()?)?.about()?.layout)
    }

    fn contents(&self, _: &ChunkPack, _: Range<u64>) -> FormatResult<Vec<Content>> {
        Err(FormatError::new(Cause::Unsupported, "who trajectories are, the database of their pack says"))
    }

    /// What has no symmetries is known by its records alone.
    fn known(&self, database: &Games, games: Range<u64>) -> Result<Option<Vec<Content>>> {
        let mut all = Vec::new();
        database.of(games, &mut |game| {
            all.push(Content { game: game.id, key: game.content, image: 0, records: game.content });
            Ok(())
        })?;
        Ok(Some(all))
    }

    fn gather(&self, pack: &ChunkPack, rows: &[u64], out: &mut [u8]) -> FormatResult<()> {
        pack.step_records(rows, out)
    }

    fn encode(
        &self,
        pack: &ChunkPack,
        encoder: &dyn Encoder,
        picks: &[Pick],
        out: &mut [&mut [u8]],
    ) -> FormatResult<()> {
        pack.step_tensors(encoder, picks, out)
    }
}

impl Encoding for Demo {
    fn of_stream(&self, tensors: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(FieldEncoder::declared(tensors))
    }

    fn of_rows(&self, tensors: &[String], layout: &Layout, _: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(FieldEncoder::new(layout, tensors))
    }

    fn decides(&self, _: Value, tensors: &[String]) -> Value {
        json!({ "fields": tensors })
    }
}
