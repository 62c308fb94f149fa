//! Games, file by file -> which of them were there before: as they are, as an image, or on another side of a split.
//! Keeps a line for each of the first two million games, and says so where there are more.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gristmill_format::{Error, Kind};
use serde::Serialize;

use crate::work::{Fault, Met, Signs};

/// The most games that are remembered: 256 MiB of them.
const MOST: usize = 1 << 21;

/// How many games there are, and how many different ones.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Twins {
    /// Games that have a key.
    pub games: u64,
    /// Different ones among them: images of each other are one game.
    pub different: u64,
    /// Whether all were remembered: else only the first of them were held against the others.
    pub complete: bool,
}

/// A game that was met.
struct Known {
    image: u8,
    records: u64,
    side: u32,
    file: u32,
    chunk: u64,
}

/// All games so far.
#[derive(Default)]
pub(super) struct Index {
    known: HashMap<u128, Known>,
    files: Vec<String>,
    games: u64,
    missed: bool,
}

impl Index {
    /// Takes the games of a file of side `side` in, 0 for the data themselves; what was there before is noted in `signs`.
    pub(super) fn take(&mut self, side: u32, path: &str, games: Vec<Met>, signs: &mut Signs) {
        let file = self.files.len() as u32;
        self.files.push(path.to_owned());
        for met in games {
            self.games += u64::from(side == 0);
            let room = self.known.len() < MOST;
            match self.known.entry(met.key) {
                Entry::Vacant(free) if room => {
                    let Met { image, records, chunk, .. } = met;
                    free.insert(Known { image, records, side, file, chunk });
                }
                Entry::Vacant(_) => self.missed = true,
                Entry::Occupied(known) => {
                    let known = known.get();
                    let first = format!("chunk {} of {}", known.chunk, self.files[known.file as usize]);
                    let (rule, how) = relation(known, side, &met);
                    // Within held-out data copies are not of interest here.
                    if side == 0 || known.side != side {
                        signs.add(fault(rule, path, &met, format!("it is {how} {first}")));
                    }
                }
            }
        }
    }

    /// The numbers of the data themselves.
    pub(super) fn told(&self) -> Twins {
        let different = self.known.values().filter(|known| known.side == 0).count() as u64;
        Twins { games: self.games, different, complete: !self.missed }
    }
}

fn relation(known: &Known, side: u32, met: &Met) -> (&'static str, &'static str) {
    let image = known.image != met.image;
    match () {
        () if known.side != side && image => ("leakage", "an image of"),
        () if known.side != side => ("leakage", "the game of"),
        () if image => ("mirrors", "an image of"),
        () if known.records == met.records => ("duplicates", "the same to the byte as"),
        () => ("duplicates", "the same game, recorded otherwise, as"),
    }
}

fn fault(rule: &'static str, path: &str, met: &Met, detail: String) -> Fault {
    let e = Error::new(Kind::OutOfRange, detail).in_source(path);
    let e = met.member.as_ref().map(|name| e.clone().in_member(&**name)).unwrap_or(e);
    Fault { rule: Some(rule), chunk: Some(met.chunk), ..Fault::new(&e) }
}
