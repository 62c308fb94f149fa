//! A pack -> the identity of each of its games, from the database or computed by several threads.
//! The result depends on the games alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack_table::{Content, PackTable};

use super::in_order::InOrder;

/// Games that one thread reads before it hands them on, at least, and into how many parts a pack is cut at most: a part
/// of rows that lie mixed takes a look at where all of them lie.
const TOGETHER: usize = 64;
const PARTS: usize = 256;

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
    crate::in_order::check(workers)?;
    if let Some(known) = pack.known()? {
        return Ok(known);
    }
    let (count, shared) = (pack.game_ids().len(), Arc::clone(pack));
    let together = count.div_ceil(PARTS).max(TOGETHER);
    let look = move |part: usize| shared.contents(part * together, count.min((part + 1) * together));
    let started = InOrder::start(workers, count.div_ceil(together), Arc::clone(stop), look);
    let mut flow = started.map_err(|e| Error::path(pack.folder(), &e))?;
    let mut all = Vec::with_capacity(count);
    while let Some(some) = flow.next()? {
        all.extend(some?);
        progress(all.len() as u64, count as u64);
    }
    Ok(all)
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
