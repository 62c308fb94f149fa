//! The blocks that batches need, in the order of batches -> steps. A step says which blocks the cache fetches for the next batches, and
//! which it frees before: the blocks that the known batches need last. Planning uses numbers only, so that a rehearsal and its loader take
//! the same steps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_format::{Error, Kind, Result};

use super::blocks::{BLOCK, bytes, missing, requests};
use super::cache::Fit;
use super::pool::{Lease, Pool};
use super::{Asked, Claims, HeldFile};

/// A block of a file: the number of the file, and the number of the block in it.
type Block = (u32, u32);

/// Knows which blocks the next batches need, and which blocks the cache has. Plans what to fetch and what to free.
#[derive(Debug)]
pub struct Keeper {
    numbers: Arc<Numbers>,
    /// The most blocks that the cache may have at once.
    most: usize,
    /// By the number of the file: whether its blocks may be freed. The cache keeps the other files whole.
    frees: Vec<bool>,
    /// Blocks in the cache. The value is the batch after the last planned batch that needs the block.
    there: HashMap<Block, u64>,
    /// The next batches, in order, each with the blocks that it needs.
    ahead: VecDeque<(u64, BTreeSet<Block>)>,
    /// For each block, the batches of `ahead` that need it, in order.
    uses: HashMap<Block, VecDeque<u64>>,
    /// For each block, the ranges of batches whose group needs it. Valid for batches below the number.
    far: (u64, HashMap<Block, Vec<Range<u64>>>),
    /// The pool that this keeper decides for. `None` in a rehearsal, and after the end.
    pool: Option<(Arc<Pool>, Lease)>,
}

/// Numbers and lengths (in bytes) of files, by path.
#[derive(Debug, Default)]
pub struct Numbers(BTreeMap<PathBuf, (u32, u64)>);

/// A set of blocks of files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Needed(BTreeSet<Block>);

/// A range of batches, and the blocks that its group needs.
pub type Group = (Range<u64>, Needed);

/// What the cache fetches and frees for the next batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The batches that the step is for.
    pub batches: Range<u64>,
    /// The loader must make all batches below this number before it takes the step.
    pub after: u64,
    /// Bytes of the blocks that the batches need, if they are more than the cache may keep, else `None`.
    pub lacks: Option<u64>,
    wanted: BTreeSet<Block>,
    fetched: BTreeSet<Block>,
    freed: Vec<Block>,
}

impl Numbers {
    /// Adds the blocks of `ranges` of a file to `needed`. The ranges count bytes as [`HeldFile::bytes`] does. Does nothing for a file
    /// without a number.
    pub fn add(&self, file: &HeldFile, ranges: &[(usize, usize)], needed: &mut Needed) {
        let Some(twin) = file.twin() else { return };
        let Some((number, len)) = self.0.get(twin.path()) else { return };
        needed
            .0
            .extend(missing(&file.within(ranges), *len, |_| false).into_iter().map(|block| (*number, block as u32)));
    }

    fn len(&self, number: u32) -> u64 {
        self.0.values().find(|(known, _)| *known == number).map_or(0, |(_, len)| *len)
    }

    /// The numbers of `blocks` for each file, in the order of `blocks`. The key is the number of the file.
    fn by_file<'a>(&self, blocks: impl IntoIterator<Item = &'a Block>) -> BTreeMap<u32, Vec<u64>> {
        let mut files: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        blocks.into_iter().for_each(|(file, block)| files.entry(*file).or_default().push(u64::from(*block)));
        files
    }
}

impl Keeper {
    /// Makes the keeper of a loader. It knows the blocks that the cache has now. `None` if the cache keeps all `files` whole. A pool has one
    /// such keeper at a time.
    ///
    /// Errors: those of reading the cache; `TooLarge` if another loader has the lease of the pool.
    pub fn leased(files: &[&HeldFile]) -> Result<Option<Self>> {
        let Some(pool) = files.iter().find_map(|file| file.twin()?.pool()) else { return Ok(None) };
        let lease = pool.lease()?;
        let mut made = Keeper::made(files, pool.budget(), true)?;
        made.pool = Some((pool, lease));
        Ok(Some(made))
    }

    /// Makes the keeper of a rehearsal. A command may open `files` only to measure them: the keeper then plans as a loader would. `None` if
    /// the cache keeps all files whole, or has no room for a part of them.
    ///
    /// Errors: those of reading the cache.
    pub fn rehearsed(files: &[&HeldFile]) -> Result<Option<Self>> {
        let budget = match files.iter().find_map(|file| file.twin()?.pool()) {
            Some(pool) => Some(pool.budget()),
            None if files.iter().any(|file| file.twin().is_some_and(|twin| twin.is_kept())) => None,
            None => Fit::of(files)?.part(),
        };
        let has_pool = files.iter().any(|file| file.is_bounded());
        budget.map(|budget| Keeper::made(files, budget, has_pool)).transpose()
    }

    fn made(files: &[&HeldFile], budget: u64, has_pool: bool) -> Result<Self> {
        let (mut numbers, mut there, mut frees) = (BTreeMap::new(), HashMap::new(), Vec::new());
        let mut most = (budget / BLOCK) as usize;
        for twin in files.iter().filter_map(|file| file.twin()) {
            let number = numbers.len() as u32;
            if numbers.contains_key(twin.path()) {
                continue;
            }
            numbers.insert(twin.path().to_owned(), (number, twin.len()));
            frees.push(!has_pool || twin.pool().is_some());
            // A file that the cache keeps whole adds its own room.
            most += if frees.ends_with(&[true]) { 0 } else { twin.len().div_ceil(BLOCK) as usize };
            let bits = twin.there()?;
            let known =
                (0..twin.len().div_ceil(BLOCK)).filter(|block| bits[(block / 64) as usize] >> (block % 64) & 1 == 1);
            there.extend(known.map(|block| ((number, block as u32), 0)));
        }
        Ok(Keeper {
            numbers: Arc::new(Numbers(numbers)),
            most,
            frees,
            there,
            ahead: VecDeque::new(),
            uses: HashMap::new(),
            far: (0, HashMap::new()),
            pool: None,
        })
    }

    /// Ends the work for the pool: another loader may then decide which blocks it keeps.
    pub fn end(&mut self) {
        self.pool = None;
    }

    /// The numbers of the files.
    pub fn numbers(&self) -> Arc<Numbers> {
        Arc::clone(&self.numbers)
    }

    /// Bytes that the blocks in the cache may take.
    pub fn budget(&self) -> u64 {
        self.most as u64 * BLOCK
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.numbers.0.values().map(|(_, len)| len).sum()
    }

    /// Bytes of the blocks that the cache has after all planned steps.
    pub fn bytes(&self) -> u64 {
        self.there.keys().map(|(file, block)| self.size(*file, u64::from(*block))).sum()
    }

    fn size(&self, file: u32, block: u64) -> u64 {
        bytes(block, block + 1, self.numbers.len(file))
    }

    /// The batch after the last one that [`Keeper::look`] added. `None` if no added batch waits for a step.
    pub fn seen(&self) -> Option<u64> {
        self.ahead.back().map(|(batch, _)| batch + 1)
    }

    /// Whether the added batches need more than twice the blocks that fit: batches further ahead hardly change the steps.
    pub fn sees_enough(&self) -> bool {
        self.uses.len() > 2 * self.most
    }

    /// Adds `batch`, the one after the last added one, and the blocks that it needs.
    pub fn look(&mut self, batch: u64, needed: Needed) {
        needed.0.iter().for_each(|block| self.uses.entry(*block).or_default().push_back(batch));
        self.ahead.push_back((batch, needed.0));
    }

    /// Plans the next step: at most `at_once` of the added batches. `None` if no added batch waits. `groups` takes a batch, and returns the
    /// batch after the end of its pass, and the groups of the whole pass (empty if the order has no groups). The keeper calls it when it has
    /// to free blocks in a new pass.
    ///
    /// Errors: those of `groups`.
    pub fn step(
        &mut self,
        at_once: u64,
        groups: &mut dyn FnMut(u64) -> crate::Result<(u64, Vec<Group>)>,
    ) -> crate::Result<Option<Step>> {
        let Some(first) = self.ahead.front().map(|(batch, _)| *batch) else { return Ok(None) };
        let (mut step, mut behind) = (Step::default(), first);
        // Two steps of this size fit: readers fetch one while workers make the batches of the other.
        while let Some((batch, needed)) = self.ahead.front().filter(|(batch, _)| batch - first < at_once) {
            let more = needed.iter().filter(|block| !step.wanted.contains(*block)).count();
            if behind > first && step.wanted.len() + more > self.most / 2 {
                break;
            }
            behind = batch + 1;
            let needed = self.ahead.pop_front().map(|(_, needed)| needed).unwrap_or_default();
            for block in &needed {
                if let Some(uses) = self.uses.get_mut(block) {
                    uses.pop_front();
                    if uses.is_empty() {
                        self.uses.remove(block);
                    }
                }
            }
            step.wanted.extend(needed);
        }
        step.batches = first..behind;
        if step.wanted.len() > self.most {
            step.lacks = Some(step.wanted.iter().map(|(file, block)| self.size(*file, u64::from(*block))).sum());
            return Ok(Some(step));
        }
        step.fetched = step.wanted.iter().filter(|block| !self.there.contains_key(*block)).copied().collect();
        let over = (self.there.len() + step.fetched.len()).saturating_sub(self.most);
        if over > 0 {
            if self.far.0 <= first {
                self.learn(groups(first)?);
            }
            self.free(over, &mut step);
        }
        self.there.extend(step.wanted.iter().map(|block| (*block, behind)));
        Ok(Some(step))
    }

    fn learn(&mut self, (end, groups): (u64, Vec<Group>)) {
        let mut far: HashMap<Block, Vec<Range<u64>>> = HashMap::new();
        for (batches, needed) in groups {
            needed.0.into_iter().for_each(|block| far.entry(block).or_default().push(batches.clone()));
        }
        self.far = (end, far);
    }

    /// The first batch from `from` on that needs `block`. `u64::MAX` if no known batch needs it.
    fn next(&self, block: Block, from: u64) -> u64 {
        let near = self.uses.get(&block).and_then(VecDeque::front).copied();
        let groups = self.far.1.get(&block).map_or(&[][..], Vec::as_slice);
        let far = groups.iter().filter(|batches| batches.end > from).map(|batches| batches.start.max(from)).min();
        near.into_iter().chain(far).min().unwrap_or(u64::MAX)
    }

    /// Frees `over` blocks: the blocks that are needed last. Blocks that no known batch needs go first; of these, the block that was needed
    /// longest ago.
    fn free(&mut self, over: usize, step: &mut Step) {
        let behind = step.batches.end;
        let is_free = |block: &Block| self.frees[block.0 as usize] && !step.wanted.contains(block);
        let free = self.there.iter().filter(|(block, _)| is_free(block));
        let mut order: Vec<(Reverse<u64>, u64, Block)> =
            free.map(|(block, last)| (Reverse(self.next(*block, behind)), *last, *block)).collect();
        order.sort_unstable();
        let must = order.get(..over).unwrap_or(&order);
        let last = must.iter().map(|(_, last, _)| *last).max().unwrap_or(0);
        // Frees some more blocks that no known batch needs, so that not every step has to sort. They do not delay the step.
        let more = order.iter().skip(over).take(self.most / 16);
        let more = more.take_while(|(Reverse(next), own, _)| *next == u64::MAX && *own <= last);
        step.freed = must.iter().chain(more).map(|(_, _, block)| *block).collect();
        step.after = step.freed.iter().filter_map(|block| self.there.remove(block)).max().unwrap_or(0);
    }

    /// The requests and bytes that a step fetches.
    pub fn asked(&self, step: &Step) -> Asked {
        let mut asked = Asked::default();
        for (file, blocks) in self.numbers.by_file(&step.fetched) {
            asked.ask(requests(blocks), self.numbers.len(file));
        }
        asked
    }

    /// Frees the blocks that `step` frees, and claims the blocks that its batches need. `files` are the files that the keeper was made for.
    ///
    /// Errors: `Io`; `TooLarge` if the batches of the step need more than the cache may keep.
    pub fn claim(&self, step: &Step, files: &[&HeldFile]) -> Result<Vec<Claims>> {
        if let Some(needed) = step.lacks {
            let detail = format!(
                "a batch needs {needed} bytes of blocks, and the cache keeps {}; raise cache_limit, make smaller batches, or \
                 shuffle blocks of rows (shuffle=gm.Blocks(…))",
                self.budget()
            );
            return Err(Error::new(Kind::TooLarge, detail));
        }
        let mut twins = BTreeMap::new();
        for twin in files.iter().filter_map(|file| file.twin()) {
            if let Some((number, _)) = self.numbers.0.get(twin.path()) {
                twins.entry(*number).or_insert(twin);
            }
        }
        if let Some((pool, _)) = &self.pool {
            let blocks = step.freed.iter().filter_map(|(file, block)| Some((*twins.get(file)?, u64::from(*block))));
            pool.free(blocks)?;
        }
        let mut claims = Vec::new();
        for (file, blocks) in self.numbers.by_file(&step.wanted) {
            let ranges: Vec<(u64, u64)> =
                requests(blocks).into_iter().map(|(first, behind)| (first * BLOCK, behind * BLOCK)).collect();
            claims.extend(twins.get(&file).and_then(|twin| twin.claim(&ranges)));
        }
        Ok(claims)
    }
}
