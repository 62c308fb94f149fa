//! A pack -> groups of games that are the same: to the byte, recorded otherwise, or images of each other; and a mark of all but
//! the first of each. Removes nothing.

mod part;

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_engine::error::Result;
use gristmill_engine::pack_table::{Content, PackTable};
use gristmill_engine::runtime::intervals::Intervals;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

pub(crate) use self::part::{JOB, commit};
pub use self::part::{PartFound, share};
use super::content::contents;
use super::mark::{MarkOptions, Marked, Which, check, mark};

/// What a game is to the first of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// It is the first.
    First,
    /// Its records are the same.
    Exact,
    /// The same game, recorded otherwise.
    Same,
    /// The game with colours exchanged, or turned and mirrored.
    Mirrored,
}

/// A game of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Its id in the database.
    pub id: u64,
    /// What it is to the first.
    pub relation: Relation,
    /// Where it came from, where the pack knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Games that are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Their key, as 32 hexadecimal digits.
    pub key: String,
    /// The games, by ascending id.
    pub games: Vec<Member>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Duplicates {
    /// The pack.
    pub pack: String,
    /// Games in it, those without a frame left out.
    pub games: u64,
    /// Different ones among them.
    pub different: u64,
    /// Games that are to the first of their group the same to the byte, the same, and images.
    pub exact: u64,
    /// See `exact`.
    pub same: u64,
    /// See `exact`.
    pub mirrored: u64,
    /// Frames of the games that are not the first of their group.
    pub frames: u64,
    /// The groups of more than one game, by the id of their first.
    pub groups: Vec<Group>,
    /// The mark that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Marked>,
}

/// Looks for games of `pack` that are the same, and marks all but the first of each group where `options` names a mark.
/// `progress` gets the number of games that are done, and of all games.
///
/// Errors: as [`contents`] and [`mark`].
pub fn dedup(
    pack: &Arc<dyn PackTable>,
    options: &MarkOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Duplicates> {
    if !options.name.is_empty() {
        check(pack, options)?;
    }
    let (mut found, rows) = grouped(pack, contents(pack, options.workers, &options.stop, progress)?)?;
    if !options.name.is_empty() {
        found.mark = Some(mark(pack, &Which::Duplicates(rows), options, &mut |_, _| {})?);
    }
    Ok(found)
}

/// Groups of games that are the same, and the frames of all but the first of each.
fn grouped(pack: &Arc<dyn PackTable>, mut all: Vec<Content>) -> Result<(Duplicates, Intervals)> {
    // Games without a frame are not each other.
    all.retain(|content| content.records != xxh3_128(&[]));
    let mut groups: HashMap<u128, Vec<&Content>> = HashMap::with_capacity(all.len());
    all.iter().for_each(|content| groups.entry(content.key).or_default().push(content));
    let different = groups.len() as u64;
    let mut groups: Vec<Vec<&Content>> = groups.into_values().filter(|games| games.len() > 1).collect();
    groups.sort_unstable_by_key(|games| games[0].game);
    let sources = if groups.is_empty() { HashMap::new() } else { pack.sources()? };
    let groups: Vec<Group> = groups.iter().map(|games| group(games, &sources)).collect();
    let of =
        |relation| groups.iter().flat_map(|group| &group.games).filter(|game| game.relation == relation).count() as u64;
    let (exact, same, mirrored) = (of(Relation::Exact), of(Relation::Same), of(Relation::Mirrored));
    let again = groups.iter().flat_map(|group| &group.games).filter(|game| game.relation != Relation::First);
    let mut again: Vec<u64> = again.map(|game| game.id).collect();
    again.sort_unstable();
    let rows = pack.frames_of(&again)?;
    let found = Duplicates {
        pack: pack.folder().display().to_string(),
        games: all.len() as u64,
        different,
        exact,
        same,
        mirrored,
        frames: rows.len(),
        groups,
        mark: None,
    };
    Ok((found, rows))
}

fn group(games: &[&Content], sources: &HashMap<u64, String>) -> Group {
    let first = games[0];
    let relation = |game: &Content| match () {
        () if game.game == first.game => Relation::First,
        () if game.image != first.image => Relation::Mirrored,
        () if game.records == first.records => Relation::Exact,
        () => Relation::Same,
    };
    let member =
        |game: &&Content| Member { id: game.game, relation: relation(game), source: sources.get(&game.game).cloned() };
    Group { key: format!("{:032x}", first.key), games: games.iter().map(member).collect() }
}
