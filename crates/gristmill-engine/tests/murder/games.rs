//! The games of a run that is killed: they come, leave the disk, are written again under their names, and move to other
//! folders of the tree. Each kind of change is counted.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gristmill_engine::runtime::seed::Draws;

use super::{MARGIN, POOL, Run};

/// Folders of the tree in which a game may lie.
const FOLDERS: [&str; 3] = ["", "a", "b"];

/// Games that are there, to come, and gone.
pub(crate) struct Games {
    all: Vec<PathBuf>,
    live: PathBuf,
    /// How many games came, and how many of the first ones left the disk.
    pub(crate) came: usize,
    pub(crate) left: usize,
    /// Those that left while they were needed.
    pub(crate) lost: BTreeSet<String>,
    /// How many games were written again, and how many were moved.
    pub(crate) rewritten: usize,
    pub(crate) moved: usize,
}

/// A game's name without its folder.
fn key(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

impl Games {
    /// The games `all`, of which none is there yet.
    pub(crate) fn new(all: Vec<PathBuf>, live: PathBuf) -> Self {
        FOLDERS.iter().for_each(|folder| std::fs::create_dir_all(live.join(folder)).unwrap());
        Games { all, live, came: 0, left: 0, lost: BTreeSet::new(), rewritten: 0, moved: 0 }
    }

    /// Writes down what was done, and when, for a reader of a run that failed.
    fn did(&self, what: &str, path: &Path) {
        let time = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let mtime = std::fs::metadata(path).map_or(0, |facts| time(facts.modified().unwrap()));
        let path = path.strip_prefix(&self.live).unwrap().display();
        let line = format!("{} {what} {path} {mtime}\n", time(SystemTime::now()));
        let mut deeds = std::fs::OpenOptions::new().create(true).append(true).open(self.live.with_file_name("deeds"));
        deeds.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Where a game is now.
    fn place(&self, game: &Path) -> Option<PathBuf> {
        FOLDERS.iter().map(|folder| self.live.join(folder).join(key(game))).find(|place| place.exists())
    }

    /// One of the newest games, where it is; `None` where it is gone. Every other game moves, the rest are written again:
    /// of one that nobody has read yet, with another time in another place, nothing would tell which it is.
    fn newest(&self, odd: bool, draw: &mut Draws) -> Option<PathBuf> {
        let first = self.came.saturating_sub(POOL as usize);
        let newest: Vec<&PathBuf> =
            self.all[first..self.came].iter().skip(usize::from(odd ^ (first % 2 == 1))).step_by(2).collect();
        self.place(newest[draw.below(newest.len() as u64) as usize])
    }

    pub(crate) fn come(&mut self, games: usize) {
        for path in &self.all[self.came..self.came + games] {
            let place = self.live.join(key(path));
            std::fs::hard_link(path, &place).unwrap();
            self.did("come", &place);
        }
        self.came += games;
    }

    pub(crate) fn leave(&mut self) {
        while self.left + POOL as usize + MARGIN < self.came {
            // One that was needed and put back may be gone already.
            let _ = std::fs::remove_file(self.live.join(key(&self.all[self.left])));
            self.left += 1;
        }
    }

    /// One of the games that the journals tell of leaves at once.
    pub(crate) fn lose(&mut self, run: &Run, draw: &mut Draws) {
        let told = run.told();
        let told: BTreeSet<&str> = told.iter().map(|name| key(Path::new(name))).collect();
        let games: Vec<&PathBuf> = self.all[..self.came].iter().filter(|game| told.contains(key(game))).collect();
        let games: Vec<PathBuf> = games.into_iter().filter_map(|game| self.place(game)).collect();
        // Among the newest, which the window has.
        let newest = &games[games.len().saturating_sub(POOL as usize)..];
        let Some(place) = newest.get(draw.below(newest.len().max(1) as u64) as usize) else { return };
        std::fs::remove_file(place).unwrap();
        self.did("lose", place);
        self.lost.insert(key(place).to_owned());
    }

    /// One of the newest games that are there is written again as it was: another file under the same name and size.
    pub(crate) fn rewrite(&mut self, draw: &mut Draws) {
        if let Some(place) = self.newest(false, draw) {
            std::fs::write(self.live.join(".again"), std::fs::read(&place).unwrap()).unwrap();
            std::fs::rename(self.live.join(".again"), &place).unwrap();
            self.did("rewrite", &place);
            self.rewritten += 1;
        }
    }

    /// One of the newest games that are there moves to another folder of the tree.
    pub(crate) fn relocate(&mut self, draw: &mut Draws) {
        let to = self.live.join(FOLDERS[draw.below(FOLDERS.len() as u64) as usize]);
        if let Some(place) = self.newest(true, draw).filter(|place| place.parent() != Some(&to)) {
            std::fs::rename(&place, to.join(key(&place))).unwrap();
            self.did("move from", &place);
            self.did("move to", &to.join(key(&place)));
            self.moved += 1;
        }
    }

    /// Those of some games that a refusal names.
    fn named<'a>(games: &'a [PathBuf], refused: &str) -> Vec<&'a PathBuf> {
        games.iter().filter(|game| refused.contains(&format!("`{}`", key(game)))).collect()
    }

    /// Whether a refusal names games, and all of them are there.
    pub(crate) fn are_there(&self, refused: &str) -> bool {
        let named = Self::named(&self.all[..self.came], refused);
        !named.is_empty() && named.iter().all(|game| self.place(game).is_some())
    }

    /// Puts back what a refusal names; how many.
    pub(crate) fn put_back(&self, refused: &str) -> usize {
        let named = Self::named(&self.all[..self.left], refused);
        named.iter().for_each(|path| std::fs::hard_link(path, self.live.join(path.file_name().unwrap())).unwrap());
        named.len()
    }
}
