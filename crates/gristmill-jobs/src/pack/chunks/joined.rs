//! Chunk packs that shares made -> the games of one pack, in the order of the shares. Nothing is decoded: packed games are taken as
//! they are, once their checksums were held against them.

use std::path::Path;
use std::sync::atomic::Ordering;

use gristmill_engine::chunks::codec::Codec;
use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::Games as Database;
use gristmill_engine::chunks::open::{ChunkPack, File};
use gristmill_engine::chunks::sums;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::packs::weigh_file;
use gristmill_engine::kinds::{self, Way};
use gristmill_engine::pack::METADATA;
use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::store::Residence;
use gristmill_engine::table::FrameTable;
use gristmill_format::{Error as FormatError, Kind};

use super::assemble::{Assembly, Game, Rules};
use super::demos::LABEL;
use super::{Finds, Input};
use crate::pack::PackOptions;
use crate::pack::join::{Part, told};

/// Shares of whole games, in order.
pub(in super::super) struct ChunkParts {
    codec: &'static dyn Codec,
    parts: Vec<Part>,
    /// What was left out when inputs were listed.
    listed: Vec<Skipped>,
    /// The first game of all.
    first: Option<Vec<u8>>,
}

impl ChunkParts {
    /// Sees that the shares go together.
    ///
    /// Errors: `WrongSize` for records that differ, which one process would leave out; those of damaged packs.
    pub(in super::super) fn boxed(parts: Vec<Part>) -> Result<Box<dyn Input>> {
        let mut first: Option<ChunkPack> = None;
        for path in parts.iter().filter_map(|part| part.pack.as_deref()) {
            let pack = ChunkPack::open(path, Residence::Mapped)?;
            let Some(before) = &first else {
                first = Some(pack);
                continue;
            };
            if pack.layout() != before.layout() || pack.codec().name() != before.codec().name() {
                let (one, two) = (before.layout().to_descr(), pack.layout().to_descr());
                let detail = format!("records of {two} in this share, of {one} in the first; pack them apart");
                return Err(FormatError::new(Kind::WrongSize, detail).in_source(path.display().to_string()).into());
            }
        }
        let missing = || FormatError::new(Kind::Empty, "no share has a game");
        let pack = first.ok_or_else(missing)?;
        let (codec, first) = (pack.codec(), pack.stored(0)?.to_vec());
        let own = parts.iter().flat_map(|part| part.said.own.iter());
        let whole = parts.first().into_iter().flat_map(|part| part.said.whole.iter());
        let listed = own.chain(whole).cloned().collect();
        Ok(Box::new(ChunkParts { codec, parts, listed, first: Some(first) }))
    }
}

impl Input for ChunkParts {
    fn codec(&self) -> &'static dyn Codec {
        self.codec
    }

    fn label(&self) -> &'static str {
        let of = |(_, way)| match way {
            Way::Chunks(codec, packing) if codec.name() == self.codec.name() => Some(packing.label),
            _ => None,
        };
        kinds::packable().find_map(of).unwrap_or(LABEL)
    }

    fn unusable(&self) -> (&[Skipped], Option<&FormatError>) {
        (&self.listed, None)
    }

    fn first(&self) -> Option<Vec<u8>> {
        self.first.clone()
    }

    fn count(&self, _: &PackOptions) -> Result<u64> {
        Ok(self.parts.iter().map(|part| part.said.games).sum())
    }

    fn feed(self: Box<Self>, assembly: &mut Assembly<'_>, found: &mut Finds<'_>) -> Result<u64> {
        let count = self.count(assembly.options)?;
        assembly.told = Some(told(&self.parts));
        for part in self.parts {
            if let Some(pack) = &part.pack {
                append(pack, assembly)?;
            }
            assembly.standing.skipped.extend(part.said.skipped);
            found(assembly, count);
        }
        Ok(count)
    }
}

/// A chunk file, and what its games weigh by each rule of the job.
type Weighed = (File, Vec<Vec<f32>>);

/// Appends the pack of a share.
fn append(pack: &Path, assembly: &mut Assembly<'_>) -> Result<()> {
    let manifest = Manifest::read(pack)?;
    let files: Vec<Weighed> =
        manifest.files.iter().map(|file| weighed(&pack.join(&file.name), &assembly.rules)).collect::<Result<_>>()?;
    let stop = assembly.options.stop.clone();
    Database::open(&pack.join(METADATA))?.each(&mut |game| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let chunk = game.chunk as usize;
        let missing = || {
            let detail = format!("game {} is in none of the files; remove the share and make it again", game.id);
            FormatError::new(Kind::Missing, detail).in_source(pack.display().to_string())
        };
        let (file, sums) = files.get(game.file as usize).ok_or_else(missing)?;
        let frames = u32::try_from(game.frames).map_err(|_| missing())?;
        let packed = file.game(chunk)?.to_vec();
        let sums = sums.iter().map(|of| of.get(chunk).copied().ok_or_else(missing)).collect::<Result<_, _>>()?;
        let (stored_bytes, content) = (game.stored_bytes, game.content);
        let name = game.source;
        assembly.take(&name, Ok(Game { packed, frames, stored_bytes, content, facts: game.facts, sums }))
    })
}

fn weighed(path: &Path, rules: &Rules) -> Result<Weighed> {
    let file = File::open(path)?;
    let of = |kept: Option<Vec<f32>>, rule: &dyn gristmill_format::weigh::Weigher| match kept {
        Some(sums) => Ok(sums),
        None => weigh_file(path, rule),
    };
    let sums = rules.iter().map(|rule| of(sums::read(path, file.index(), rule.id()), &**rule));
    let sums = sums.collect::<gristmill_format::Result<_>>()?;
    Ok((file, sums))
}
