//! Packed games, in order -> the staged files of a chunk pack. One thread; all that is numbered is numbered here.
//! Each chunk file that is closed is a point to which a killed job returns.

use std::collections::HashSet;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::chunks::codec::Codec;
use gristmill_engine::chunks::file_name;
use gristmill_engine::chunks::manifest::{ChunkFileEntry, FORMAT, Manifest, VERSION};
use gristmill_engine::chunks::metadata::{self, Games};
use gristmill_engine::chunks::sums;
use gristmill_engine::database::Writer;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::packs::{unkept, write_opening};
use gristmill_engine::lineage::{Step, WRITER};
use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::pack::{MANIFEST, METADATA};
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::publish::Staging;
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::weigh::Weigher;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::pack::begin::{stage, stage_quarantine};
use crate::pack::lineage::{Made, Told};
use crate::pack::{OnError, PackOptions, Storing, is_unreadable};

/// The option of a step of the lineage that has the codec which the user named.
pub(super) const STORED: &str = "stored";

/// Where a job stands: everything that it needs to resume, beside the files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Standing {
    /// Whether games are added to an existing pack.
    pub(super) append: bool,
    /// Games that were read.
    pub(super) done: usize,
    /// XXH3-128 of their names, each with a line feed, as 32 hexadecimal digits.
    pub(super) names: String,
    /// Frames of every file but the last, at least.
    pub(super) file_frames: u64,
    /// How the job stores games, where the user named a codec for it or for the job before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) codec: Option<Storing>,
    pub(super) games: u64,
    pub(super) games_before: u64,
    pub(super) frames: u64,
    pub(super) known: u64,
    pub(super) files: Vec<ChunkFileEntry>,
    pub(super) files_before: usize,
    pub(super) stored_bytes: u64,
    pub(super) skipped: Vec<Skipped>,
    pub(super) skipped_before: usize,
}

/// By what the games of a job are weighed.
pub(super) type Rules = Arc<[Arc<dyn Weigher>]>;

/// A game, packed.
pub(super) struct Game {
    pub(super) packed: Vec<u8>,
    pub(super) frames: u32,
    pub(super) stored_bytes: u64,
    /// XXH3-128 of its records.
    pub(super) content: u128,
    /// A value for each column of the codec.
    pub(super) facts: Vec<SqlValue>,
    /// What it weighs by each rule of the job.
    pub(super) sums: Vec<f32>,
}

/// A pack in the making.
pub(in super::super) struct Assembly<'a> {
    pub(super) options: &'a PackOptions,
    codec: &'static dyn Codec,
    /// A packed game that the others are to be like.
    first: Option<Vec<u8>>,
    /// The name of this form in what [`Packed`](crate::pack::Packed) says.
    pub(super) label: &'static str,
    pub(super) staging: Staging,
    pub(super) standing: Standing,
    /// By what games are weighed.
    pub(super) rules: Rules,
    metadata: Writer,
    /// Hashes of the games that the pack had before.
    known: HashSet<u128>,
    names: Xxh3,
    /// Games that the interrupted job read, and that were not passed over yet.
    behind: usize,
    open: Option<Open>,
    /// What shares say of their games, where it is made of these.
    pub(super) told: Option<Told>,
}

/// The chunk file that is being written.
struct Open {
    to: BufWriter<fs::File>,
    path: PathBuf,
    index: ChunkFileWriter,
    /// What its games weigh, by rule.
    sums: Vec<Vec<f32>>,
}

impl<'a> Assembly<'a> {
    /// Resumes from `standing`: the games of the earlier run come again, and are [passed over](Assembly::recall).
    ///
    /// Errors: `Format` and `Path` with the file.
    pub(super) fn new(
        options: &'a PackOptions,
        (codec, label, first): (&'static dyn Codec, &'static str, Option<Vec<u8>>),
        staging: Staging,
        standing: Standing,
        rules: Rules,
        known: HashSet<u128>,
    ) -> Result<Self> {
        let own = first.as_deref().map_or(Ok(Vec::new()), |first| codec.own_columns(first))?;
        let metadata = Writer::of_games(staging.path(METADATA), &codec.columns(), &own)?;
        let (names, behind) = (Xxh3::new(), standing.done);
        let (open, told) = (None, None);
        let mut assembly = Assembly {
            options,
            codec,
            first,
            label,
            staging,
            standing,
            rules,
            metadata,
            known,
            names,
            behind,
            open,
            told,
        };
        if behind == 0 {
            assembly.checkpoint()?;
        }
        assembly.staging.keep();
        Ok(assembly)
    }

    /// Whether the interrupted job had seen the next game: it is not to be packed again.
    ///
    /// Errors: `State` where the games that it saw are not those that come now.
    pub(super) fn recall(&mut self, name: &str) -> Result<bool> {
        if self.behind == 0 {
            return Ok(false);
        }
        self.looked_at(name);
        self.behind -= 1;
        if self.behind == 0 && format!("{:032x}", self.names.digest128()) != self.standing.names {
            return Err(self.changed());
        }
        Ok(true)
    }

    /// Checks that all games came that the interrupted job had seen.
    ///
    /// Errors: `State` where they did not.
    pub(super) fn recalled(&self) -> Result<()> {
        if self.behind == 0 { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> Error {
        let text = format!("games were added, removed or renamed in {}", self.options.input.display());
        Error::State(format!("{text} since the job was interrupted; pack it with --overwrite"))
    }

    fn looked_at(&mut self, name: &str) {
        self.names.update(name.as_bytes());
        self.names.update(b"\n");
    }

    /// Takes the next game in, or leaves it out.
    ///
    /// Errors: those of the files; that of a game that cannot be read, under [`OnError::Raise`] of any. What came before can
    /// be resumed.
    pub(super) fn take(&mut self, name: &str, game: gristmill_format::Result<Game>) -> Result<()> {
        let alike = |game: Game| match &self.first {
            Some(first) => self.codec.agree(first, &game.packed).map(|()| game),
            None => Ok(game),
        };
        match game.and_then(alike) {
            Ok(game) if self.known.contains(&game.content) => self.standing.known += 1,
            Ok(game) => self.add(name, game)?,
            Err(e) if self.options.on_error == OnError::Raise || is_unreadable(&e) => {
                return Err(e.moved_to(self.options.input.join(name).display().to_string()).into());
            }
            Err(e) => self.standing.skipped.push(Skipped::new(name, &e)),
        }
        self.looked_at(name);
        self.standing.done += 1;
        if self.open.as_ref().is_some_and(|open| open.index.frames() >= self.standing.file_frames) {
            self.close()?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, game: Game) -> Result<()> {
        let number = self.standing.files.len();
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let path = self.staging.path(&file_name(number));
                let file = fs::File::create(&path).map_err(|e| Error::path(&path, &e))?;
                let mut to = BufWriter::with_capacity(1 << 20, file);
                to.write_all(&MAGIC).map_err(|e| Error::path(&path, &e))?;
                let (index, sums) = (ChunkFileWriter::new(self.codec.tag()), vec![Vec::new(); self.rules.len()]);
                none.insert(Open { to, path, index, sums })
            }
        };
        let chunk = open.index.chunks();
        open.index.add(name, game.frames, &game.packed)?;
        open.to.write_all(&game.packed).map_err(|e| Error::path(&open.path, &e))?;
        open.sums.iter_mut().zip(&game.sums).for_each(|(sums, sum)| sums.push(*sum));
        self.metadata.put_game(&metadata::Game {
            id: self.standing.games,
            file: number as u64,
            chunk,
            first_frame: self.standing.frames,
            frames: game.frames.into(),
            source: name.to_owned(),
            stored_bytes: game.stored_bytes,
            content: game.content,
            facts: game.facts,
        })?;
        self.standing.games += 1;
        self.standing.frames += u64::from(game.frames);
        self.standing.stored_bytes = self.standing.stored_bytes.saturating_add(game.stored_bytes);
        Ok(())
    }

    /// Closes the chunk file that is open, durably.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some(Open { mut to, path, index, sums }) = self.open.take() else { return Ok(()) };
        let (games, frames) = (index.chunks(), index.frames());
        let end = index.finish();
        let hash = end.len().checked_sub(16).and_then(|at| end[at..].first_chunk::<8>());
        let hash = hash.map_or(0, |hash| u64::from_le_bytes(*hash));
        let written = to.write_all(&end).and_then(|()| to.flush()).and_then(|()| to.get_ref().sync_all());
        written.map_err(|e| Error::path(&path, &e))?;
        self.rules.iter().zip(&sums).try_for_each(|(rule, sums)| sums::write(&path, hash, rule.id(), sums))?;
        let index_xxh3 = format!("{hash:016x}");
        let name = file_name(self.standing.files.len());
        self.standing.files.push(ChunkFileEntry { name, games, frames, index_xxh3 });
        self.checkpoint()
    }

    /// Weighs the games of those files that have no sums by some rule: of the pack that is added to, or of an
    /// interrupted job without that rule. The reader names damaged games.
    fn weigh_others(&self) -> Result<()> {
        for (file, chunks) in self.standing.files.iter().zip(self.chunk_files()) {
            let staged = self.staging.path(&file.name);
            for rule in self.rules.iter() {
                if self.options.stop.load(Ordering::Relaxed) {
                    return Err(Error::Stopped);
                }
                if let Ok(Some((index, sums))) = unkept(&chunks, &**rule) {
                    sums::write(&staged, index, rule.id(), &sums)?;
                }
            }
        }
        Ok(())
    }

    /// Where each chunk file is now: staged, or in the pack that is added to.
    fn chunk_files(&self) -> Vec<PathBuf> {
        let place = |file: &ChunkFileEntry| {
            Some(self.staging.path(&file.name))
                .filter(|path| path.exists())
                .unwrap_or(self.options.before().join(&file.name))
        };
        self.standing.files.iter().map(place).collect()
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.standing.names = format!("{:032x}", self.names.digest128());
        let text = serde_json::to_string(&self.standing);
        self.metadata.put_progress(&text.map_err(|e| Error::State(format!("it cannot be written: {e}")))?)?;
        self.metadata.commit()
    }

    /// Completes the staged files. With the manifest, which comes last, nothing remains but to publish them.
    ///
    /// Errors: those of the files.
    pub(super) fn finish(mut self) -> Result<(Staging, Standing)> {
        self.close()?;
        self.weigh_others()?;
        let chunk_files = self.chunk_files();
        self.metadata.finish_anew()?;
        stage_quarantine(self.options, &self.staging, &self.standing.skipped)?;
        let mut made = Made::default();
        Games::open(&self.staging.path(METADATA))?.each(&mut |game| {
            if game.id >= self.standing.games_before {
                made.add(&game.source, game.content, game.stored_bytes);
            }
            Ok(())
        })?;
        let said = Step::new(if self.standing.append { "append" } else { "pack" }).with("codec", self.codec.name());
        let said = match self.standing.codec {
            Some(codec) => said.with(STORED, codec.name()),
            None => said,
        };
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            writer: WRITER.to_owned(),
            codec: self.codec.name().to_owned(),
            frames: self.standing.frames,
            games: self.standing.games,
            files: self.standing.files.clone(),
            stored_bytes: self.standing.stored_bytes,
            skipped: self.standing.skipped.clone(),
            lineage: match &self.told {
                Some(told) => made.joined(told, said),
                None => made.finish(self.options, self.standing.append, said),
            },
        };
        let manifest = manifest.to_json()?;
        write_opening(&self.staging.path(""), &chunk_files, &manifest)?;
        stage(&self.staging, MANIFEST, &manifest)?;
        Ok((self.staging, self.standing))
    }
}
