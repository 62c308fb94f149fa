//! Ranks of one process, each in a thread of its own -> one of them runs at a time, and the next one after each batch. So the process does the
//! same each time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Runs each rank in a thread of its own, the first one first. Returns what they came to, in the order of ranks.
pub(crate) fn by_turns<T: Send>(
    ranks: u32,
    of: impl Fn(u32, &Arc<Turns>) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let turns = &Arc::new(Turns::new(ranks));
    let run = |rank| {
        let turn = turns.begin(rank);
        let came = of(rank, turns).map_err(|e| format!("rank {rank}: {e}"))?;
        turn.done();
        Ok(came)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a rank broke off".to_owned())?).collect()
    })
}

/// Whose turn it is.
#[derive(Debug)]
pub(crate) struct Turns {
    inner: Mutex<Inner>,
    passed: Condvar,
}

#[derive(Debug)]
struct Inner {
    rank: u32,
    /// Ranks that still run.
    run: Vec<bool>,
    /// Whether one of them broke off.
    broke: bool,
}

impl Turns {
    /// Of this number of ranks; the first begins.
    fn new(ranks: u32) -> Self {
        let run = vec![true; ranks as usize];
        Turns { inner: Mutex::new(Inner { rank: 0, run, broke: false }), passed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a rank's first turn. When what it returns is dropped, the rank has ended: it broke off unless it said that it is done.
    fn begin(&self, rank: u32) -> Turn<'_> {
        self.wait(self.lock(), rank);
        Turn { turns: self, rank, done: false }
    }

    /// Lets the next rank run, and waits until it is this one's turn again.
    ///
    /// Errors: another rank broke off. Ranks wait for each other in each step of a training, so this one ends as well.
    pub(crate) fn pass(&self, rank: u32) -> Result<(), String> {
        let mut inner = self.lock();
        inner.next();
        self.passed.notify_all();
        self.wait(inner, rank);
        if self.lock().broke { Err("another rank broke off".to_owned()) } else { Ok(()) }
    }

    fn wait(&self, inner: MutexGuard<'_, Inner>, rank: u32) {
        let inner = self.passed.wait_while(inner, |inner| inner.rank != rank);
        drop(inner.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Inner {
    /// The next rank that still runs, if any does.
    fn next(&mut self) {
        let ranks = self.run.len() as u32;
        let others = (1..=ranks).map(|step| (self.rank + step) % ranks);
        self.rank = others.into_iter().find(|rank| self.run[*rank as usize]).unwrap_or(self.rank);
    }
}

/// A rank that runs.
struct Turn<'a> {
    turns: &'a Turns,
    rank: u32,
    done: bool,
}

impl Turn<'_> {
    /// The rank ends as it is to end.
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inner = self.turns.lock();
        inner.run[self.rank as usize] = false;
        inner.broke |= !self.done;
        inner.next();
        self.turns.passed.notify_all();
    }
}
