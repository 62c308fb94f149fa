//! Measures of who waits for whom -> one that is as a test says, or a failure with all of them. Decides nothing of what is measured.

use gristmill_engine::pipeline::Waits;

/// Measures until it is as it must be. Whatever else runs on the machine may take the cores away within any part, for as long
/// as all of a measure: one alone proves nothing.
pub(crate) fn until_it_is(mut measure: impl FnMut() -> Waits, is_so: impl Fn(&Waits) -> bool) {
    let found = (0..20).map(|_| measure()).take_while(|found| !is_so(found)).collect::<Vec<_>>();
    assert!(found.len() < 20, "{found:#?}");
}

/// Whether this was waited for longest, but for the time without a core, and `times` as long as all others together.
pub(crate) fn is_mostly(cause: &'static str, times: f64) -> impl Fn(&Waits) -> bool {
    move |found| {
        let [seconds, core] = [cause, "core"].map(|cause| found.seconds(cause));
        let loader = found.waits.iter().filter(|waited| waited.cause != "trainer");
        let others = loader.map(|waited| waited.seconds).sum::<f64>() - seconds - core;
        let longest = if core > seconds { "core" } else { cause };
        seconds > times * others && found.limited_by_since_start == longest
    }
}
