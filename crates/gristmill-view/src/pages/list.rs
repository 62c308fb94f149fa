//! The games of a file, and the files of a folder, as lists; a game is decoded when it is shown, and not before.

use std::fmt::Write;

use gristmill_format::error::plain;

use super::{Room, page_of, pager};
use crate::html::{cut, escape, facts, grouped};
use crate::url::{Asked, query};

/// Rows on one page.
const EACH: u64 = 100;

fn head(room: &Room<'_>, what: &[(&str, String)]) -> String {
    let name = room.way.last().map_or("", |(name, _)| name);
    let path = format!("<code>{}</code>", escape(&plain(&room.shelf.path().display().to_string())));
    let mut all = what.to_vec();
    all.push(("Path", path));
    format!("<h1>{}</h1>{}", escape(name), facts(&all))
}

/// A list of links, a page of it: address and name of each place.
fn links(room: &Room<'_>, asked: &Asked, total: u64, each: &dyn Fn(usize) -> (String, String)) -> String {
    let page = page_of(asked);
    let link = |page: u64| format!("{}{}", room.base, query(&[("page", &page.to_string())]));
    let pages = if total > EACH { pager(page, EACH, total, &link) } else { String::new() };
    let mut out = format!("{pages}<ol class=\"links\" start=\"{}\">", page * EACH);
    for place in (page * EACH..total).take(EACH as usize) {
        let (address, name) = each(usize::try_from(place).unwrap_or(usize::MAX));
        let _ = write!(out, "<li value=\"{place}\"><a href=\"{}\">{}</a></li>", escape(&address), cut(&name));
    }
    out + "</ol>" + &pages
}

/// The games of a file.
pub(super) fn chunks(room: &Room<'_>, asked: &Asked) -> String {
    let total = room.shelf.len() as u64;
    let head = head(room, &[("File of", escape(&room.shelf.format())), ("Games", grouped(total))]);
    let each = |place: usize| {
        let name = room.shelf.member(place).map_or_else(|| format!("Game {place}"), |name| plain(name).into_owned());
        (format!("{}game/{place}", room.base), name)
    };
    head + &links(room, asked, total, &each)
}

/// The files of a folder.
pub(super) fn files(room: &Room<'_>, asked: &Asked) -> String {
    let total = room.shelf.files().unwrap_or_default() as u64;
    let name =
        |place: usize| room.shelf.file(place).map_or_else(String::new, |path| plain(below(path, room)).into_owned());
    let each = |place: usize| (format!("{}file/{place}/", room.base), name(place));
    head(room, &[("Files", grouped(total))]) + &links(room, asked, total, &each)
}

/// The part of a path below the folder.
fn below<'a>(path: &'a str, room: &Room<'_>) -> &'a str {
    let folder = room.shelf.path().display().to_string();
    path.strip_prefix(&folder).map_or(path, |rest| rest.trim_start_matches('/'))
}
