//! What frames are of -> all that the engine has to know of it: one table, a folder for each game. Outside of a game's own
//! folders no other place has to name it. A kind that is not in the table is refused by its name, and never taken for another.

pub mod binpack;
pub mod bullet;
pub mod chess;
pub mod demo;
pub mod g2048;
pub mod katago;
pub mod packs;
pub mod records;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::container::chunks;
use gristmill_format::detect::{Format, open, unknown_codec};
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::source::{ChunkSource, ReadAt};
use gristmill_format::{Error as FormatError, Kind as Cause, Result as FormatResult};
use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::EncoderConfig;

use crate::chunks::codec::{Codec, Packing};

/// The kinds that there are.
const KINDS: [&dyn Kind; 7] =
    [&chess::Chess, &g2048::G2048, &demo::Demo, &bullet::Bullet, &binpack::Binpack, &records::Records, &katago::KataGo];

/// What frames are of: a game, and how this program records it.
pub trait Kind: Debug + Send + Sync {
    /// Its name: what sources of its frames say of them, and manifests of its packs.
    fn name(&self) -> &'static str;

    /// What its chunks are, in words, such as `games of chess`.
    fn games(&self) -> &'static str;

    /// What files of it are, for errors: with their endings.
    fn files(&self) -> &'static str;

    /// The encoder of its frames, as it is when nothing more is said of it.
    fn encoder(&self) -> EncoderConfig;

    /// Its encoder, where configurations name that by the name of the kind.
    fn encoding(&self) -> Option<&dyn Encoding> {
        None
    }

    /// How packs of its games have them; none for what is packed in rows alone.
    fn codec(&self) -> Option<&'static dyn Codec> {
        None
    }

    /// Where streams of it take its own encoder alone, since fields have to be declared: what to do with others.
    fn declared(&self) -> Option<&'static str> {
        None
    }

    /// The tensors that a stream of its frames must declare to get all fields of this layout; none if its encoder knows them.
    fn declares(&self, records: &Layout) -> Vec<String> {
        let _ = records;
        Vec::new()
    }

    /// How a folder of its games is packed; none for what is not packed.
    fn way(&self) -> Option<Way> {
        let codec = self.codec()?;
        Some(Way::Chunks(codec, codec.packing()?))
    }

    /// What holds its frames, and what takes them: the rest of a sentence that began with the place.
    fn held(&self, held: &Held<'_>) -> String {
        let (one, many) = (format!("a file of {}", self.games()), format!("files of {}", self.games()));
        held.fed(&one, &many)
    }
}

/// How a folder of games of a kind is packed.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// A log and its sidecar for each game become rows.
    Rows,
    /// Data sets, in files or folders, become packed trajectories.
    Sets,
    /// Each chunk is packed by itself.
    Chunks(&'static dyn Codec, Packing),
}

/// What holds frames of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// The place.
    pub folder: &'a Path,
    /// Whether in files, and not in a pack.
    pub loose: bool,
    /// How many files there are.
    pub count: u64,
    /// The first.
    pub first: &'a str,
}

impl Held<'_> {
    /// One or many files, and the name of the first.
    fn files(&self, one: &str, many: &str) -> String {
        match self.count {
            1 => format!("{one} ({})", self.first),
            count => format!("{count} {many} ({}, ...)", self.first),
        }
    }

    /// Files that streams take.
    fn fed(&self, one: &str, many: &str) -> String {
        format!("holds {}: `gristmill feed {}` feeds them", self.files(one, many), self.folder.display())
    }
}

/// The encoder of one kind, as it is configured.
pub trait Encoding {
    /// The encoder that the tensor generator of a stream names.
    ///
    /// Errors: `Config` with the field; the stage is for the caller to say.
    fn of_stream(&self, tensors: &[String]) -> Result<Arc<dyn Encoder>>;

    /// The encoder of rows of a table of this layout, whose valuation ids stand for `valuations`. Whether it fits the rows is
    /// its own to say.
    ///
    /// Errors: `Config` with the field; `Path` and `Format` for a file that is named.
    fn of_rows(&self, tensors: &[String], layout: &Layout, valuations: &[String]) -> Result<Arc<dyn Encoder>>;

    /// The encoder of those tensors of [`Encoding::of_rows`] that `keep` says, where it can be made without the others.
    fn some_of_rows(&self, tensors: &[String], keep: &dyn Fn(&str) -> bool) -> Option<Arc<dyn Encoder>> {
        let _ = (tensors, keep);
        None
    }

    /// What of its configuration, which is `said`, and of the tensors that were chosen decides rows by number.
    fn decides(&self, said: serde_json::Value, tensors: &[String]) -> serde_json::Value {
        let _ = tensors;
        said
    }
}

/// The encoder of the chosen tensors.
///
/// Errors: `Config` in `tensors` if there is no such encoder.
fn of_tensors<E: Encoder + 'static>(made: FormatResult<E>) -> Result<Arc<dyn Encoder>> {
    Ok(Arc::new(made.map_err(|e| Error::config("tensors", e.detail()))?))
}

/// The encoder that a configuration names.
///
/// Errors: `Config` with the name, where no kind has such an encoder.
pub fn encoding(config: &EncoderConfig) -> Result<&dyn Encoding> {
    Ok(match config {
        EncoderConfig::Chess => &chess::Chess,
        EncoderConfig::G2048(config) => config,
        EncoderConfig::Fields => &demo::Demo,
        EncoderConfig::Of(name) => {
            let named = KINDS.into_iter().filter_map(|kind| Some((kind.name(), kind.encoding()?)));
            let unknown = || {
                let own = named.clone().map(|(name, _)| format!(", `{name}`")).collect::<String>();
                let name = name.escape_debug();
                Error::config("encoder", format!("unknown encoder `{name}`, expected `chess`, `g2048`, `fields`{own}"))
            };
            named.clone().find(|(own, _)| own == name).ok_or_else(unknown)?.1
        }
    })
}

/// The kind of this name.
///
/// Errors: `Unsupported` with the name.
pub fn of(name: &str) -> FormatResult<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        let name = name.escape_debug();
        let detail = format!("frames of `{name}`, a kind that is not known here; known are {}", known.join(", "));
        FormatError::new(Cause::Unsupported, detail)
    })
}

/// The names of all kinds.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(Kind::name)
}

/// The kind of this number in the order of [`names`].
pub(crate) fn numbered(i: usize) -> Option<&'static dyn Kind> {
    KINDS.get(i).copied()
}

/// The kinds that are packed, and how, in the order in which a folder with several of them is of one.
pub fn packable() -> impl Iterator<Item = (&'static dyn Kind, Way)> {
    let mut kinds: Vec<_> = KINDS.into_iter().filter_map(|kind| Some((kind, kind.way()?))).collect();
    // The names of logs and of sets say what they are; other files are opened for that.
    kinds.sort_by_key(|(_, way)| match way {
        Way::Rows => 0,
        Way::Sets => 1,
        Way::Chunks(..) => 2,
    });
    kinds.into_iter()
}

/// What files there are of all kinds, for errors.
pub fn files() -> String {
    let [first @ .., last] = KINDS.map(Kind::files);
    format!("{}, or {last}", first.join(", "))
}

/// The codec of chunk files that say this.
///
/// Errors: `Unsupported` with what they say.
pub fn codec(tag: chunks::Codec) -> FormatResult<&'static dyn Codec> {
    codecs().find(|codec| codec.tag() == tag).ok_or_else(|| unknown_codec(tag))
}

/// The codec that the manifest of a pack names; none where it is not known here.
pub fn codec_named(name: &str) -> Option<&'static dyn Codec> {
    codecs().find(|codec| codec.name() == name)
}

fn codecs() -> impl Iterator<Item = &'static dyn Codec> {
    KINDS.into_iter().filter_map(Kind::codec)
}

/// Opens a file of a known format, and says what its frames are of; `key` is its name without folders.
///
/// Errors: what the format's own opening gives; `Unsupported` for frames of a kind that is not known here.
pub fn open_source(
    format: Format,
    key: &str,
    from: &dyn ReadAt,
) -> FormatResult<(Arc<dyn ChunkSource>, &'static dyn Kind)> {
    let source = open(format, key, from)?;
    let kind = of(source.describe().kind)?;
    Ok((source, kind))
}

/// Whether chunks of the kind of this name can be streamed: of every kind that is known here.
///
/// Errors: `Unsupported` with the name.
pub fn streams(name: &str) -> FormatResult<()> {
    of(name).map(|_| ())
}

/// Whether a stream with these encoders can be of chunks of the kind of this name.
///
/// Errors: `Unsupported`, with the name where it is not known here, else with what to do.
pub fn fed_by<'a>(name: &str, mut encoders: impl Iterator<Item = &'a EncoderConfig>) -> FormatResult<()> {
    let kind = of(name)?;
    match kind.declared() {
        Some(advice) if !encoders.any(|encoder| *encoder == kind.encoder()) => {
            Err(FormatError::new(Cause::Unsupported, advice))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_names_and_no_other_is() {
        for kind in KINDS {
            assert_eq!(of(kind.name()).unwrap().name(), kind.name());
            let Some(own) = kind.codec() else { continue };
            assert_eq!((own.name(), own.tag()), (kind.name(), codec(own.tag()).unwrap().tag()));
            assert_eq!(codec_named(own.name()).unwrap().tag(), own.tag());
            assert!(own.derived().len() < 9 && !own.columns().is_empty());
        }
        assert!(codec_named("checkers").is_none());
        for refused in [of("checkers").unwrap_err(), codec(*b"checkers").unwrap_err()] {
            assert_eq!(refused.kind(), Cause::Unsupported);
            assert!(refused.detail().contains("`checkers`"), "{refused}");
        }
        let refused = encoding(&EncoderConfig::Of("checkers".to_owned())).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("`checkers`") && refused.contains("`fields`"), "{refused}");
        assert!(streams("checkers").is_err());
        assert!(names().all(|name| streams(name).is_ok()));
        assert!(fed_by("demo", [EncoderConfig::Fields].iter()).is_ok());
        assert!(fed_by("demo", [EncoderConfig::Chess].iter()).unwrap_err().detail().contains("DataLoader"));
    }
}
