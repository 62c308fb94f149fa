//! The configuration of a rescorer -> a rescorer, its tables opened and its policies read.
//! One way for stages, commands and arrays; what it cannot use is refused by field.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::Kind;
use gristmill_format::chess::InputFormat;
use gristmill_format::chess::rescore::{Compat, Deblunder, PolicyBook, Rescorer, Settings};
use gristmill_format::source::Chunk;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::open::open;
use gristmill_runtime::store::{DirStore, Store};
use gristmill_runtime::tablebase::Syzygy;

use crate::config::ChunkRescorerConfig;
use crate::stage::rescore::Rescore;
use crate::stage::{Pass, PassStage};

impl PassStage for ChunkRescorerConfig {
    fn pass(&self, stage: &str) -> Result<Pass> {
        let prepared = prepare(stage, self, Extras::default())?;
        let (reads, lacks) = (prepared.reads(), prepared.syzygy.as_ref().map(Syzygy::lacks).unwrap_or_default());
        Ok(Pass { pass: Arc::new(Rescore::new(prepared.rescorer)), reads, lacks, threads: self.threads })
    }
}

/// What differs between a stage and a command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// V6 records stay V6.
    pub keep_v6: bool,
    /// Frames flagged for deletion are left out.
    pub drop_flagged: bool,
}

/// A rescorer with what it was made of.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The rescorer.
    pub rescorer: Rescorer,
    /// Its tablebase, if the configuration names directories.
    pub syzygy: Option<Syzygy>,
}

impl Prepared {
    /// Numbers that tell apart the tables and the policies that it reads.
    pub fn reads(&self) -> [Option<u64>; 2] {
        let policies = self.rescorer.settings().policies.as_deref();
        [self.syzygy.as_ref().map(Syzygy::fingerprint), policies.map(PolicyBook::fingerprint)]
    }
}

/// Makes a rescorer; `stage` is named in errors, unless it is empty.
///
/// Errors: `Config` with the field for a value out of range, for Gaviota tables, and for tables that are missing or
/// damaged and may not be; `Path` and `Format` for directories and files.
pub fn prepare(stage: &str, config: &ChunkRescorerConfig, extras: Extras) -> Result<Prepared> {
    let refuse = |field: &str, text: String| match stage {
        "" => Error::config(field, text),
        stage => Error::field(stage, field, text),
    };
    if config.gaviota_paths.as_deref().is_some_and(|paths| !paths.is_empty()) {
        let text =
            "Gaviota tables are not supported; leave the field out: plies_left is then corrected by Syzygy tables";
        return Err(refuse("gaviota_paths", text.to_owned()));
    }
    let input_format = match u32::try_from(config.new_input_format) {
        Ok(value) => Some(InputFormat::from_value(value).ok_or_else(|| {
            refuse("new_input_format", format!("{value}; expected -1 to keep it, or 1, 2, 3, 4, 5, 132, 133"))
        })?),
        Err(_) if config.new_input_format == -1 => None,
        Err(_) => return Err(refuse("new_input_format", format!("{}; expected -1 or more", config.new_input_format))),
    };
    let deblunder = match (config.deblunder_threshold, config.deblunder_width) {
        (Some(threshold), Some(width)) => Some(Deblunder { threshold, width }),
        (None, None) => None,
        (Some(_), None) => return Err(refuse("deblunder_width", "set it together with the threshold".into())),
        (None, Some(_)) => return Err(refuse("deblunder_threshold", "set it together with the width".into())),
    };
    let compat = Compat::parse(&config.compat).map_err(|e| refuse("compat", e.detail().to_owned()))?;
    let directories = Syzygy::directories(&config.syzygy_paths);
    let syzygy = match directories.is_empty() {
        true => None,
        false => Some(Syzygy::open(&directories, config.allow_missing_tables).map_err(|e| match e {
            Error::Config { message, .. } => refuse("syzygy_paths", message),
            Error::Path { path, message, .. } if !stage.is_empty() => {
                let way = "name the folder of the tables, leave the field out, or set allow_missing_tables";
                refuse("syzygy_paths", format!("{}: {message}; {way}", path.display()))
            }
            other => other,
        })?),
    };
    let policies =
        config.policy_directory.as_deref().map(|path| policies(path, compat)).transpose().map_err(|e| match e {
            Error::Config { message, .. } => refuse("policy_directory", message),
            Error::Path { path, message, .. } if !stage.is_empty() => {
                let way = "name a folder of games, or leave the field out";
                refuse("policy_directory", format!("{}: {message}; {way}", path.display()))
            }
            other => other,
        })?;
    let settings = Settings {
        temperature: config.dist_temp,
        offset: config.dist_offset,
        boost: config.dtz_boost,
        input_format,
        deblunder,
        theta: config.st_q_theta,
        policies: policies.map(Arc::new),
        keep_v6: extras.keep_v6,
        drop_flagged: extras.drop_flagged,
        allow_missing_tables: config.allow_missing_tables,
        compat,
    };
    let tables = syzygy.as_ref().map(Syzygy::tables);
    let rescorer = Rescorer::new(settings, tables).map_err(|(field, text)| refuse(field, text))?;
    Ok(Prepared { rescorer, syzygy })
}

/// The policies of the games in a directory, in order of name; of two games that reach one position alike, the later's.
///
/// Errors: `Path` and `Format` for what cannot be read, with the place of a game that is not sound; `Config` without games.
fn policies(directory: &Path, compat: Compat) -> Result<PolicyBook> {
    let mut names = Vec::new();
    let store = DirStore::new(directory)?;
    let faults = store.list(&mut |stat| {
        names.push(stat.name);
        ControlFlow::Continue(())
    });
    if let Some(fault) = faults.messages().next() {
        return Err(Error::config("policy_directory", format!("{}: {fault}", directory.display())));
    }
    names.sort_unstable_by(|a, b| gristmill_runtime::key::natural_cmp(a, b));
    let (mut book, mut chunk) = (PolicyBook::default(), Chunk::default());
    for name in names {
        let path = directory.join(&*name);
        let file = match open(&path) {
            Ok(file) => file,
            // A licence, a list of sums.
            Err(e) if e.kind() == Kind::UnknownFormat => continue,
            Err(e) => return Err(e.into()),
        };
        for i in 0..file.len() {
            file.chunk(i, &mut chunk)?;
            let place = |e: gristmill_format::Error| e.in_chunk(i).in_source(path.display().to_string());
            book.add(&chunk, compat).map_err(place)?;
        }
    }
    if book.is_empty() {
        let text = format!("{}: no game of chess records", directory.display());
        return Err(Error::config("policy_directory", text));
    }
    Ok(book)
}
