//! The blocks that batches need, in the order of batches -> which are fetched for the next ones, and which are freed before: those that
//! are needed last, as far as the plan was read. Numbers only: a rehearsal and the loader that it is of come to the same steps.

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

/// A block of one of the files: the file's number, and the block's.
type Block = (u32, u32);

/// Which blocks batches need next, and which are there.
#[derive(Debug)]
pub struct Keeper {
    numbers: Arc<Numbers>,
    /// Blocks that may be there.
    most: usize,
    /// Of which files blocks are freed: not of those that the cache keeps whole.
    frees: Vec<bool>,
    /// Blocks that are there, with the batch after the last one that needs them of those that were planned.
    there: HashMap<Block, u64>,
    /// What the next batches need.
    ahead: VecDeque<(u64, BTreeSet<Block>)>,
    /// In which of them a block is needed.
    uses: HashMap<Block, VecDeque<u64>>,
    /// From which batch to which a block is needed in the order of groups, for batches below the number.
    far: (u64, HashMap<Block, Vec<Range<u64>>>),
    pool: Option<(Arc<Pool>, Lease)>,
}

/// Numbers of files, by path.
#[derive(Debug, Default)]
pub struct Numbers(BTreeMap<PathBuf, (u32, u64)>);

/// Blocks of files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Needed(BTreeSet<Block>);

/// What is needed from a batch on, up to another one.
pub type Group = (Range<u64>, Needed);

/// What is done for the next batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The batches.
    pub batches: Range<u64>,
    /// Batches below must have been made before.
    pub after: u64,
    /// Bytes that they need together, where the cache does not keep as many.
    pub lacks: Option<u64>,
    wanted: BTreeSet<Block>,
    fetched: BTreeSet<Block>,
    freed: Vec<Block>,
}

impl Numbers {
    /// Adds the blocks of some ranges of a file.
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

    /// By file the blocks of some, in order.
    fn by_file<'a>(&self, blocks: impl IntoIterator<Item = &'a Block>) -> BTreeMap<u32, Vec<u64>> {
        let mut files: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        blocks.into_iter().for_each(|(file, block)| files.entry(*file).or_default().push(u64::from(*block)));
        files
    }
}

impl Keeper {
    /// For files of which the cache keeps a part, with what is there; none where it keeps them whole. Of a pool it is the only one.
    ///
    /// Errors: those of reading the cache; `TooLarge` where another loader feeds from the pool.
    pub fn leased(files: &[&HeldFile]) -> Result<Option<Self>> {
        let Some(pool) = files.iter().find_map(|file| file.twin()?.pool()) else { return Ok(None) };
        let lease = pool.lease()?;
        let mut made = Keeper::made(files, pool.budget(), true)?;
        made.pool = Some((pool, lease));
        Ok(Some(made))
    }

    /// The same for a rehearsal, also of files that a command only measures: as a loader would open them.
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
            // What is kept whole does not count.
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

    /// Lets another loader say which blocks are kept.
    pub fn end(&mut self) {
        self.pool = None;
    }

    /// The numbers of the files.
    pub fn numbers(&self) -> Arc<Numbers> {
        Arc::clone(&self.numbers)
    }

    /// Bytes that blocks may take.
    pub fn budget(&self) -> u64 {
        self.most as u64 * BLOCK
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.numbers.0.values().map(|(_, len)| len).sum()
    }

    /// Bytes that are there after the steps that were taken.
    pub fn bytes(&self) -> u64 {
        self.there.keys().map(|(file, block)| self.size(*file, u64::from(*block))).sum()
    }

    fn size(&self, file: u32, block: u64) -> u64 {
        bytes(block, block + 1, self.numbers.len(file))
    }

    /// The batch after those whose needs it knows.
    pub fn seen(&self) -> Option<u64> {
        self.ahead.back().map(|(batch, _)| batch + 1)
    }

    /// Whether it looked far enough: batches further ahead change next to nothing.
    pub fn sees_enough(&self) -> bool {
        self.uses.len() > 2 * self.most
    }

    /// Says what the batch after the last one needs.
    pub fn look(&mut self, batch: u64, needed: Needed) {
        needed.0.iter().for_each(|block| self.uses.entry(*block).or_default().push_back(batch));
        self.ahead.push_back((batch, needed.0));
    }

    /// Takes the next step, of at most `at_once` batches of those whose needs it knows. `groups` says which blocks are needed from which
    /// batch to which in the whole pass that a batch is in, as far as the order knows it, and where the pass ends.
    ///
    /// Errors: those of `groups`.
    pub fn step(
        &mut self,
        at_once: u64,
        groups: &mut dyn FnMut(u64) -> crate::Result<(u64, Vec<Group>)>,
    ) -> crate::Result<Option<Step>> {
        let Some(first) = self.ahead.front().map(|(batch, _)| *batch) else { return Ok(None) };
        let (mut step, mut behind) = (Step::default(), first);
        // Two such steps fit, so that one is fetched while the other is made.
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

    /// The first batch from `from` on that needs a block, as far as it is known.
    fn next(&self, block: Block, from: u64) -> u64 {
        let near = self.uses.get(&block).and_then(VecDeque::front).copied();
        let groups = self.far.1.get(&block).map_or(&[][..], Vec::as_slice);
        let far = groups.iter().filter(|batches| batches.end > from).map(|batches| batches.start.max(from)).min();
        near.into_iter().chain(far).min().unwrap_or(u64::MAX)
    }

    /// Frees the blocks that are needed last; of those that are not known to be needed the ones that were needed longest ago.
    fn free(&mut self, over: usize, step: &mut Step) {
        let behind = step.batches.end;
        let is_free = |block: &Block| self.frees[block.0 as usize] && !step.wanted.contains(block);
        let free = self.there.iter().filter(|(block, _)| is_free(block));
        let mut order: Vec<(Reverse<u64>, u64, Block)> =
            free.map(|(block, last)| (Reverse(self.next(*block, behind)), *last, *block)).collect();
        order.sort_unstable();
        let must = order.get(..over).unwrap_or(&order);
        let last = must.iter().map(|(_, last, _)| *last).max().unwrap_or(0);
        // Some more that are not needed any more, so that this is not done at each step.
        let more = order.iter().skip(over).take(self.most / 16);
        let more = more.take_while(|(Reverse(next), own, _)| *next == u64::MAX && *own <= last);
        step.freed = must.iter().chain(more).map(|(_, _, block)| *block).collect();
        step.after = step.freed.iter().filter_map(|block| self.there.remove(block)).max().unwrap_or(0);
    }

    /// What a step asks for.
    pub fn asked(&self, step: &Step) -> Asked {
        let mut asked = Asked::default();
        for (file, blocks) in self.numbers.by_file(&step.fetched) {
            asked.ask(requests(blocks), self.numbers.len(file));
        }
        asked
    }

    /// Frees what a step frees, and claims what it wants, of the files that this was made for.
    ///
    /// Errors: `Io`; `TooLarge` where the cache keeps less than the step wants.
    pub fn claim<'a>(&self, step: &Step, files: &[&'a HeldFile]) -> Result<Vec<Claims<'a>>> {
        if let Some(needed) = step.lacks {
            let detail = format!(
                "a batch is made of {needed} bytes of blocks, and the cache keeps {}; raise cache_limit, make smaller batches, or \
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
