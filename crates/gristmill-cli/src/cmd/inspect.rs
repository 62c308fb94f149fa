//! `inspect`: what a file or directory is; of demonstrations film strips, in the terminal or as PNG.

use std::path::PathBuf;

use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::pack::PACKED;
use gristmill_format::demo::strip;
use gristmill_format::error::plain;
use gristmill_jobs::inspect::{self, Inspection, StripOptions, Which};
use serde::Serialize;

use crate::args::Inspect;
use crate::args::pictures::{Colors, Stack, When};
use crate::failure::{Failure, Result};
use crate::report::{self, inspection, lineage, picture};

/// Columns of a step in the terminal, at least: less shows nothing.
const COLUMNS: u16 = 26;

/// What `--json` prints: what the file holds, and the pictures that were written.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    seen: &'a Inspection,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pictures: Vec<PathBuf>,
}

pub(crate) fn run(args: &Inspect) -> Result<()> {
    if args.lineage {
        let steps = inspect::lineage(&args.path)?;
        return Ok(report::either(args.json, &steps, |steps| lineage::text(steps))?);
    }
    let whole = args.pictures.png.is_some() && args.frame.is_none();
    let which = match (args.chunk, args.frame, args.run) {
        (_, _, Some(run)) => Some(Which::Step { run, step: args.step }),
        (None, Some(frame), _) => Some(Which::Frame(frame as u64)),
        (Some(chunk), frame, _) if frame.is_some() || !whole => Some(Which::InChunk(chunk, frame.unwrap_or_default())),
        _ => None,
    };
    // A record is shown of a frame that was named, or of the first.
    let which = which.or((args.record && !whole).then_some(Which::Frame(0)));
    let seen = inspect::inspect(&args.path, which)?;
    let mut pictures = Vec::new();
    if let Some(out) = &args.pictures.png {
        let Some(demo) = &seen.demo else {
            let path = args.path.display();
            let advice = match seen.format == PACKED {
                true => "; `gristmill convert` makes a shard of a pack, such as demos.tar.zst",
                false => "",
            };
            let text = format!("--png is for a file of demonstrations; {path} is {}{advice}", seen.format);
            return Err(Failure::Usage(text));
        };
        pictures = inspect::write_png(demo, &options(args), out, args.pictures.overwrite, args.pictures.dry_run)?;
    }
    if args.json {
        report::json(&Told { seen: &seen, pictures })?;
        return judged(&seen);
    }
    let parts =
        inspection::Parts { ascii: args.ascii, layout: args.layout, record: args.record, color: report::is_colorful() };
    let picture = inspection::picture(&seen, &parts);
    let mut text = inspection::text(&seen, &parts);
    let verb = if args.pictures.dry_run { "would be written" } else { "written" };
    pictures.iter().for_each(|path| text.push_str(&format!("\n{verb}: {}", path.display())));
    let mut text = picture + &report::lines(&text);
    if let Some(demo) = seen.demo.as_ref().filter(|_| args.pictures.png.is_none()) {
        text.push_str(&drawn(demo, args)?);
    }
    report::picture_out(&text)?;
    judged(&seen)
}

/// A failure where something could not be read: what it holds is in none of the counts.
fn judged(seen: &Inspection) -> Result<()> {
    match seen.unreadable {
        0 => Ok(()),
        n => Err(Failure::Failed(format!("{n} files or chunks could not be read, and are not counted"))),
    }
}

fn options(args: &Inspect) -> StripOptions {
    let words = &args.pictures;
    StripOptions {
        fields: words.fields.clone(),
        chunk: args.chunk,
        frame: args.frame,
        frames: usize::from(words.strip),
        stack: if words.stack == Stack::All { strip::Stack::All } else { strip::Stack::Newest },
        colors: words.colors.map(|colors| if colors == Colors::Rgb { strip::Colors::Rgb } else { strip::Colors::Gray }),
    }
}

/// A strip as text; empty where the terminal cannot show it, or where nothing can be drawn and no option demands it.
fn drawn(demo: &DemoFile, args: &Inspect) -> Result<String> {
    let columns = match args.pictures.pictures {
        When::Auto => report::canvas(),
        When::Always => Some(report::columns()),
        When::Never => None,
    };
    let Some(columns) = columns else { return Ok(String::new()) };
    let mut options = options(args);
    options.chunk.get_or_insert(0);
    options.frames = options.frames.min(usize::from((columns / COLUMNS).max(1)));
    let mut out = String::new();
    let drawn = inspect::strips(demo, &options, &mut |strip| {
        out.push_str(&format!(
            "\n{}\n{}",
            plain(&strip.name),
            picture::text(&strip.picture.within(usize::from(columns)))
        ));
        Ok(())
    });
    match drawn {
        Err(e) if args.pictures.pictures == When::Always || !args.pictures.fields.is_empty() => Err(e.into()),
        _ => Ok(out),
    }
}
