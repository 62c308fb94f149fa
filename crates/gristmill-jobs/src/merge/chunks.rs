//! Chunk packs -> one: their files one after another, games renumbered; games that came before are passed over.
//! Nothing is decoded: a file that is taken whole is the same file under another name where the file system can do that.

use std::collections::HashSet;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::chunks::codec::Codec;
use gristmill_engine::chunks::manifest::{ChunkFileEntry, FORMAT, Manifest, VERSION};
use gristmill_engine::chunks::metadata::{Game, Games};
use gristmill_engine::chunks::open::{ChunkPack, File};
use gristmill_engine::chunks::sums;
use gristmill_engine::chunks::{file_name, files, is_chunks, is_pack};
use gristmill_engine::database::Writer;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds;
use gristmill_engine::kinds::packs::write_opening;
use gristmill_engine::lineage::Step;
use gristmill_engine::lineage::WRITER;
use gristmill_engine::pack::{MANIFEST, METADATA, STAGING};
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::Residence;
use gristmill_engine::store::files::copy;
use gristmill_engine::store::publish::{self, Staging};
use gristmill_engine::table::FrameTable;
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::{Error as FormatError, Kind, Result as FormatResult};

use super::{MergeOptions, Merged, marks, unlike};

/// A pack that goes in.
struct Input {
    folder: PathBuf,
    manifest: Manifest,
    files: Vec<File>,
    games: Vec<Game>,
}

/// Whether these are chunk packs.
///
/// Errors: `Config` where some are and others are not.
pub(super) fn are_chunks(inputs: &[PathBuf]) -> Result<bool> {
    let (mut chunks, mut others) = (Vec::new(), Vec::new());
    for input in inputs {
        if is_pack(input)? { &mut chunks } else { &mut others }.push(input);
    }
    match (chunks.first(), others.first()) {
        (Some(chunks), Some(other)) => {
            let (chunks, other) = (chunks.display(), other.display());
            Err(Error::config(
                "packs",
                format!("{chunks} is a pack of whole games, {other} is none; merge packs of one kind"),
            ))
        }
        (chunks, _) => Ok(chunks.is_some()),
    }
}

/// Chunk packs that are merged.
pub(super) struct Merging<'a> {
    options: &'a MergeOptions,
    codec: &'static dyn Codec,
    /// The columns that these packs have beyond those of the codec.
    own: Vec<(String, &'static str)>,
    inputs: Vec<Input>,
    /// Of each pack, which of its games are taken.
    wanted: Vec<Vec<bool>>,
    marks: marks::Plan,
    written: Vec<ChunkFileEntry>,
}

impl<'a> Merging<'a> {
    /// Opens the packs.
    ///
    /// Errors: `Config` for packs that hold other chunks or records than the first; `Format` with the file.
    pub(super) fn new(options: &'a MergeOptions) -> Result<Self> {
        if options.shard_rows.is_some() {
            return Err(Error::config("shard_rows", "files of whole games are taken as they are; leave it out"));
        }
        let mut inputs = options.inputs.iter().map(|folder| Input::open(folder)).collect::<Result<Vec<_>>>()?;
        let codec = codec(&inputs)?;
        let own = own_columns(codec, &inputs)?;
        let all = inputs.iter_mut().flat_map(|input| &mut input.games);
        all.for_each(|game| game.facts.resize(codec.columns().len() + own.len(), SqlValue::Null));
        let packs = same_records(&inputs)?;
        let mut known = HashSet::new();
        let wanted: Vec<Vec<bool>> = inputs.iter().map(|input| input.wanted(&mut known)).collect();
        let marks = marks_of(&inputs, &wanted, packs)?;
        Ok(Merging { options, codec, own, inputs, wanted, marks, written: Vec::new() })
    }
}

impl super::Merging for Merging<'_> {
    fn planned(&self) -> Merged {
        let mut merged = Merged {
            layout: self.codec.name(),
            marks: self.marks.names(),
            lost: self.marks.lost().to_vec(),
            ..Merged::default()
        };
        let all = self.inputs.iter().zip(&self.wanted).flat_map(|(input, wanted)| input.games.iter().zip(wanted));
        for (game, is_wanted) in all {
            merged.known += u64::from(!is_wanted);
            merged.runs += u64::from(*is_wanted);
            merged.rows += if *is_wanted { game.frames } else { 0 };
        }
        merged
    }

    fn marks(&self) -> &marks::Plan {
        &self.marks
    }

    fn is_alike(&self, folder: &Path) -> Result<bool> {
        Ok(is_pack(folder)?)
    }

    fn files(&self, folder: &Path) -> Result<Vec<String>> {
        files(folder)
    }

    fn write(&mut self, staging: &Staging, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let (options, codec, rows) = (self.options, self.codec, self.planned().rows);
        let own = &*self.own;
        let mut assembly = Assembly { options, codec, own, staging, games: 0, frames: 0, stored: 0, files: Vec::new() };
        assembly.write(&self.inputs, &self.wanted, rows, progress)?;
        self.written = assembly.files;
        Ok(self.written.len() as u64)
    }

    /// Every chunk by its checksum; files, manifest and database against each other.
    fn read_back(&self) -> Result<()> {
        let output = &self.options.output;
        let read = Input::open(output)?;
        for file in &read.files {
            (0..file.index().len()).try_for_each(|chunk| file.game(chunk).map(drop))?;
        }
        match read.manifest.files == self.written && read.games.len() as u64 == self.planned().runs {
            true => Ok(()),
            false => Err(unlike(output)),
        }
    }
}

/// The packs opened. Refuses such whose records differ, since those of one pack are alike.
fn same_records(inputs: &[Input]) -> Result<Vec<Arc<ChunkPack>>> {
    let mut packs: Vec<Arc<ChunkPack>> = Vec::new();
    for input in inputs {
        let pack = ChunkPack::open(&input.folder, Residence::Mapped)?;
        if let Some(first) = packs.first().map(|first| first.layout()).filter(|first| *first != pack.layout()) {
            let (folder, one, two) = (input.folder.display(), pack.layout().to_descr(), first.to_descr());
            return Err(Error::config("packs", format!("{folder} has records of {one}, the first pack of {two}")));
        }
        packs.push(Arc::new(pack));
    }
    Ok(packs)
}

/// What becomes of the marks of these packs, of whose games those are taken that are wanted.
fn marks_of(inputs: &[Input], wanted: &[Vec<bool>], packs: Vec<Arc<ChunkPack>>) -> Result<marks::Plan> {
    let (mut sources, mut first) = (Vec::new(), 0);
    for ((input, wanted), pack) in inputs.iter().zip(wanted).zip(packs) {
        let mut places: Vec<(u64, u64, u64)> = Vec::new();
        for (game, _) in input.games.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
            match places.last_mut().filter(|(_, behind, _)| *behind == game.first_frame) {
                Some((_, behind, _)) => *behind += game.frames,
                None => places.push((game.first_frame, game.first_frame + game.frames, first)),
            }
            first += game.frames;
        }
        if !places.is_empty() {
            sources.push(marks::Source { pack, places });
        }
    }
    marks::Plan::of(
        sources,
        &["frame.frame", "frame.game_id", "game.id", "game.file", "game.chunk", "game.first_frame"],
    )
}

/// What the chunks of all packs hold.
fn codec(inputs: &[Input]) -> Result<&'static dyn Codec> {
    let name = inputs.first().map_or("", |input| &input.manifest.codec);
    if let Some(other) = inputs.iter().find(|input| input.manifest.codec != name) {
        let (folder, codec) = (other.folder.display(), &other.manifest.codec);
        return Err(Error::config("packs", format!("{folder} holds chunks of `{codec}`, the first pack of `{name}`")));
    }
    let codec = kinds::codec_named(name);
    let codec =
        codec.ok_or_else(|| Error::config("packs", format!("chunks of `{name}`; a newer gristmill wrote them")))?;
    let strange = |file: &&File| file.index().codec() != codec.tag();
    let other = |input: &&Input| {
        let own = own_columns(codec, std::slice::from_ref(*input)).map_or(0, |own| own.len());
        let columns = codec.columns().len() + own;
        let columns = columns - codec.beside()..=columns;
        input.games.first().is_some_and(|game| !columns.contains(&game.facts.len()))
    };
    if let Some(input) = inputs.iter().find(other) {
        let detail = "its games have other columns: another version wrote it; pack it again";
        let path = input.folder.join(METADATA).display().to_string();
        return Err(FormatError::new(Kind::UnknownVersion, detail).in_source(path).into());
    }
    match inputs.iter().flat_map(|input| &input.files).find(strange) {
        Some(file) => Err(corrupt(file.path(), &format!("it does not hold chunks of `{name}`, as the manifest says"))),
        None => Ok(codec),
    }
}

/// The columns that packs have beyond those of their codec. Refuses such whose games cannot be of one pack.
fn own_columns(codec: &'static dyn Codec, inputs: &[Input]) -> Result<Vec<(String, &'static str)>> {
    let mut first: Option<&[u8]> = None;
    for input in inputs {
        let Some(file) = input.files.iter().find(|file| !file.index().is_empty()) else { continue };
        let game = file.game(0)?;
        if let Some(first) = first {
            let folder = input.folder.display();
            codec.agree(first, game).map_err(|e| Error::config("packs", format!("{folder}: {}", e.detail())))?;
        }
        first.get_or_insert(game);
    }
    Ok(first.map_or(Ok(Vec::new()), |first| codec.own_columns(first))?)
}

fn corrupt(path: &Path, detail: &str) -> Error {
    FormatError::new(Kind::Corrupt, format!("{detail}; see `gristmill verify`"))
        .in_source(path.display().to_string())
        .into()
}

impl Input {
    /// Opens a pack and holds files, manifest and database against each other.
    ///
    /// Errors: `Format` with the file.
    fn open(folder: &Path) -> Result<Self> {
        if publish::is_interrupted(folder, STAGING) {
            let detail = "a job was interrupted while it put its files in place; `gristmill recover` finishes it";
            return Err(FormatError::new(Kind::Truncated, detail).in_source(folder.display().to_string()).into());
        }
        let manifest = Manifest::read(folder)?;
        let mut names = files(folder)?;
        names.retain(|name| is_chunks(name));
        let files = names.iter().map(|name| File::open(&folder.join(name))).collect::<FormatResult<Vec<_>>>()?;
        let found =
            names.iter().zip(&files).map(|(name, file)| (name.as_str(), format!("{:016x}", file.index().identity())));
        if !found.eq(manifest.files.iter().map(|file| (file.name.as_str(), file.index_xxh3.clone()))) {
            return Err(corrupt(&folder.join(MANIFEST), "its files are not those that are there"));
        }
        let path = folder.join(METADATA);
        let mut games = Vec::new();
        Games::open(&path)?.each(&mut |game| {
            games.push(game);
            Ok(())
        })?;
        let (mut next, mut first) = (games.iter(), 0);
        for (number, file) in files.iter().enumerate() {
            for chunk in 0..file.index().len() {
                let frames = u64::from(file.index().frames(chunk));
                let fits = next.next().is_some_and(|game| {
                    let said = (game.file, game.chunk, game.first_frame, game.frames, game.source.as_str());
                    said == (number as u64, chunk as u64, first, frames, file.index().name(chunk))
                });
                if !fits {
                    return Err(corrupt(&path, &format!("its games are not those of {}", names[number])));
                }
                first += frames;
            }
        }
        if next.next().is_some() {
            return Err(corrupt(&path, "it has more games than the files"));
        }
        Ok(Input { folder: folder.to_owned(), manifest, files, games })
    }

    /// Which games are taken: those that no pack before had. `known` has their hashes, and those of this pack afterwards.
    fn wanted(&self, known: &mut HashSet<u128>) -> Vec<bool> {
        let wanted = self.games.iter().map(|game| !known.contains(&game.content)).collect();
        known.extend(self.games.iter().map(|game| game.content));
        wanted
    }

    /// How it came to be.
    fn lineage(&self) -> Vec<Step> {
        match self.manifest.lineage.as_slice() {
            [] => vec![Step::unrecorded().with("games", self.manifest.games)],
            steps => steps.to_vec(),
        }
    }
}

/// The new pack in the making.
struct Assembly<'a> {
    options: &'a MergeOptions,
    codec: &'static dyn Codec,
    own: &'a [(String, &'static str)],
    staging: &'a Staging,
    games: u64,
    frames: u64,
    stored: u64,
    files: Vec<ChunkFileEntry>,
}

impl Assembly<'_> {
    fn write(
        &mut self,
        inputs: &[Input],
        wanted: &[Vec<bool>],
        rows: u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut metadata = Writer::of_games(self.staging.path(METADATA), &self.codec.columns(), self.own)?;
        for (input, wanted) in inputs.iter().zip(wanted) {
            let mut first = 0;
            for file in &input.files {
                if self.options.stop.load(Ordering::Relaxed) {
                    return Err(Error::Stopped);
                }
                let of = first..first + file.index().len();
                first = of.end;
                self.take(file, &input.games[of.clone()], &wanted[of], &mut metadata)?;
                progress(self.frames, rows);
            }
        }
        metadata.finish()?;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            writer: WRITER.to_owned(),
            codec: self.codec.name().to_owned(),
            frames: self.frames,
            games: self.games,
            files: self.files.clone(),
            stored_bytes: self.stored,
            skipped: inputs.iter().flat_map(|input| input.manifest.skipped.clone()).collect(),
            lineage: vec![
                Step::new("merge")
                    .with("codec", self.codec.name())
                    .made_from(inputs.iter().map(Input::lineage).collect()),
            ],
        };
        let manifest = manifest.to_json()?;
        let paths: Vec<PathBuf> = self.files.iter().map(|file| self.staging.path(&file.name)).collect();
        write_opening(&self.staging.path(""), &paths, &manifest)?;
        publish::write_whole(&self.staging.path(MANIFEST), &[manifest.as_bytes()])
    }

    /// Stages the wanted games of a file, if there are any, as the next file.
    fn take(&mut self, file: &File, games: &[Game], wanted: &[bool], metadata: &mut Writer) -> Result<()> {
        let number = self.files.len();
        let taken: Vec<&Game> = games.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(game, _)| game).collect();
        if taken.is_empty() {
            return Ok(());
        }
        let to = self.staging.path(&file_name(number));
        let identity = if taken.len() == games.len() { link(file, &to)? } else { self.copy(file, &taken, &to)? };
        for (rule, sums) in sums::all(file.path(), file.index()) {
            let of = |game: &&Game| sums.get(game.chunk as usize).copied();
            let sums: Vec<f32> = taken.iter().filter_map(of).collect();
            sums::write(&to, identity, rule, &sums)?;
        }
        let first = self.frames;
        for (chunk, game) in taken.iter().enumerate() {
            let place = (number as u64, chunk as u64);
            let game =
                Game { id: self.games, file: place.0, chunk: place.1, first_frame: self.frames, ..(*game).clone() };
            metadata.put_game(&game)?;
            self.games += 1;
            self.frames += game.frames;
            self.stored = self.stored.saturating_add(game.stored_bytes);
        }
        let (name, games) = (file_name(number), taken.len() as u64);
        self.files.push(ChunkFileEntry {
            name,
            games,
            frames: self.frames - first,
            index_xxh3: format!("{identity:016x}"),
        });
        Ok(())
    }

    /// Writes these games of a file as a file of their own.
    fn copy(&self, file: &File, games: &[&Game], to: &Path) -> Result<u64> {
        let refuse = |e: std::io::Error| Error::path(to, &e);
        let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(to).map_err(refuse)?);
        let mut index = ChunkFileWriter::new(self.codec.tag());
        out.write_all(&MAGIC).map_err(refuse)?;
        for game in games {
            let chunk = game.chunk as usize;
            let bytes = file.game(chunk)?;
            index.add(file.index().name(chunk), file.index().frames(chunk), bytes)?;
            out.write_all(bytes).map_err(refuse)?;
        }
        let end = index.finish();
        out.write_all(&end).and_then(|()| out.flush()).map_err(refuse)?;
        let written = File::open(to)?;
        Ok(written.index().identity())
    }
}

/// The file under another name: the same file where that can be, else a copy. Its chunks have their checksums.
fn link(file: &File, to: &Path) -> Result<u64> {
    for chunk in 0..file.index().len() {
        file.game(chunk)?;
    }
    if fs::hard_link(file.path(), to).is_err() {
        let refuse = |e: std::io::Error| Error::path(to, &e);
        let mut out = BufWriter::new(fs::File::create(to).map_err(refuse)?);
        copy(file.path(), &mut out, to)?;
        out.flush().map_err(refuse)?;
    }
    Ok(file.index().identity())
}
