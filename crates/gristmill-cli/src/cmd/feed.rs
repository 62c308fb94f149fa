//! `feed`: runs a loader with nobody behind it, and shows what flows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::job::feed::{self, FeedOptions};
use gristmill_engine::pipeline::DataLoader;

use super::river;
use crate::args::Feed;
use crate::failure::Result;
use crate::report::{self, flow};
use crate::stopping;
use crate::top::address;
use crate::top::attach::{EVERY, Heard};
use crate::top::screen::Wish;
use crate::top::terminal::Live;

pub(crate) fn run(args: &Feed) -> Result<()> {
    let config = river::config(&args.river)?;
    let config = DataLoaderConfig { threads: args.threads.or(config.threads), ..config };
    let loader = DataLoader::new(config.clone())?;
    if args.dry_run {
        let text = config.to_toml()?;
        return if args.json { Ok(report::json(&config)?) } else { Ok(report::text_out(&text)?) };
    }
    let stop = stopping::flag()?;
    if let Some(address) = &args.metrics {
        let token = address::token(args.token_file.as_ref())?;
        let bound = loader.serve_metrics(address, token.as_deref())?;
        report::note(&format!("metrics at http://{bound}/metrics"));
        report::note(&format!("watch it with: gristmill top {bound}"));
    }
    let options = FeedOptions { batches: args.batches, output: args.output.clone(), folder: args.out.clone() };
    let mut ticker = report::Ticker::new(!args.json && !args.top);
    let mut live = if args.top { Some(Live::take("this process".to_owned())?) } else { None };
    let mut lost = None;
    let fed = feed::feed(&loader, &options, &stop, &mut |so_far| {
        if let Some(live) = &mut live {
            if let Some(after) = live.wants(Duration::from_secs_f64(EVERY)) {
                live.hear(Heard::Status(Box::new(loader.status(after))));
            }
            let wish = live.turn(Duration::ZERO).unwrap_or_else(|e| {
                lost = Some(e);
                Wish::Quit
            });
            if wish == Wish::Quit {
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
    if args.json { Ok(report::json(&fed)?) } else { Ok(report::text_out(&flow::summary(&fed))?) }
}
