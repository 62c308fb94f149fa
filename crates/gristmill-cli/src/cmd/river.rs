//! The options of a loader -> its configuration: a file with a few things overruled, or the usual graph.

use std::path::{Path, PathBuf};

use gristmill_engine::config::{self, DataLoaderConfig, EncoderConfig, TextForm};
use gristmill_engine::holdings::Holdings;
use gristmill_engine::kinds::Kind;
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::{DataLoader, Error};

use crate::args::river::{BadChunks, HanseForm, IoErrors, LastBatch, River, SplitBy};
use crate::failure::{Failure, Result};

/// A configuration, and where it was read.
pub(super) struct Described {
    pub(super) config: DataLoaderConfig,
    from: Option<(String, TextForm, String)>,
}

impl Described {
    /// Whether it is the usual graph over directories, and no file describes it.
    pub(super) fn is_usual(&self) -> bool {
        self.from.is_none()
    }

    /// A loader of it.
    ///
    /// Errors: `Usage` with the place in the file for what cannot run.
    pub(super) fn loader(&self) -> Result<DataLoader> {
        DataLoader::new(self.config.clone()).map_err(|e| match &self.from {
            Some((path, form, text)) => match form.place(text, e) {
                fault @ Error::Config { .. } => Failure::Usage(format!("{path}: {fault}")),
                other => other.into(),
            },
            None => e.into(),
        })
    }
}

/// The configuration that `river` describes.
pub(super) fn config(river: &River) -> Result<Described> {
    let (mut config, from) = match river.inputs.as_slice() {
        [one] if is_config(one) => {
            refuse_options(river, one)?;
            let (config, form, text) = read(one)?;
            (config, Some((one.clone(), form, text)))
        }
        _ => (lc0(&preset(river)?)?, None),
    };
    if let Some(path) = &river.overlay {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))?;
        let form = if path.extension().is_some_and(|e| e == "toml") { TextForm::Toml } else { TextForm::Textproto };
        let fault = |e| Failure::Usage(format!("{}: {e}", path.display()));
        config = config.overlaid(&text, form).map_err(fault)?;
    }
    config.seed = river.seed.or(config.seed);
    config.lanes = river.lanes.or(config.lanes);
    config.rank = river.rank.or(config.rank);
    config.world_size = river.world_size.or(config.world_size);
    config.skip.extend(river.skip.iter().cloned());
    config.memory = river.memory.or(config.memory);
    if let Some(policy) = river.bad_chunks {
        config.bad_chunks = match policy {
            BadChunks::Skip => config::BadChunks::Skip,
            BadChunks::Quarantine => config::BadChunks::Quarantine,
            BadChunks::Raise => config::BadChunks::Raise,
        };
    }
    if let Some(policy) = river.io_errors {
        config.io_errors = match policy {
            IoErrors::Wait => config::IoErrors::Wait,
            IoErrors::Raise => config::IoErrors::Raise,
        };
    }
    config.quarantine = river.quarantine.clone().or(config.quarantine);
    config.journal = river.journal.clone().or(config.journal);
    config.ledger = river.ledger.clone().or(config.ledger);
    config.index = river.index.clone().or(config.index);
    config.replay |= river.replay;
    for files in config.stage.iter_mut().filter_map(|stage| stage.file_path_provider.as_mut()).filter(|_| river.wait) {
        files.watch = Some(true);
    }
    Ok(Described { config, from })
}

/// Refuses options that a file of configuration has to say.
fn refuse_options(river: &River, path: &str) -> Result<()> {
    let given = [
        ("--pool", river.pool.is_some()),
        ("--reservoir", river.reservoir.is_some()),
        ("--batch-size", river.batch_size.is_some()),
        ("--sampling-rate", river.sampling_rate.is_some()),
        ("--position-count", river.position_count.is_some()),
        ("--hanse-sampling-threshold", river.hanse_sampling_threshold.is_some()),
        ("--position-cache", river.position_cache.is_some()),
        ("--epochs", river.epochs.is_some()),
        ("--watch", river.watch.is_some()),
        ("--events", river.events.is_some()),
        ("--tensors", river.tensors.is_some()),
        ("--last-batch", river.last_batch.is_some()),
        ("--split", river.split.is_some()),
        ("--split-by", river.split_by.is_some()),
        ("--folds", river.folds.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!("{flag} goes with directories; write it into {path} instead")));
    }
    Ok(())
}

/// The configuration of a file, its form and its text.
pub(super) fn read(path: &str) -> Result<(DataLoaderConfig, TextForm, String)> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::Failed(format!("{path}: {e}")))?;
    let usage = |e| Failure::Usage(format!("{path}: {e}"));
    let (form, config) = if path.ends_with(".toml") {
        (TextForm::Toml, DataLoaderConfig::from_toml(&text))
    } else {
        (TextForm::Textproto, DataLoaderConfig::from_textproto(&text))
    };
    Ok((config.map_err(usage)?, form, text))
}

/// Whether an argument is a file of configuration, by its name.
fn is_config(text: &str) -> bool {
    [".toml", ".textproto", ".pbtxt"].iter().any(|ending| text.ends_with(ending)) && !Path::new(text).is_dir()
}

fn preset(river: &River) -> Result<Lc0Preset> {
    let usual = Lc0Preset::default();
    Ok(Lc0Preset {
        directories: river.inputs.iter().map(|text| directory(text)).collect::<Result<_>>()?,
        pool: river.pool.unwrap_or(usual.pool),
        reservoir: river.reservoir,
        batch_size: river.batch_size.unwrap_or(usual.batch_size),
        sampling_rate: river.sampling_rate,
        position_count: river.position_count,
        hanse_sampling_threshold: river.hanse_sampling_threshold,
        hanse_sampling_gamma: river.hanse_sampling_gamma,
        hanse_sampling_form: river.hanse_sampling_form.map(|form| match form {
            HanseForm::Weight => config::HanseForm::Weight,
            HanseForm::Length => config::HanseForm::Length,
        }),
        position_cache: river.position_cache,
        epochs: river.epochs,
        watch: river.watch,
        events: river.events.clone(),
        split: river.split.clone().unwrap_or_default(),
        split_by: match river.split_by {
            Some(SplitBy::File) => config::SplitBy::File,
            Some(SplitBy::Name) | None => config::SplitBy::Name,
        },
        folds: river.folds,
        fold: river.fold,
        encoder: river.inputs.iter().find_map(|text| encoder(split(text).0)).unwrap_or(usual.encoder),
        tensors: river.tensors.clone().unwrap_or(usual.tensors),
        last_batch: match river.last_batch {
            Some(LastBatch::Keep) => config::LastBatch::Keep,
            Some(LastBatch::Drop) => config::LastBatch::Drop,
            Some(LastBatch::Pad) => config::LastBatch::Pad,
            None => usual.last_batch,
        },
        lanes: river.lanes,
        rank: river.rank,
        world_size: river.world_size,
        memory: river.memory,
        ..Lc0Preset::default()
    })
}

/// The encoder of what lies there, where its kind has one by its own name.
fn encoder(place: &str) -> Option<EncoderConfig> {
    let holds = Holdings::of(Path::new(place));
    holds.kinds().find(|kind| kind.encoding().is_some()).map(Kind::encoder)
}

/// A directory with its weight: `DIR`, or `DIR:W` where W is a positive number and no directory is called so.
fn directory(text: &str) -> Result<Weighted> {
    let (directory, weight) = split(text);
    if is_config(directory) {
        return Err(Failure::Usage(format!("{text} is a configuration; give one of those, or directories")));
    }
    Ok(Weighted { directory: PathBuf::from(directory), weight })
}

fn split(text: &str) -> (&str, f64) {
    let parts = text.rsplit_once(':').and_then(|(directory, weight)| Some((directory, weight.parse::<f64>().ok()?)));
    match parts {
        Some((directory, weight))
            if weight.is_finite() && weight > 0.0 && !directory.is_empty() && !Path::new(text).is_dir() =>
        {
            (directory, weight)
        }
        _ => (text, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_what_parses_as_one() {
        assert_eq!(split("games:0.7"), ("games", 0.7));
        assert_eq!(split("a:b:3"), ("a:b", 3.0));
        for plain in ["games", "a:b", "a:", ":3", "a:-1", "a:0", "a:inf", "a:nan"] {
            assert_eq!(split(plain), (plain, 1.0));
        }
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("run:2");
        std::fs::create_dir(&named).unwrap();
        let named = named.to_str().unwrap();
        assert_eq!(split(named), (named, 1.0));
    }
}
