//! The threads of a loader -> how long they ran and how long they waited for a core, and how much this process read from disks.
//! The numbers are the system's; there are none where it does not count.

use std::fs;

/// Nanoseconds of the threads of one kind, since they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Got {
    /// Nanoseconds on a core.
    pub(super) ran: u64,
    /// Nanoseconds in which they were ready to run and other threads had the cores.
    pub(super) held_up: u64,
}

/// The workers and the readers of the loader that runs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Threads {
    pub(super) work: Got,
    pub(super) read: Got,
}

impl Threads {
    /// Counts the threads of this process whose names are those of workers and readers.
    pub(super) fn now() -> Self {
        let mut all = Threads::default();
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return all };
        for task in tasks.flatten() {
            let text = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let of = match &*text("comm") {
                name if name.starts_with("gm-work") => &mut all.work,
                name if name.starts_with("gm-read") => &mut all.read,
                _ => continue,
            };
            let counts = text("schedstat");
            let mut counts = counts.split_ascii_whitespace().map(|count| count.parse().unwrap_or(0));
            of.ran += counts.next().unwrap_or(0);
            of.held_up += counts.next().unwrap_or(0);
        }
        all
    }

    /// Share of the time in which they wanted a core and had none; none where nothing is counted.
    pub(super) fn held_up(&self) -> Option<f64> {
        let wanted = self.work.ran + self.work.held_up + self.read.ran + self.read.held_up;
        (wanted > 0).then(|| (self.work.held_up + self.read.held_up) as f64 / wanted as f64)
    }
}

/// Bytes that this process read from disks so far; none where the system does not say.
pub(super) fn from_disk() -> Option<u64> {
    let counts = fs::read_to_string("/proc/self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_had_no_core_for_is_a_share_of_what_they_wanted() {
        let got = |ran, held_up| Got { ran, held_up };
        let threads = Threads { work: got(60, 20), read: got(10, 10) };
        assert_eq!((threads.held_up(), Threads::default().held_up()), (Some(0.3), None));
    }
}
