//! What a thread got of the cores: how long it ran, and how long it was ready to run and had none. As the system counts it.
//! Nothing where the system does not count: then nobody is said to lack a core. Here a thread also gives way to others.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// What the calling thread got since it began; both only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// It ran on a core.
    pub ran: Duration,
    /// It was ready to run, and other threads had the cores.
    pub held_up: Duration,
}

thread_local! {
    static COUNTS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

/// What the calling thread got so far.
pub(super) fn spent() -> Spent {
    COUNTS.with(|file| file.as_ref().and_then(read)).unwrap_or_default()
}

fn read(file: &File) -> Option<Spent> {
    let mut text = [0; 64];
    let len = file.read_at(&mut text, 0).ok()?;
    let mut numbers = std::str::from_utf8(&text[..len]).ok()?.split_ascii_whitespace();
    let mut next = || Some(Duration::from_nanos(numbers.next()?.parse().ok()?));
    Some(Spent { ran: next()?, held_up: next()? })
}

/// From now on the calling thread takes no core from another one at the moment in which it wakes: it waits for its turn, or for a free core.
/// Its share of the cores stays as it was. So a trainer that takes a batch goes on, where the thread that it wakes would go first. Threads
/// that the calling thread starts do the same. Nothing changes where someone chose another rule for this process (`chrt`), or where the
/// system has no such rule or refuses it.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread, and the second call reads `priority` only while it lasts.
        let _refused = unsafe {
            libc::sched_getscheduler(0) == libc::SCHED_OTHER
                && libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const priority) == 0
        };
    }
}

/// How often the calling thread waited for the disk because bytes that it touched were not in memory.
pub fn major_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    after.split_ascii_whitespace().nth(9).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number `at` of what the system says of the calling thread: 1 is its number, and 2, its name, is left out.
    #[cfg(target_os = "linux")]
    fn stat(at: usize) -> i64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(at - 3).unwrap().parse().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_gives_way_keeps_its_priority_and_a_rule_that_was_chosen() {
        let rule_and_priority = || (stat(41), stat(19));
        let before = rule_and_priority();
        let [usual, batch] = [libc::SCHED_OTHER, libc::SCHED_BATCH].map(i64::from);
        std::thread::spawn(move || {
            give_way();
            assert_eq!(rule_and_priority(), (if before.0 == usual { batch } else { before.0 }, before.1));
            let priority = libc::sched_param { sched_priority: 0 };
            // SAFETY: as in `give_way`. Any thread may take the rule of those that run when no other one does.
            assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) }, 0);
            give_way();
            assert_eq!(rule_and_priority(), (i64::from(libc::SCHED_IDLE), before.1));
        })
        .join()
        .unwrap();
        assert_eq!(rule_and_priority(), before, "the rule of the thread that starts others is its own");
    }

    #[test]
    fn work_is_counted_and_sleep_is_not() {
        let before = spent();
        std::thread::sleep(Duration::from_millis(20));
        assert!(spent().ran - before.ran < Duration::from_millis(20), "{before:?}");
        let mut x = 1u64;
        while cfg!(target_os = "linux")
            && before != Spent::default()
            && spent().ran < before.ran + Duration::from_millis(5)
        {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(major_faults() < u64::MAX);
    }
}
