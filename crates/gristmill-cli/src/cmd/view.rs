//! `view`: serves pages of a pack, a file, a folder or a running loader until Ctrl-C, which is how it ends well; opens them in a browser.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use gristmill_engine::pipeline::read_state;
use gristmill_engine::tablebase::Syzygy;
use gristmill_view::watch::client::Client;
use gristmill_view::{Beside, Unseen, View as Pages};
use serde::Serialize;

use crate::args::address;
use crate::args::view::View;
use crate::failure::{Failure, Result};
use crate::{report, stopping};

/// Where it listens unless an address is given: one that stays the same, so that links of yesterday lead somewhere.
const USUAL: &str = "127.0.0.1:8642";
const ANY: &str = "127.0.0.1:0";

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    path: String,
    url: &'a str,
    /// Whether other machines reach it, with the token that the address has.
    open: bool,
}

pub(crate) fn run(args: &View) -> Result<()> {
    let stop = stopping::flag()?;
    let tables = args.syzygy.as_deref().map(|list| Syzygy::open(&Syzygy::directories(list), false)).transpose()?;
    let beside = Beside { tables, state: args.state.as_deref().map(read_state).transpose()? };
    let pages = match &args.addr {
        Some(address) => open(args, &beside, address)?,
        None => match open(args, &beside, USUAL) {
            Err(Failure::Usage(_)) => open(args, &beside, ANY)?,
            opened => opened?,
        },
    };
    let url = pages.url();
    if args.json {
        report::json(&Told { path: args.path.display().to_string(), url: &url, open: pages.is_open() })?;
    } else {
        report::text_out(&format!("{} is at {url}", args.path.display()))?;
        report::note("Ctrl-C ends it");
    }
    if pages.is_open() {
        report::note(
            "other machines reach it, by the name of this one: give the address to those who may see the data, and to nobody else",
        );
    }
    if !args.no_browser && !args.json {
        browse(&url);
    }
    pages.serve(&stop);
    Ok(())
}

/// The pages of what is named, at an address.
fn open(args: &View, beside: &Beside, at: &str) -> Result<Pages> {
    let Some(loader) = args.path.to_str().and_then(address::of_loader) else {
        return Ok(Pages::open_with(&args.path, beside.clone(), at)?);
    };
    let client = Client::new(loader.clone(), address::token(args.token_file.as_ref())?);
    Pages::watch(client, at).map_err(|e| match e {
        Unseen::Address(e) => e.into(),
        Unseen::Loader(why) => Failure::Failed(format!(
            "{why}; a loader answers if it serves metrics: gristmill feed ... --metrics {loader}, or in Python \
             loader.serve_metrics(\"{loader}\")"
        )),
    })
}

/// Opens the address where there is a screen; where nothing opens it, it is printed all the same.
fn browse(url: &str) {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_screen || !std::io::stdin().is_terminal() {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(e) = quiet {
        report::note(&format!("no browser was opened ({program}: {e})"));
    }
}
