//! The step of a run, and the state that its world aims at -> the deeds that are due. Does them to the disk or the consumer, and notes each
//! fault. Compares nothing.

use std::sync::Arc;

use gristmill_engine::DataLoader;

use super::Run;
use crate::boards;
use crate::coverage::{Coverage, Fault, State};
use crate::disk::{Disk, Troubles};
use crate::scenario::{Deed, EVENTFUL};

/// The step from which a world aims no more.
const AIMS: u64 = 2 * EVENTFUL;

/// Steps for which what it aimed may stay wrong.
const WRONG: u64 = 100;

impl Run<'_> {
    /// Does every deed that is due at this step. Then it notes what the stages held for each fault. The step from which nothing is wrong also
    /// completes the files that grow, and ends all troubles.
    pub(super) fn deeds(&mut self, loader: &DataLoader) {
        if self.step == self.calm {
            for (number, file) in std::mem::take(&mut self.growing) {
                [&self.disk, &self.second][number].write(&file.name, file.bytes(), true);
            }
            self.trouble(|troubles| *troubles = Default::default());
            self.mended = Some([self.disk.polls(), self.second.polls()]);
        }
        while let Some((at, deed)) = self.scenario.deeds.get(self.next_deed)
            && *at <= self.step
        {
            self.next_deed += 1;
            self.deed(deed);
        }
        self.aims(loader);
        self.note(loader);
    }

    /// Notes what the stages hold for the faults that were met since the last call.
    pub(super) fn note(&self, loader: &DataLoader) {
        self.disks().for_each(|disk| disk.note(|| State::of_stages(&loader.metrics())));
    }

    /// The disks of all directories.
    pub(super) fn disks(&self) -> impl Iterator<Item = &Disk> {
        let all = [&*self.disk, &*self.second];
        all.into_iter().take(if self.scenario.second.is_empty() { 1 } else { 2 })
    }

    /// Changes what is wrong with all.
    fn trouble(&self, change: impl Fn(&mut Troubles)) {
        self.disks().for_each(|disk| disk.trouble(&change));
    }

    /// Which faults of all met which states.
    pub(super) fn met(&self) -> Coverage {
        let mut met = Coverage::default();
        self.disks().for_each(|disk| met.merge(&disk.coverage()));
        met
    }

    /// Says where the chain is.
    pub(super) fn reached(&self, state: State) {
        self.disks().for_each(|disk| disk.reached(state));
    }

    /// Does what the world aims at, once its state has come.
    fn aims(&mut self, loader: &DataLoader) {
        let Some(aim) = self.scenario.aim.as_ref().filter(|_| !self.aimed && self.step < AIMS) else { return };
        let has_come = match aim.state.is_of_chain() {
            true => self.disk.state() == aim.state,
            false => State::of_stages(&loader.metrics()).contains(&aim.state),
        };
        self.passed += u64::from(has_come);
        if has_come && self.passed > aim.after {
            self.aimed = true;
            (self.calm, self.mended) = (self.calm.max(self.step + WRONG), None);
            aim.deeds.iter().for_each(|deed| self.deed(deed));
        }
    }

    fn deed(&mut self, deed: &Deed) {
        let (number, deed) = if let Deed::Second(deed) = deed { (1, &**deed) } else { (0, deed) };
        let disk = Arc::clone([&self.disk, &self.second][number]);
        let files = [&self.scenario.files, &self.scenario.second][number];
        let name = |file: usize| files.get(file).map(|file| file.name.clone()).unwrap_or_default();
        match deed {
            Deed::Second(_) => {}
            Deed::Break(file, disk_fault) => {
                let fault = if *disk_fault { Fault::Broken } else { Fault::Forbidden };
                disk.trouble(|troubles| _ = troubles.broken.insert(name(*file), fault));
            }
            Deed::Mend => self.trouble(|troubles| *troubles = Default::default()),
            Deed::Away => self.trouble(|troubles| troubles.away = true),
            Deed::Short => self.trouble(|troubles| troubles.short = true),
            Deed::Stale => disk.trouble(|troubles| troubles.stale = true),
            Deed::Repeated => disk.trouble(|troubles| troubles.repeated = true),
            Deed::Double => disk.trouble(|troubles| troubles.doubled = true),
            Deed::Lose => {
                disk.met(Fault::HintsLost);
                disk.lose_hints();
            }
            Deed::Arrive(file) => {
                disk.met(Fault::Arrived);
                disk.write(&file.name, file.bytes(), true);
            }
            Deed::Grow(file) => {
                disk.met(Fault::Grew);
                let whole = file.bytes();
                disk.write(&file.name, whole[..whole.len() / 2].to_vec(), false);
                self.growing.push((number, file.clone()));
            }
            Deed::Replace(file, content) => {
                // A smaller run may lack the file.
                let Some(given) = files.get(*file) else { return };
                disk.met(Fault::Replaced);
                disk.write(&given.name, boards::file(*content, given.boards, None), true);
            }
            Deed::Swap(file, content) => {
                let Some(given) = files.get(*file) else { return };
                disk.met(Fault::Replaced);
                disk.swap(&given.name, boards::file(*content, given.boards, None));
            }
            Deed::Throttle(times) => self.trouble(|troubles| troubles.throttled = *times),
            Deed::Behind => disk.trouble(|troubles| troubles.behind = true),
            Deed::Vanish(file) => {
                disk.met(Fault::Vanished);
                disk.remove(&name(*file));
            }
            Deed::Rename(file) => {
                disk.met(Fault::Renamed);
                let (folder, key) = (format!("moved-{file}"), name(*file));
                disk.rename(&key, &format!("{folder}/{}", key.rsplit('/').next().unwrap_or(&key)));
            }
            Deed::Stall(steps) => {
                disk.met(Fault::Stalled);
                self.stalled = *steps;
            }
            Deed::Crash => self.ending = Some(Fault::Crashed),
            Deed::Stop => self.ending = Some(Fault::Stopped),
        }
    }
}
