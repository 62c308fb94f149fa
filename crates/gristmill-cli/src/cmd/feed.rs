//! `feed`: runs a loader with nobody behind it, and shows what flows.

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::job::feed::{self, FeedOptions};
use gristmill_engine::pipeline::DataLoader;

use super::river;
use crate::args::Feed;
use crate::failure::Result;
use crate::report::{self, flow};
use crate::stopping;

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
        let bound = loader.serve_metrics(address, None)?;
        report::note(&format!("metrics at http://{bound}/metrics"));
    }
    let options = FeedOptions { batches: args.batches, output: args.output.clone(), folder: args.out.clone() };
    let mut ticker = report::Ticker::new(!args.json);
    let fed = feed::feed(&loader, &options, &stop, &mut |so_far| {
        if ticker.is_due() {
            ticker.say(&flow::now(so_far, &loader.metrics()));
        }
    });
    ticker.end();
    let fed = fed?;
    if args.json { Ok(report::json(&fed)?) } else { Ok(report::text_out(&flow::summary(&fed))?) }
}
