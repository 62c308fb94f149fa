//! How the shares of a job stand, as text: a line of counts, then what is not done, neighbours together. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::shares::{Shared, Shares, State, Status};

/// Lines, at most; JSON has all shares.
const LINES: usize = 40;

/// The text of the shares.
pub(crate) fn text(all: &Shares) -> String {
    let Shares { folder, plan, done, running, failed, missing, shares } = all;
    let mut out = format!(
        "{folder}: plan {} of {} inputs, {} bytes: {done} of {} shares are done, {running} running, {failed} failed, {missing} missing",
        plan.name, plan.inputs, plan.bytes, plan.shares
    );
    let mut lines = 0;
    let mut rest = shares.iter().enumerate().filter(|(_, share)| share.state != State::Done).peekable();
    while let Some((first, share)) = rest.next() {
        let mut last = first;
        while let Some((next, _)) = rest.next_if(|(i, next)| *i == last + 1 && alike(share, next)) {
            last = next;
        }
        lines += 1;
        if lines > LINES {
            out += "\n... and more; --json lists all";
            break;
        }
        let (first, last) = (first + 1, last + 1);
        let which = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let _ = match share.state {
            State::Running => write!(out, "\nrunning: {which}, noted {} s ago", share.noted.unwrap_or(0)),
            State::Failed => write!(out, "\nfailed: {which}: {}", share.why.as_deref().unwrap_or_default()),
            State::Missing | State::Done => write!(out, "\nmissing: {which}"),
        };
    }
    out
}

/// The text of a share that was made, or that a dry run planned: its contents and its folder.
pub(crate) fn made(shared: &Shared, dry_run: bool, holds: &str, folder: &str) -> String {
    let Shared { share, plan, inputs, bytes, there } = shared;
    match (dry_run, there) {
        (true, _) => format!("share {share} of plan {plan} would be made of {inputs} inputs, {bytes} bytes: {folder}"),
        (_, true) => {
            format!("share {share} of plan {plan} is done already, nothing was written: {holds} in {folder}")
        }
        _ => format!("share {share} of plan {plan} holds {holds}, of {inputs} inputs, {bytes} bytes: {folder}"),
    }
}

/// Whether two shares are said in one line.
fn alike(one: &Status, other: &Status) -> bool {
    one.state == State::Missing && other.state == State::Missing
}
