//! A scenario -> whether each disk that a crash leaves has the old pack, the new one or one between, which readers refuse; whether the
//! next process makes of it, to the byte, what one undisturbed process made; and whether no refusal of the disk was silent.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

use super::disturbed::Refusal;
use super::log::{Crash, Log};
use super::process;
use super::record::{Failing, Recorded, record};
use super::scenario::Scenario;
use super::task::{OUT, Verb};
use super::tree::Tree;
use crate::case::{Case, Outcome, folder};
use crate::oracle::packs;

type Found<T> = Result<T, String>;

impl Case for Scenario {
    fn run(&self) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.failure = self.whole(&mut outcome).err();
        outcome
    }

    fn smaller(&self) -> Vec<Self> {
        self.less()
    }
}

/// What is compared with: the disk before the task, and after it was done undisturbed.
struct World<'a> {
    root: &'a Path,
    end: Tree,
    log: Log,
}

fn of_disk(e: io::Error) -> String {
    format!("the disk of the simulation: {e}")
}

/// Whether processes can be traced here.
pub fn can_trace() -> bool {
    let root = folder();
    root.is_ok_and(|root| record(root.path(), &mut Command::new("true"), None).is_ok_and(|run| run.code == 0))
}

impl Scenario {
    fn whole(&self, outcome: &mut Outcome) -> Found<()> {
        let folder = folder().map_err(of_disk)?;
        let root = folder.path();
        self.task.prepare(root).map_err(|e| format!("what is there before: {e}"))?;
        let done = self.traced(root, None, false)?;
        if done.code != 0 {
            return Err(format!("the undisturbed task ended with {}", done.code));
        }
        let (end, _) = Tree::of(root).map_err(of_disk)?;
        packs::check(&end.shown(Path::new(OUT)))?;
        let world = World { root, end, log: done.log };
        for crash in &self.disturbed.crashes {
            outcome.disks += 1;
            self.crash(&world, crash).map_err(|e| format!("{crash:?}: {e}"))?;
        }
        for refusal in &self.disturbed.refusals {
            outcome.disks += 1;
            self.refuse(&world, *refusal).map_err(|e| format!("{refusal:?}: {e}"))?;
        }
        Ok(())
    }

    /// Does the task in a process that is traced.
    fn traced(&self, root: &Path, failing: Option<&Failing>, again: bool) -> Found<Recorded> {
        process::traced(&self.task, (&self.program, root), failing, again)
    }

    /// One crash of the task, and what follows.
    fn crash(&self, world: &World<'_>, crash: &Crash) -> Found<()> {
        let left = world.log.after(crash);
        self.stands(world, &left)?;
        left.put(world.root).map_err(of_disk)?;
        if self.disturbed.twice {
            let second = self.traced(world.root, None, true)?;
            let left = second.log.after(crash);
            self.stands(world, &left).map_err(|e| format!("after the second crash: {e}"))?;
            left.put(world.root).map_err(of_disk)?;
        }
        self.done_again(world)
    }

    /// The task with changes that the disk refuses, and what follows.
    fn refuse(&self, world: &World<'_>, refusal: Refusal) -> Found<()> {
        world.log.before.put(world.root).map_err(of_disk)?;
        let done = self.traced(world.root, Some(&refusal.of(world.log.ops.len())), false)?;
        let left = done.log.end();
        let after = |e: String| {
            format!("{e}, after {}, which ended with {}", done.failed.clone().unwrap_or_default(), done.code)
        };
        self.stands(world, &left).map_err(after)?;
        let silent = done.failed.filter(|_| done.code == 0);
        if let Some((failed, unlike)) = silent.and_then(|failed| Some((failed, self.unlike(world, &left)?))) {
            return Err(format!("the disk refused {failed}, the job said nothing, and {unlike}"));
        }
        if done.code != 0 && done.code != 1 {
            return Err(format!("the process ended with {}", done.code));
        }
        self.done_again(world)
    }

    /// Whether the pack is the old one, the new one, or one between, which readers refuse.
    fn stands(&self, world: &World<'_>, left: &Tree) -> Found<()> {
        let out = Path::new(OUT);
        let shown = left.shown(out);
        if shown == world.end.shown(out) || shown == world.log.before.shown(out) {
            return Ok(());
        }
        match left.names.contains_key(&out.join(".pack.part/.publish.json")) {
            true => Ok(()),
            false => Err(format!(
                "the pack is neither the old one nor the new one, and no plan says so: {}; unlike: {:?}",
                names(&shown),
                left.unlike(&world.end)
            )),
        }
    }

    /// The task again, by another process, until it is what it should be: at most two times.
    fn done_again(&self, world: &World<'_>) -> Found<()> {
        let first = self.task.perform(world.root, true);
        let (now, _) = Tree::of(world.root).map_err(of_disk)?;
        if self.unlike(world, &now).is_none() {
            return Ok(());
        }
        let second = self.task.perform(world.root, true);
        let (now, _) = Tree::of(world.root).map_err(of_disk)?;
        match self.unlike(world, &now) {
            None => Ok(()),
            Some(unlike) => Err(format!("done again: {unlike} (the first time {first:?}, then {second:?})")),
        }
    }

    /// Where a disk is not what the undisturbed task left.
    fn unlike(&self, world: &World<'_>, now: &Tree) -> Option<String> {
        // What was deleted in part can be merged no more: what it held is in the pack.
        if self.task.verb == Verb::Merge(true) {
            let out = Path::new(OUT);
            let (now, end) = (now.shown(out), world.end.shown(out));
            return (now != end).then(|| format!("the pack is not what it should be: {}", names(&now)));
        }
        now.unlike(&world.end)
    }
}

fn names(shown: &BTreeMap<&Path, Option<&[u8]>>) -> String {
    let one =
        |(name, bytes): (&&Path, &Option<&[u8]>)| format!("{} ({})", name.display(), bytes.map_or(0, <[u8]>::len));
    shown.iter().map(one).collect::<Vec<_>>().join(", ")
}
