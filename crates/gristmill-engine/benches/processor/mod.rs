//! The processor time of this process, all threads together.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds so far.
pub(crate) fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
