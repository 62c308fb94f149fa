//! A game of a pack and the plan of a loader -> in which passes and batches its rows were or will be fed: the inverse of `xray`.
//! Each row costs the same in any pass, and no row is read; orders that have no inverse are refused by name.

use std::ops::Range;
use std::path::PathBuf;

use gristmill_engine::config::IndexConfig;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::{Engine, Lookup, Reads, SightOptions, Sighted, Standing, Turn};
use gristmill_engine::selection::{self, Selection};
use gristmill_engine::store::Residence;
use gristmill_engine::table::IndexInput;
use serde::Serialize;

use crate::selected;

/// The most rows of one answer, over all passes.
const MOST: u64 = 1 << 20;

/// Passes from here on are none that a run reaches.
const LAST_PASS: u64 = 1 << 32;

/// What decides which row stands where.
#[derive(Debug, Clone)]
pub enum By {
    /// The text of a state, of whatever batch of the run.
    State(String),
    /// What the loader was given, with its seed: the encoder does not matter.
    Config {
        /// It.
        config: Box<IndexConfig>,
        /// The condition on games that selected the rows, of each pack; all its rows when absent.
        condition: Option<String>,
    },
}

/// What to look for.
#[derive(Debug, Clone)]
pub struct WhenOptions {
    /// The packs: one, or those that a loader mixes, in its order.
    pub packs: Vec<PathBuf>,
    /// The plan.
    pub by: By,
    /// The rows.
    pub wanted: Wanted,
}

/// Which rows, and how to number them.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The game: its id in the pack, or the name of what was packed.
    pub game: String,
    /// Number of the pack that has it, from 0, where several are mixed.
    pub source: Option<usize>,
    /// One position of it, from 0; all when absent.
    pub ply: Option<u64>,
    /// Passes, from 0; that of the next batch and the one after it, or the last two, when absent.
    pub epochs: Option<Range<u64>>,
    /// How many ranks share each batch: rows are then numbered as each has them.
    pub world_size: Option<u64>,
    /// The one rank whose rows are wanted.
    pub rank: Option<u64>,
}

/// Whether a batch was fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fed {
    /// Before the next batch.
    Was,
    /// From the next batch on.
    WillBe,
    /// It is one of those that are left out.
    LeftOut,
    /// Among the rows left over at the end of a pass, which are dropped.
    Dropped,
}

/// One row of the game in one pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Time {
    /// Passes completed before it.
    pub epoch: u64,
    /// The batch; absent where the row is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// The row of it: of the rank, where ranks are numbered, and over all of them else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// The rank that has it, where ranks are numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Its place in the game, from 0.
    pub ply: u64,
    /// Its number in the pack.
    pub pack_row: u64,
    /// Whether it was fed; absent where no run stands anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fed: Option<Fed>,
}

/// When a game is fed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Number of the pack that it is of, where several are mixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<usize>,
    /// Id of the game.
    pub game: u64,
    /// What was packed, where the pack says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Its positions.
    pub plies: u64,
    /// How many of those that were asked for the plan has.
    pub selected: u64,
    /// The passes that were searched: the first, and the one after the last.
    pub epochs: (u64, u64),
    /// The next batch of the run, where it stands somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_batch: Option<u64>,
    /// The rows, in the order in which they come.
    pub times: Vec<Time>,
}

/// Looks for a game in the plan of a state or of options.
///
/// Errors: as [`times`]; `State` for a state that says not how its rows were selected, or of another pack; as the pack's opening.
pub fn when(options: &WhenOptions) -> Result<Times> {
    match &options.by {
        By::State(text) => {
            let standing = Standing::read(text).map_err(streamed)?;
            let Standing { config, batch, data, selection } = standing;
            let Some(recipe) = selection else {
                let text = "it is of a version that does not say how its rows were selected; save it again".to_owned();
                return Err(Error::State(text));
            };
            let (selected, inputs) = selected::all_again(&options.packs, &recipe, &data)?;
            let lookup = planned(&config, config.seed.unwrap_or_default(), inputs)?.at(batch);
            times(&lookup, &selected, &options.wanted)
        }
        By::Config { config, condition } => {
            let one = |pack: &PathBuf| {
                let all = Selection::all(selection::open(pack, Residence::Mapped)?);
                match condition {
                    Some(sql) => all.query(sql, &[]),
                    None => Ok(all),
                }
            };
            let selected = options.packs.iter().map(one).collect::<Result<Vec<_>>>()?;
            let inputs = selected.iter().map(Selection::input).collect();
            times(&planned(config, config.seed.unwrap_or_default(), inputs)?, &selected, &options.wanted)
        }
    }
}

/// The plan over one pack, or over several that are mixed.
fn planned(config: &IndexConfig, seed: u64, mut inputs: Vec<IndexInput>) -> Result<Lookup> {
    match (inputs.len(), &config.mix) {
        (1, None) => Lookup::of(config, seed, &inputs.remove(0)),
        _ => Lookup::of_several(config.clone(), seed, inputs),
    }
}

/// What to ask a stream instead.
const INSTEAD: &str = "the order of a stream follows from the files that it met, and leads from a batch to its rows alone: \
                       `xray --config` names the rows of a batch, and `verify-run --config` proves from ledgers what was delivered";

fn streamed(error: Error) -> Error {
    match error {
        Error::State(text) if text.contains("it is of a stream") => Error::State(format!("{text}; {INSTEAD}")),
        other => other,
    }
}

/// The same of a loader; `selected` are the rows that it feeds, of each pack.
///
/// Errors: as [`times`]; `Unsupported` for a stream, and for rows that no pack has.
pub fn when_by(engine: &dyn Engine, selected: &[Selection], wanted: &Wanted) -> Result<Times> {
    let (_, ranks) = engine.ranks();
    if engine.rows().is_none() {
        return Err(Error::Unsupported(INSTEAD.to_owned()));
    }
    if selected.is_empty() {
        let text = "only rows of a pack can be looked for by their game; `xray` names the pairs or steps of a batch";
        return Err(Error::Unsupported(text.to_owned()));
    }
    let options = SightOptions { output: String::new(), first: 0, reads: Reads::Nothing };
    let Sighted::Rows(lookup) = engine.sight(&options)? else {
        return Err(Error::Unsupported(INSTEAD.to_owned()));
    };
    let world_size = wanted.world_size.or((ranks > 1).then_some(ranks));
    times(&lookup, selected, &Wanted { world_size, ..wanted.clone() })
}

/// When the rows of a game come in a plan over packs, which lie one after another.
///
/// Errors: `Config` in `source` where several packs are mixed and none of them is named, or one that is not there; in `game` for one that
/// the pack does not have, with the nearest; in `ply`, `epochs`, `rank` or `world_size` for what cannot be; as [`Lookup::turns`].
pub fn times(lookup: &Lookup, all: &[Selection], wanted: &Wanted) -> Result<Times> {
    let source = source(wanted.source, all.len())?;
    let selected = &all[source];
    let before: u64 = all[..source].iter().map(|selected| selected.pack().total()).sum();
    let game = game(selected, &wanted.game)?;
    let rows: Vec<u64> = selected.pack().stretches(game).into_iter().flat_map(|(first, end)| first..end).collect();
    let plies = rows.len() as u64;
    let asked = match wanted.ply {
        Some(ply) if ply >= plies => {
            let text = format!("there is no ply {ply}: game {game} has {plies}, from 0");
            return Err(Error::config("ply", text));
        }
        Some(ply) => ply..ply + 1,
        None => 0..plies,
    };
    let world = world(wanted)?;
    let next = lookup.upcoming();
    let epochs = wanted.epochs.clone().unwrap_or_else(|| {
        let after = lookup.pass(next.unwrap_or(0)).saturating_add(2);
        let end = lookup.passes().map_or(after, |passes| passes.min(after));
        end.saturating_sub(2)..end
    });
    if epochs.start >= epochs.end || epochs.end > LAST_PASS {
        let text = format!("{}..{} are no passes; expected A..B, the end not included", epochs.start, epochs.end);
        return Err(Error::config("epochs", text));
    }
    let often = rows.first().map_or(1, |row| lookup.often(before + row, epochs.start));
    let answers = (epochs.end - epochs.start).saturating_mul(asked.end - asked.start).saturating_mul(often);
    if answers > MOST {
        let text = format!(
            "{answers} rows are too many for one answer, which has at most {MOST}; ask for fewer passes, or a ply"
        );
        return Err(Error::config("epochs", text));
    }
    let mut found = Times {
        source: (all.len() > 1).then_some(source),
        game,
        member: selected.pack().source(game),
        plies,
        selected: 0,
        epochs: (epochs.start, epochs.end),
        next_batch: next,
        times: Vec::new(),
    };
    for epoch in epochs.clone() {
        let mut of_pass = 0;
        for ply in asked.clone() {
            let pack_row = rows[ply as usize];
            let mut comes = false;
            for turn in lookup.turns(before + pack_row, epoch)? {
                comes = true;
                let time = Time { epoch, batch: None, row: None, rank: None, ply, pack_row, fed: Some(Fed::Dropped) };
                let Turn::Batch { batch, row } = turn else {
                    found.times.push(time);
                    continue;
                };
                let rank = world.map(|world| row % world);
                if wanted.rank.is_none() || wanted.rank == rank {
                    let row = Some(row / world.unwrap_or(1));
                    found.times.push(Time { batch: Some(batch), row, rank, fed: fed(lookup, next, batch), ..time });
                }
            }
            of_pass += u64::from(comes);
        }
        found.selected = found.selected.max(of_pass);
    }
    found.times.sort_by_key(|time| (time.epoch, time.batch.unwrap_or(u64::MAX), time.rank, time.row, time.ply));
    Ok(found)
}

/// Which pack the game is of.
fn source(wanted: Option<usize>, packs: usize) -> Result<usize> {
    match wanted {
        Some(source) if source < packs => Ok(source),
        Some(source) => {
            let text = format!("there is no pack {source}: the loader has {packs}, from 0");
            Err(Error::config("source", text))
        }
        None if packs == 1 => Ok(0),
        None => {
            let text =
                format!("the loader mixes {packs} packs, and each may have the game; say which: 0 to {}", packs - 1);
            Err(Error::config("source", text))
        }
    }
}

fn fed(lookup: &Lookup, next: Option<u64>, batch: u64) -> Option<Fed> {
    if lookup.is_left_out(batch) {
        return Some(Fed::LeftOut);
    }
    next.map(|next| if batch < next { Fed::Was } else { Fed::WillBe })
}

/// How many ranks rows are numbered by.
fn world(wanted: &Wanted) -> Result<Option<u64>> {
    match (wanted.rank, wanted.world_size) {
        (_, Some(0)) => Err(Error::config("world_size", "expected at least 1 rank")),
        (Some(rank), Some(world)) if rank >= world => {
            Err(Error::config("rank", format!("rank {rank} of {world}; ranks count from 0 to world_size - 1")))
        }
        (Some(_), None) => Err(Error::config("world_size", "a rank is one of how many? Give their number")),
        (_, world) => Ok(world),
    }
}

/// The id of a game, by itself or by the name of what was packed: whole, or its last part.
fn game(selected: &Selection, name: &str) -> Result<u64> {
    let pack = selected.pack();
    let ids = pack.game_ids();
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Err(Error::config("game", "the pack has no games"));
    };
    if let Ok(id) = name.parse::<u64>() {
        let at = ids.partition_point(|known| *known < id);
        if ids.get(at) == Some(&id) {
            return Ok(id);
        }
        let near = ids[at.saturating_sub(1)..ids.len().min(at + 1)].iter().min_by_key(|known| known.abs_diff(id));
        let (count, near) = (ids.len(), near.unwrap_or(last));
        let text =
            format!("there is no game {id}: the pack has {count}, from {first} to {last}; the nearest is {near}");
        return Err(Error::config("game", text));
    }
    let sources = pack.sources()?;
    let is_it = |source: &str| source == name || source.strip_suffix(name).is_some_and(|before| before.ends_with('/'));
    let mut found: Vec<u64> = sources.iter().filter(|(_, source)| is_it(source)).map(|(id, _)| *id).collect();
    found.sort_unstable();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let of = |source: &str| strsim::damerau_levenshtein(source.rsplit('/').next().unwrap_or(source), name);
            let near = sources.iter().min_by_key(|(id, source)| (of(source), **id));
            let near = near.map_or("it names none of its games; give an id".to_owned(), |(id, source)| {
                format!("the nearest is game {id}, {source}")
            });
            Err(Error::config("game", format!("the pack has no game called `{name}`: {near}")))
        }
        _ => {
            let some: Vec<String> = found.iter().take(5).map(u64::to_string).collect();
            let text = format!(
                "{} games are called `{name}`; give the id of one: {}{}",
                found.len(),
                some.join(", "),
                if found.len() > some.len() { ", ..." } else { "" }
            );
            Err(Error::config("game", text))
        }
    }
}
