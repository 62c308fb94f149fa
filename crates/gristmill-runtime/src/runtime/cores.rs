//! What a thread got of the cores: how long it ran, and how long it was ready to run and had none. As the system counts it.
//! Nothing where the system does not count: then nobody is said to lack a core.

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

/// How often the calling thread waited for the disk because bytes that it touched were not in memory.
pub fn major_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    after.split_ascii_whitespace().nth(9).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
