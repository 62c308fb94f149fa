//! A file of demonstrations -> film strips of its trajectories, drawn and named; and PNG files of them. Judges nothing.

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::publish::{Found, Staging, sync_folder, write_whole};
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::picture::png;
use gristmill_format::demo::strip::{BORDER, Colors, Picture, Stack, evenly_spaced, strip};
use gristmill_format::layout::{DType, Field};
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error as FormatError, Kind};

/// What is drawn.
#[derive(Debug, Clone)]
pub struct StripOptions {
    /// Fields; without any `obs`, or else the first field that could be an observation.
    pub fields: Vec<String>,
    /// This trajectory alone, from 0.
    pub chunk: Option<usize>,
    /// This step of it alone, from 0.
    pub frame: Option<usize>,
    /// Steps in a strip, evenly spaced.
    pub frames: usize,
    /// Which frames of a stack.
    pub stack: Stack,
    /// How channels are read: as the metadata says, else by threes where they are a multiple of three.
    pub colors: Option<Colors>,
}

impl Default for StripOptions {
    /// Ten steps of each trajectory, the newest frame of each.
    fn default() -> Self {
        let (fields, stack) = (Vec::new(), Stack::Newest);
        StripOptions { fields, chunk: None, frame: None, frames: 10, stack, colors: None }
    }
}

/// A strip, and what it is of.
#[derive(Debug, Clone)]
pub struct Strip {
    /// Such as `trajectory-000003-obs`.
    pub name: String,
    /// The picture.
    pub picture: Picture,
}

/// Draws one strip after another, and gives each to `each`.
///
/// Errors: `Format` of kind `Missing` for a trajectory, step or field that is not there; what [`strip`] refuses, with the
/// field; what `each` says.
pub fn strips(file: &DemoFile, options: &StripOptions, each: &mut dyn FnMut(Strip) -> Result<()>) -> Result<()> {
    let fields = fields(file, options)?;
    let there = file.len();
    let chunks = match options.chunk {
        Some(i) if i >= there => {
            let detail = format!("there is no trajectory {i}; there are {there}, counted from 0");
            return Err(FormatError::new(Kind::Missing, detail).into());
        }
        Some(i) => i..i + 1,
        None => 0..there,
    };
    for i in chunks {
        for field in &fields {
            let picture = draw(file, i, field, options)?;
            each(Strip { name: format!("trajectory-{i:06}-{}", field.name.replace('.', "_")), picture })?;
        }
    }
    Ok(())
}

fn draw(file: &DemoFile, i: usize, field: &Field, options: &StripOptions) -> Result<Picture> {
    let all = file.trajectories();
    let span = all.span(i).unwrap_or_default();
    let steps = match options.frame {
        Some(at) if at >= span.len() => {
            let detail = format!("there is no step {at}; the trajectory has {}, counted from 0", span.len());
            return Err(FormatError::new(Kind::Missing, detail).in_chunk(i).into());
        }
        Some(at) => vec![at],
        None => evenly_spaced(span.len(), options.frames),
    };
    let observations: Vec<&[u8]> = steps.iter().filter_map(|t| all.field(span.start + t, &field.name)).collect();
    let DType::Scalar(scalar, _) = field.dtype else {
        return Err(FormatError::new(Kind::Unsupported, format!("`{}` holds records", field.name)).into());
    };
    let colors = options.colors.or_else(|| match file.meta()?.color_space.as_str() {
        "GRAY" => Some(Colors::Gray),
        "RGB" => Some(Colors::Rgb),
        _ => None,
    });
    let named = |e: FormatError| FormatError::new(e.kind(), format!("`{}`: {}", field.name, e.detail())).in_chunk(i);
    Ok(strip(&observations, scalar, &field.shape, colors, options.stack).map_err(named)?)
}

fn fields(file: &DemoFile, options: &StripOptions) -> Result<Vec<Field>> {
    let all = file.trajectories().layout().map_or(&[][..], |layout| layout.fields());
    let find = |name: &str| all.iter().find(|field| field.name == name).cloned();
    let names = || all.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
    let missing = |name: &str| {
        let detail = format!("there is no field `{name}`; there are {}", names());
        Error::from(FormatError::new(Kind::Missing, detail))
    };
    if options.fields.is_empty() {
        let first = || all.iter().find(|field| field.name.starts_with("obs")).cloned();
        return Ok(vec![find("obs").or_else(first).ok_or_else(|| missing("obs"))?]);
    }
    options.fields.iter().map(|name| find(name).ok_or_else(|| missing(name))).collect()
}

/// The values of one field of one frame as a PNG file, the newest of a stack.
///
/// Errors: what [`strip`] refuses, with the field.
pub fn field_png(field: &Field, bytes: &[u8]) -> Result<Vec<u8>> {
    let named = |e: FormatError| FormatError::new(e.kind(), format!("`{}`: {}", field.name, e.detail()));
    let DType::Scalar(scalar, _) = field.dtype else {
        return Err(named(FormatError::new(Kind::Unsupported, "records, which are no picture")).into());
    };
    let drawn = strip(&[bytes], scalar, &field.shape, None, Stack::Newest).and_then(|strip| png(&bare(&strip)));
    Ok(drawn.map_err(named)?)
}

/// A strip of one picture without what is around it.
fn bare(strip: &Picture) -> Picture {
    let [width, height] = [strip.width, strip.height].map(|side| side.saturating_sub(2 * BORDER));
    let rows = strip.rgb.chunks_exact(strip.width * 3).skip(BORDER).take(height);
    Picture { width, height, rgb: rows.flat_map(|row| &row[BORDER * 3..][..width * 3]).copied().collect() }
}

/// Writes strips as PNG: one into the file `out`, where its name ends in `.png`; else all into the folder `out`, together. Gives
/// the paths. With `dry_run` everything is drawn, and nothing is written.
///
/// Errors: as [`strips`]; `Path`, of kind `AlreadyExists` for what is there and is not to be replaced. Nothing is written then.
pub fn write_png(
    file: &DemoFile,
    options: &StripOptions,
    out: &Path,
    overwrite: bool,
    dry_run: bool,
) -> Result<Vec<PathBuf>> {
    let refuse = |path: PathBuf| {
        let e =
            std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it exists; overwrite it, or choose another name");
        Error::path(path, &e)
    };
    if out.extension().is_some_and(|ending| ending == "png") {
        if out.exists() && !overwrite {
            return Err(refuse(out.to_owned()));
        }
        let one = StripOptions { chunk: Some(options.chunk.unwrap_or(0)), ..options.clone() };
        if one.fields.len() > 1 {
            return Err(Error::config("field", "one picture is of one field; name a folder for several"));
        }
        strips(file, &one, &mut |strip| {
            let picture = png(&strip.picture)?;
            if dry_run { Ok(()) } else { write_whole(out, &[&picture]) }
        })?;
        return Ok(vec![out.to_owned()]);
    }
    if dry_run {
        let mut paths = Vec::new();
        strips(file, options, &mut |strip| {
            paths.push(out.join(format!("{}.png", strip.name)));
            Ok(())
        })?;
        let there = paths.iter().find(|path| path.exists() && !overwrite);
        return there.map_or(Ok(paths.clone()), |path| Err(refuse(path.clone())));
    }
    let (mut staging, found) = Staging::open(out, "pictures", "inspect")?;
    if found == Found::Unfinished {
        staging.clear("inspect")?;
    }
    let mut paths = Vec::new();
    strips(file, options, &mut |strip| {
        let name = format!("{}.png", strip.name);
        if out.join(&name).exists() && !overwrite {
            return Err(refuse(out.join(name)));
        }
        let path = staging.path(&name);
        std::fs::write(&path, png(&strip.picture)?).map_err(|e| Error::path(&path, &e))?;
        paths.push(out.join(name));
        Ok(())
    })?;
    staging.publish(&[])?;
    sync_folder(out)?;
    Ok(paths)
}
