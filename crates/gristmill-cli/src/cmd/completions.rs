//! `completions`: the words of this program -> the script that completes them in a shell.

use serde::Serialize;

use crate::args::manner;
use crate::args::shell::Completions;
use crate::failure::Result;
use crate::report;

#[derive(Serialize)]
struct Completed {
    shell: String,
    script: String,
}

pub(crate) fn run(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut manner::command(), "gristmill", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let done = Completed { shell: args.shell.to_string(), script };
    Ok(report::either(args.json, &done, |done| done.script.clone())?)
}
