//! The shares of an output in a bucket -> that output: the shares are fetched to this machine, joined here as on a disk, and what comes
//! of them is sent. Of several commits one sends; the shares are removed once the output is whole there, and nothing before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::shares::Share;
use gristmill_engine::store::files::{is_file, is_folder};
use gristmill_engine::store::outgoing::Outgoing;
use gristmill_engine::store::publish::{remove_at_once, settle_absent, withdraw, write_whole};
use tempfile::TempDir;

use super::{Committed, Made, Output, Row, row_of};
use crate::reports;
use crate::shares::{CommitOptions, Folder, Joining, Sheet, Whole, shares};

/// The folder of the shares that were fetched.
const SHARES: &str = "shares";

/// Makes the output of all shares in a bucket, and removes them. It calls `progress` now and then.
///
/// Errors: as [`super::commit`].
pub(super) fn commit(options: &CommitOptions, output: &Path, progress: &mut dyn FnMut(Joining)) -> Result<Committed> {
    let Some(theirs) = Whole::open(options)? else {
        if is_folder(output)? || is_file(output)? {
            // A killed commit did not remove these.
            Folder::beside(output)?.remove()?;
            // A commit that came second left these on this machine.
            if let Ok(Some(outgoing)) = Outgoing::open(output, "output") {
                outgoing.abandon();
            }
            return Err(Whole::already(output));
        }
        return shares(output).and(Err(Error::Stopped));
    };
    let row = row_of(&theirs)?;
    let committing = Committing { theirs, row, options };
    match committing.made(progress) {
        // Another process committed them meanwhile.
        Err(e) if !matches!(e, Error::Stopped) && !committing.theirs.is_there()? => {
            committing.theirs.folder.forget_sending()?;
            Err(Whole::already(output))
        }
        made => {
            Ok(Committed { job: row.job, paths: reports::paths(&committing.theirs.plan), made: named(made?, output) })
        }
    }
}

/// Replaces the path on this machine by the place in the bucket.
fn named(made: Made, output: &Path) -> Made {
    match made {
        Made::Pack(mut packed) => {
            packed.pack = output.display().to_string();
            Made::Pack(packed)
        }
        made => made,
    }
}

/// A commit of shares in a bucket.
struct Committing<'a> {
    /// The shares there.
    theirs: Whole,
    row: &'static Row,
    options: &'a CommitOptions,
}

impl Committing<'_> {
    /// Makes the output, sends it, and removes the shares.
    fn made(&self, progress: &mut dyn FnMut(Joining)) -> Result<Made> {
        let made = match self.row.output {
            _ if self.options.dry_run => self.looked()?,
            Output::Folder => self.folder(progress)?,
            Output::File => self.file(progress)?,
            Output::InPlace => {
                let here = temporary()?;
                self.joined(here.path().join(SHARES), self.theirs.output().to_owned(), progress)?
            }
        };
        if !self.options.dry_run {
            self.theirs.folder.remove()?;
        }
        Ok(made)
    }

    /// Checks whether the output could be made. Writes nothing to the bucket.
    fn looked(&self) -> Result<Made> {
        let (here, beat) = (temporary()?, &mut |_: Joining| {});
        match self.row.output {
            Output::InPlace => self.joined(here.path().join(SHARES), self.theirs.output().to_owned(), beat),
            Output::File => self.joined(here.path().join(SHARES), here.path().join("output"), beat),
            Output::Folder => {
                self.check_overwrite()?;
                Outgoing::could_be(self.theirs.output(), "output")?;
                self.joined(here.path().join(SHARES), here.path().join("output"), beat)
            }
        }
    }

    /// An output of many files is sent by one writer, its manifest last.
    fn folder(&self, progress: &mut dyn FnMut(Joining)) -> Result<Made> {
        self.check_overwrite()?;
        let place = self.theirs.output();
        let Some(outgoing) = Outgoing::open(place, "output")? else { return Err(Whole::already(place)) };
        let is_free = outgoing.is_free()?;
        if !is_free && !self.theirs.folder.is_sending()? {
            return Err(outgoing.refusal());
        }
        let made = self.sent(outgoing.folder(), outgoing.beside(SHARES), progress);
        let made = match made {
            Err(e) if !matches!(e, Error::Stopped) && !self.theirs.is_there()? => {
                outgoing.abandon();
                return Err(e);
            }
            made => made?,
        };
        if outgoing.is_free()? {
            outgoing.send(&mut |_, _| {
                progress(self.at(self.theirs.plan.inputs));
                self.check_stop()
            })?;
        } else {
            let refusal = match outgoing.is_sent()? {
                // Another commit began with this one, has sent everything, and now removes the shares.
                true if is_free => Some(Whole::already(place)),
                // A killed commit had sent everything; this one removes the shares.
                true if self.theirs.is_there()? => None,
                _ => Some(outgoing.refusal()),
            };
            outgoing.abandon();
            refusal.map_or(Ok(()), Err)?;
        }
        Ok(made)
    }

    /// Makes an output of many files on this machine.
    fn sent(&self, output: PathBuf, shares: PathBuf, progress: &mut dyn FnMut(Joining)) -> Result<Made> {
        let made = self.joined(shares, output, progress)?;
        self.theirs.folder.note_sending()?;
        Ok(made)
    }

    /// A report is one object, which is created, or written over.
    fn file(&self, progress: &mut dyn FnMut(Joining)) -> Result<Made> {
        let here = temporary()?;
        let output = here.path().join("output");
        let made = self.joined(here.path().join(SHARES), output.clone(), progress)?;
        let bytes = fs::read(&output).map_err(|e| Error::path(&output, &e))?;
        reports::send(self.theirs.output(), bytes, self.options.overwrite)?;
        Ok(made)
    }

    /// Fetches the shares into a folder of this machine, and joins them there.
    fn joined(&self, shares: PathBuf, output: PathBuf, progress: &mut dyn FnMut(Joining)) -> Result<Made> {
        let here = Folder::at(shares);
        self.fetch(&here, &output, progress)?;
        let options = CommitOptions { output: output.clone(), ..self.options.clone() };
        let whole = Whole { options, folder: here, plan: self.theirs.plan.clone() };
        let mut made = (self.row.commit)(&whole, progress)?;
        let paths = match &mut made {
            Made::Games(games) => games.folders.as_mut_slice(),
            Made::Shards(shards) => shards.output.as_mut_slice(),
            Made::Sides(sides) => sides.out.as_mut_slice(),
            _ => &mut [],
        };
        for path in paths {
            let side = path.strip_prefix(&output).map(Path::to_owned).unwrap_or_default();
            let there = self.theirs.output();
            *path = if side.as_os_str().is_empty() { there.to_owned() } else { there.join(side) };
        }
        Ok(made)
    }

    /// Fetches the shares that are not on this machine yet. Removes outputs that were made of other shares.
    fn fetch(&self, here: &Folder, output: &Path, progress: &mut dyn FnMut(Joining)) -> Result<()> {
        let (plan, theirs) = (&self.theirs.plan, &self.theirs.folder);
        let all = (1..=plan.shares).map(|number| {
            self.check_stop()?;
            let share = Share::new(number, plan.shares)?;
            Ok((share, theirs.sheet(plan, share)?.ok_or_else(|| self.theirs.missing())?))
        });
        let all = all.collect::<Result<Vec<(Share, Sheet)>>>()?;
        let is_same = |share: Share, sheet: &Sheet| {
            let known = fs::read(here.marker(plan, share)).ok();
            known.is_none_or(|known| known == sheet.text)
        };
        let is_known = here.plan().is_ok_and(|known| known.is_some_and(|known| known == *plan));
        if !is_known || !all.iter().all(|(share, sheet)| is_same(*share, sheet)) {
            remove_at_once(here.path())?;
            if self.row.output == Output::Folder {
                withdraw(output)?;
            }
        }
        here.agree(plan)?;
        // A dry run counts games: it needs the records alone.
        let has_files = !(self.options.dry_run && self.row.output == Output::Folder);
        for (share, sheet) in all {
            let (of, marker) = (here.of(plan, share), here.marker(plan, share));
            if marker.exists() {
                continue;
            }
            let part = of.with_extension("part");
            withdraw(&part)?;
            fs::create_dir_all(&part).map_err(|e| Error::path(&part, &e))?;
            if has_files {
                theirs.fetch((plan, share), &sheet, &part, &mut || {
                    progress(self.at(0));
                    self.check_stop()
                })?;
            }
            write_whole(&part.join(marker.file_name().unwrap_or_default()), &[&sheet.text])?;
            settle_absent(&part, &of)?;
        }
        Ok(())
    }

    fn at(&self, done: u64) -> Joining {
        Joining { done, all: self.theirs.plan.inputs }
    }

    fn check_stop(&self) -> Result<()> {
        if self.options.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    fn check_overwrite(&self) -> Result<()> {
        match self.options.overwrite {
            true => Err(Error::config(
                "overwrite",
                "nothing in a bucket is replaced; take another output, or remove it first",
            )),
            false => Ok(()),
        }
    }
}

/// A folder of this machine for the time of a commit.
fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(|e| Error::path(std::env::temp_dir(), &e))
}
