//! What jobs left in a folder when they were killed -> finished, given up, or kept, with how to resume it.
//! Trusts no plan and no link that lies there: what reaches outside the folder is refused, and can only be given up.

use std::path::{Path, PathBuf};

use gristmill_engine::config::parse;
use gristmill_engine::error::Result;
use gristmill_engine::pack::STAGING;
use gristmill_engine::store::publish::{Left, State, left_in};
use serde::{Deserialize, Serialize};

use super::pack::finish_left;

/// Where, and how.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoverOptions {
    /// The folder: a pack, or whatever jobs write to.
    pub folder: PathBuf,
    /// Give up what can be given up, instead of finishing it.
    pub abandon: bool,
    /// Only this job, by the name of its staging (`pack`); absent: all.
    pub only: Option<String>,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

impl RecoverOptions {
    /// Reads the options from JSON; what is absent has its default, and what is unknown is refused with the nearest
    /// known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }
}

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Its files are in their places.
    Finished,
    /// It is gone.
    GivenUp,
    /// It lies there as before.
    Kept,
}

/// One thing that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Recovery {
    /// Where it lies.
    pub path: String,
    /// What the job did: `append`, `merge`, ...; empty where it is unknown.
    pub job: String,
    /// What became of it, or would.
    pub fate: Fate,
    /// The same in words, and what can be done.
    pub detail: String,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Recovered {
    /// The folder.
    pub folder: String,
    /// What was found, in order of name.
    pub found: Vec<Recovery>,
    /// Whether nothing is left.
    pub clean: bool,
    /// Whether nothing was done.
    pub dry_run: bool,
}

/// Finishes or gives up what jobs left in a folder, and beside it under its name.
///
/// Errors: `Path`, of kind `ResourceBusy` while a job is running there.
pub fn recover(options: &RecoverOptions) -> Result<Recovered> {
    let folder = &options.folder;
    let mut places = Vec::new();
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    if let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name().and_then(|name| name.to_str()))
        && options.only.is_none()
        && Path::new(&parent.join(format!(".{name}.part"))).symlink_metadata().is_ok_and(|found| found.is_dir())
    {
        places.push((parent.to_owned(), name.to_owned()));
    }
    // Where it is gone, the writer that was to replace it left something beside it.
    if places.is_empty() || folder.exists() {
        places.extend(left_in(folder)?.into_iter().map(|name| (folder.clone(), name)));
    }
    places.retain(|(_, name)| options.only.as_ref().is_none_or(|only| only == name));
    let mut found = Vec::new();
    for (at, name) in places {
        if let Some(left) = Left::of(&at, &name)? {
            found.push(one(options, &at, &name, left)?);
        }
    }
    let clean = found.iter().all(|found| found.fate != Fate::Kept);
    Ok(Recovered { folder: folder.display().to_string(), found, clean, dry_run: options.dry_run })
}

fn one(options: &RecoverOptions, at: &Path, name: &str, left: Left) -> Result<Recovery> {
    let path = at.join(format!(".{name}.part")).display().to_string();
    let job = left.job().to_owned();
    let (fate, detail) = judged(options, at, name, &left)?;
    if !options.dry_run {
        match (fate, left.state()) {
            (Fate::Kept, _) => {}
            (Fate::GivenUp, _) => left.give_up()?,
            (Fate::Finished, State::Unfinished { .. }) => {
                drop(left);
                finish_left(at)?;
            }
            (Fate::Finished, _) => left.finish()?,
        }
    }
    Ok(Recovery { path, job, fate, detail })
}

/// What is to become of it, and the words for that.
fn judged(options: &RecoverOptions, at: &Path, name: &str, left: &Left) -> Result<(Fate, String)> {
    let what = if left.job().is_empty() { "a job".to_owned() } else { format!("`{}`", left.job().escape_debug()) };
    let said = |fate: Fate, text: String| Ok((fate, text));
    match (left.state(), options.abandon) {
        (State::Nothing, _) => said(Fate::GivenUp, "an empty folder, which is of no use to anybody".to_owned()),
        (State::Replaced, _) => said(
            Fate::GivenUp,
            format!("what was to be replaced goes back as {}; the new one was not there yet", name.escape_debug()),
        ),
        (State::Planned { begun: true, publish, remove }, true) => said(
            Fate::Kept,
            format!(
                "{what} had begun to put {publish} files in place and to remove {remove}, so that it can only be finished; leave \
                 --abandon out"
            ),
        ),
        (State::Planned { .. }, true) => {
            said(Fate::GivenUp, format!("{what} was about to put its files in place; nothing there was changed"))
        }
        (State::Planned { publish, remove, .. }, false) => said(
            Fate::Finished,
            format!("{what} was interrupted while it put {publish} files in place and removed {remove}"),
        ),
        (State::Refused(why), false) => {
            said(Fate::Kept, format!("{}; it is not carried out: --abandon removes it", why.escape_debug()))
        }
        (State::Refused(why), true) => {
            said(Fate::GivenUp, format!("{}; nothing that it says was done", why.escape_debug()))
        }
        (State::File, false) => {
            said(Fate::Kept, "a file that was being written, of no use to anybody; --abandon removes it".to_owned())
        }
        (State::File, true) => said(Fate::GivenUp, "a file that was being written".to_owned()),
        (State::Unfinished { files }, true) => said(
            Fate::GivenUp,
            format!("{what} did not end; it had staged {} files, and changed nothing else", files.len()),
        ),
        (State::Unfinished { files }, false)
            if name == STAGING && left.is_complete(&["", "pack", "overwrite", "append"]) =>
        {
            said(Fate::Finished, format!("{what} was complete but for the publication of its {} files", files.len()))
        }
        (State::Unfinished { files }, false) => {
            said(Fate::Kept, format!("{what} did not end; {} files are staged. {}", files.len(), way(at, name, left)))
        }
    }
}

/// How a job that did not end can be taken up.
fn way(at: &Path, name: &str, left: &Left) -> String {
    let resume = match (name, left.job()) {
        (STAGING, "" | "pack" | "overwrite" | "append") => {
            format!("`gristmill pack --input ... --output {} --resume` resumes it", at.display())
        }
        ("self-play", _) => "A recorder with append=True takes the steps up".to_owned(),
        _ => "Started again it makes them again".to_owned(),
    };
    format!("{resume}; --abandon gives it up")
}
