//! `feed`: runs a loader, drops its batches, and shows the rates.

use std::sync::atomic::Ordering;
use std::time::Duration;

use gristmill_engine::DataLoader;
use gristmill_engine::config::IoErrors;
use gristmill_jobs::feed::{self, FeedOptions};
use gristmill_plans::certificate::{self, Terms};

use super::river::{self, Described};
use crate::args::Feed;
use crate::args::address;
use crate::failure::{Failure, Result};
use crate::report::{self, flow};
use crate::stopping;
use crate::top::attach::{EVERY, Heard};
use crate::top::screen::Wish;
use crate::top::terminal::Live;

/// Shows a configuration, then says why it cannot run here, if so.
fn dry(args: &Feed, described: &Described) -> Result<()> {
    let config = &described.config;
    if args.json {
        report::json(config)?
    } else {
        report::text_out(&config.to_toml()?)?
    }
    let loader = described.loader()?;
    loader.warnings().iter().for_each(|warning| report::warning(&warning.to_string()));
    Ok(())
}

/// Reports that there is no game yet and what lies there, if an event after number `heard` says so; returns the newest
/// number.
fn waiting(loader: &DataLoader, heard: u64) -> u64 {
    let status = loader.status(heard);
    let waits = status.events.iter().filter(|event| event.kind == "waiting");
    waits.for_each(|event| report::note(&format!("gristmill: {}", event.message)));
    status.newest_event.max(heard)
}

pub(crate) fn run(args: &Feed) -> Result<()> {
    let mut described = river::config(&args.river)?;
    described.config.threads = args.threads.or(described.config.threads);
    if args.dry_run {
        return dry(args, &described);
    }
    let loader = described.loader()?;
    loader.warnings().iter().for_each(|warning| report::warning(&warning.to_string()));
    let stop = stopping::flag()?;
    if let Some(level) = args.require {
        let aliases = loader.outputs().iter().map(|output| output.alias.as_str());
        for alias in aliases.filter(|alias| args.output.as_deref().is_none_or(|output| output == *alias)) {
            let mut goes_on = || !stopping::is_raised();
            certificate::of_engine(&loader, &[], alias, Terms::default(), &mut goes_on)?.require(level)?;
        }
    }
    if let Some(address) = &args.metrics {
        let token = address::token(args.token_file.as_ref())?;
        let bound = loader.serve_metrics(address, token.as_deref())?;
        report::note(&format!("metrics at http://{bound}/metrics"));
        report::note(&format!("watch it with: gristmill top {bound}"));
    }
    let options = FeedOptions {
        batches: args.batches,
        seconds: None,
        output: args.output.clone(),
        folder: args.out.clone(),
        overwrite: args.overwrite,
    };
    let mut ticker = report::Ticker::new(!args.json && !args.top);
    let mut live = if args.top { Some(Live::take("this process".to_owned())?) } else { None };
    let (mut lost, mut quit, mut heard, mut waits) = (None, false, 0, false);
    let fed = feed::feed(&loader, &options, &stop, &mut |so_far| {
        let out = loader.io_errors();
        if !args.top {
            heard = waiting(&loader, heard);
            let says = loader.io_policy() == IoErrors::Wait && out.waiting > 0;
            if says && !std::mem::replace(&mut waits, true) {
                report::note(&format!("gristmill: {}", flow::waiting(&out)));
            }
        }
        waits &= out.waiting > 0;
        if let Some(live) = &mut live {
            if let Some(after) = live.wants(Duration::from_secs_f64(EVERY)) {
                live.hear(Heard::Status(Box::new(loader.status(after))));
            }
            let wish = live.turn(Duration::ZERO).unwrap_or_else(|e| {
                lost = Some(e);
                Wish::Quit
            });
            if wish != Wish::Stay {
                quit = wish == Wish::Quit;
                stop.store(true, Ordering::Relaxed);
            }
        } else if ticker.is_due() {
            ticker.say(&flow::now(so_far, &loader.metrics()));
        }
    });
    drop(live);
    ticker.end();
    let fed = fed?;
    if let Some(lost) = lost {
        return Err(lost);
    }
    report::either(args.json, &fed, flow::summary)?;
    if stopping::is_raised() && !quit { Err(Failure::Stopped(None)) } else { Ok(()) }
}
