//! A folder -> its games of one kind in order, each of them packed by threads that work ahead of the writer.
//! The output does not depend on which thread packed what.

use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::codec::{Codec, Packing};
use gristmill_engine::kinds::Kind;
use gristmill_engine::pack::manifest::Skipped;
use gristmill_format::source::{Chunk, Kept, Span};
use gristmill_format::weigh::total;
use gristmill_format::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::assemble::{Assembly, Game, Rules};
use super::{Finds, Input};
use crate::files::{self, Closed, Found, Unlisted};
use crate::in_order::{Hands, InOrder};
use crate::pack::strangers::stranger;
use crate::pack::{PackOptions, is_unreadable};
use crate::work::Opened;

/// One thread packs at most this many games before it hands them on.
const TOGETHER: usize = 64;

/// The kind of games that are packed, and how.
pub(in super::super) type OfKind = (&'static dyn Kind, &'static dyn Codec, Packing);

/// The games of one kind below a folder.
pub(in super::super) struct Games {
    codec: &'static dyn Codec,
    packing: Packing,
    files: Vec<File>,
    /// File and chunk of each game, in order.
    pub(in super::super) games: Vec<(u32, u32)>,
    /// What could not be opened or listed, or holds no such games.
    pub(in super::super) skipped: Vec<Skipped>,
    /// A packed game that all others are to be like, where they are only some of the games.
    pub(in super::super) like: Option<Vec<u8>>,
    /// The first of those that is an error.
    pub(in super::super) fault: Option<Error>,
    /// The first of those files that could not be opened at all.
    pub(in super::super) unopened: Option<Error>,
}

impl Input for Games {
    fn codec(&self) -> &'static dyn Codec {
        self.codec
    }

    fn label(&self) -> &'static str {
        self.packing.label
    }

    fn unusable(&self) -> (&[Skipped], Option<&Error>) {
        (&self.skipped, self.fault.as_ref())
    }

    /// The first that can be packed.
    fn first(&self) -> Option<Vec<u8>> {
        if self.like.is_some() {
            return self.like.clone();
        }
        let (none, mut hand) = (Rules::default(), Hand::default());
        (0..self.games.len()).find_map(|i| self.pack(i, &none, &mut hand).ok()).map(|game| game.packed)
    }

    fn count(&self, _: &PackOptions) -> gristmill_engine::Result<u64> {
        Ok(self.games.len() as u64)
    }

    fn feed(self: Box<Self>, assembly: &mut Assembly<'_>, found: &mut Finds<'_>) -> gristmill_engine::Result<u64> {
        let (options, count) = (assembly.options, self.games.len() as u64);
        let rules = Arc::clone(&assembly.rules);
        let mut first = 0;
        while first < self.games.len() && assembly.recall(&self.name(first))? {
            first += 1;
        }
        assembly.recalled()?;
        let (games, hands) = (Arc::<Games>::from(self), Hands::<Hand>::default());
        let pieces = games.pieces(first);
        let (len, shared) = (pieces.len(), games.clone());
        let started = InOrder::start(options.workers, len, options.stop.clone(), move |i| {
            hands.with(|hand| (pieces[i].0..pieces[i].1).map(|i| shared.pack(i, &rules, hand)).collect::<Vec<_>>())
        });
        let mut flow = started.map_err(|e| gristmill_engine::Error::path(&options.input, &e))?;
        while let Some(piece) = flow.next()? {
            for game in piece {
                assembly.take(&games.name(assembly.standing.done), game)?;
            }
            found(assembly, count);
        }
        Ok(count)
    }
}

/// A file of games.
enum File {
    /// One game: opened when its turn comes, since there may be more of them than a process may have open.
    One(Closed, String),
    /// Many games.
    Many(Arc<Opened>, String),
}

impl Games {
    /// Lists the games of a kind below `root`: files in order of name, games as their file has them.
    ///
    /// Errors: `Io` for a folder that does not exist.
    pub(in super::super) fn list(root: &Path, of: OfKind) -> Result<Self> {
        let listing = files::list(root)?;
        let mut found = Games::of(root, listing.files, of);
        found.unlisted(root, listing.unlisted);
        Ok(found)
    }

    /// Lists the games of a kind in some files below `root`, in their order.
    pub(in super::super) fn of(
        root: &Path,
        files: impl IntoIterator<Item = Closed>,
        (kind, codec, packing): OfKind,
    ) -> Self {
        let mut found = Games {
            codec,
            packing,
            files: Vec::new(),
            games: Vec::new(),
            skipped: Vec::new(),
            like: None,
            fault: None,
            unopened: None,
        };
        for closed in files {
            match closed.open() {
                Found::File(opened) if opened.kind.name() == kind.name() => {
                    let name = below(root, &opened.path);
                    let number = found.files.len() as u32;
                    found.games.extend((0..opened.source.len() as u32).map(|chunk| (number, chunk)));
                    for fault in opened.source.faults() {
                        found.skip(root, fault.clone().in_source(&opened.path));
                    }
                    let single = opened.source.locate(0) == Some((Span::WHOLE, None));
                    found.files.push(if single { File::One(closed, name) } else { File::Many(Arc::new(opened), name) });
                }
                Found::Fault(e) => {
                    found.unopened.get_or_insert_with(|| e.clone());
                    found.skip(root, e);
                }
                Found::File(other) => found.skip(root, stranger(&other.path, kind.games())),
                _ => {}
            }
        }
        found
    }

    /// Notes what could not be listed.
    pub(in super::super) fn unlisted(&mut self, root: &Path, unlisted: Vec<Unlisted>) {
        for unlisted in unlisted {
            let detail =
                format!("{} files or folders could not be read; the latest: {}", unlisted.count, unlisted.latest);
            let e = Error::new(gristmill_format::Kind::Io(std::io::ErrorKind::Other), detail);
            self.skip(root, e.in_source(root.display().to_string()));
        }
    }

    fn skip(&mut self, root: &Path, e: Error) {
        let source = e.place().source.clone().unwrap_or_default();
        self.skipped.push(Skipped::new(&below(root, &source), &e));
        worst(&mut self.fault, e);
    }

    /// Where game `i` is from: the file below the folder, and the member.
    pub(super) fn name(&self, i: usize) -> String {
        let Some((file, chunk)) = self.games.get(i) else { return String::new() };
        match &self.files[*file as usize] {
            File::One(_, name) => name.clone(),
            File::Many(opened, name) => match opened.member(*chunk as usize) {
                Some(member) => format!("{name}/{member}"),
                None => format!("{name}/{chunk}"),
            },
        }
    }

    /// Pieces of work from game `first` on: ranges of games.
    pub(super) fn pieces(&self, first: usize) -> Vec<(usize, usize)> {
        (first..self.games.len()).step_by(TOGETHER).map(|at| (at, (at + TOGETHER).min(self.games.len()))).collect()
    }

    fn pack(&self, i: usize, rules: &Rules, hand: &mut Hand) -> Result<Game> {
        let (file, chunk) = self.games[i];
        let opened;
        let file = match &self.files[file as usize] {
            File::Many(opened, _) => opened,
            File::One(closed, _) => match closed.open() {
                Found::File(found) => {
                    opened = found;
                    &opened
                }
                Found::Fault(e) => return Err(e),
                _ => return Err(Error::new(gristmill_format::Kind::Missing, "the game has gone since it was listed")),
            },
        };
        file.fetch(chunk as usize, &mut hand.stored)?;
        file.decode(chunk as usize, &hand.stored, &mut hand.chunk)?;
        let records = hand.chunk.records();
        let mut packed = Vec::new();
        (self.packing.pack)(&hand.chunk, &mut hand.tools, &mut packed)?;
        let mut sums = Vec::with_capacity(rules.len());
        for rule in rules.iter() {
            rule.weigh(&hand.chunk, &mut hand.weights)?;
            sums.push(total(hand.weights.iter().copied()));
        }
        Ok(Game {
            packed,
            frames: hand.chunk.frames as u32,
            stored_bytes: hand.stored.len() as u64,
            content: xxh3_128(records),
            facts: (self.packing.facts)(&hand.chunk)?,
            sums,
        })
    }
}

/// Keeps the first error, or the first of reading.
pub(super) fn worst(kept: &mut Option<Error>, e: Error) {
    if kept.as_ref().is_none_or(|kept| is_unreadable(&e) && !is_unreadable(kept)) {
        *kept = Some(e);
    }
}

/// The path below the folder, with `/`.
pub(in super::super) fn below(root: &Path, path: &str) -> String {
    let below = Path::new(path).strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty());
    below.map_or_else(|| path.rsplit('/').next().unwrap_or(path).to_owned(), |below| below.display().to_string())
}

/// Buffers that are used again, by any thread.
#[derive(Default)]
struct Hand {
    stored: Vec<u8>,
    chunk: Chunk,
    tools: Kept,
    weights: Vec<f32>,
}
