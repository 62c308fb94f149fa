//! What this process used: processor time and peak memory, as the operating system counts them.
//! For reports only; nothing that the river delivers may depend on it.

use gristmill_engine::runtime::metrics::Rates;
use rustix::time::{ClockId, clock_gettime};

/// A moment: wall clock and processor time, both in seconds since some fixed point.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Of the wall clock.
    pub wall: f64,
    /// Of the processors, of all threads together.
    pub cpu: f64,
}

/// Reads both clocks.
#[derive(Debug, Default)]
pub struct Meter {
    started: Rates,
}

impl Meter {
    /// Now. The wall clock counts from the making of the meter.
    pub fn now(&self) -> Moment {
        Moment { wall: self.started.uptime().as_secs_f64(), cpu: process_cpu() }
    }
}

/// Processor time of all threads of this process, user and system, in seconds.
fn process_cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Most memory this process ever had resident, in bytes; `None` where the system does not tell.
pub fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_memory_is_counted() {
        let meter = Meter::default();
        let before = meter.now();
        let mut x = 1u64;
        while meter.now().cpu <= before.cpu {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(meter.now().wall > before.wall);
        if cfg!(target_os = "linux") {
            assert!(peak_rss().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
