//! A pack -> the identity of each of its games, from the database or computed by several threads.
//! The result depends on the games alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack_table::{Content, PackTable};

use super::in_order::InOrder;

/// Games that one thread reads before it hands them on, at least, and into how many parts a pack is cut at most: a part
/// of rows that lie mixed takes a look at where all of them lie.
const TOGETHER: usize = 64;
const PARTS: usize = 256;

/// Games whose identities are read from the database at a time: 48 MiB of them.
const KNOWN: usize = 1 << 20;

/// The identity of each game of `pack`, by ascending id; games without a frame share one key. `progress` gets the
/// number of games that are done, and of all games.
///
/// Errors: `Config` in `workers`; `Format` for a game that cannot be read; `Stopped`.
pub fn contents(
    pack: &Arc<dyn PackTable>,
    workers: usize,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Content>> {
    let count = pack.game_count();
    let mut all = Vec::with_capacity(count);
    contents_of(pack, 0..count, workers, stop, &mut |some| {
        all.extend(some);
        progress(all.len() as u64, count as u64);
        Ok(())
    })?;
    Ok(all)
}

/// The identities of some games of `pack`, by their places in the order of ids: `take` gets them in this order, some at a time.
///
/// Errors: as [`contents`]; those of `take`.
pub(crate) fn contents_of(
    pack: &Arc<dyn PackTable>,
    games: Range<usize>,
    workers: usize,
    stop: &Arc<AtomicBool>,
    take: &mut dyn FnMut(Vec<Content>) -> Result<()>,
) -> Result<()> {
    crate::in_order::check(workers)?;
    let Range { start: mut from, end } = games;
    while from < end {
        let to = end.min(from + KNOWN);
        let Some(known) = pack.known(from, to)? else { break };
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        take(known)?;
        from = to;
    }
    let (count, shared) = (end.saturating_sub(from), Arc::clone(pack));
    let together = count.div_ceil(PARTS).max(TOGETHER);
    let look = move |part: usize| shared.contents(from + part * together, end.min(from + (part + 1) * together));
    let started = InOrder::start(workers, count.div_ceil(together), Arc::clone(stop), look);
    let mut flow = started.map_err(|e| Error::path(pack.folder(), &e))?;
    while let Some(some) = flow.next()? {
        take(some?)?;
    }
    Ok(())
}

/// The number that [`gristmill_engine::stage::split`] takes for each game: the low 64 bits of its key.
///
/// Errors: as [`contents`].
pub fn split_keys(
    pack: &Arc<dyn PackTable>,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<HashMap<u64, u64>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let all = contents(pack, workers, stop, progress)?;
    Ok(all.into_iter().map(|content| (content.game, content.key as u64)).collect())
}
