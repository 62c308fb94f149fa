//! The games of a file, and what lies in a folder, as lists; a game is decoded when it is shown, and not before.

use std::fmt::Write;

use gristmill_engine::store::place::is_local;
use gristmill_format::error::plain;

use super::{Room, lower, page_of, pager};
use crate::html::{cut, escape, facts, grouped};
use crate::url::{Asked, query};

/// Rows on one page.
const EACH: u64 = 100;

fn head(room: &Room<'_>, what: &[(&str, String)]) -> String {
    let path = format!("<code>{}</code>", escape(&plain(&room.shelf.path().display().to_string())));
    let mut all = what.to_vec();
    all.push(("Path", path));
    format!("<h1>{}</h1>{}", escape(room.name()), facts(&all))
}

/// One line of a list.
struct Line {
    /// Where it leads; empty where it leads nowhere.
    address: String,
    name: String,
    /// What is there, where that is known.
    kind: &'static str,
}

/// A list of links, a page of it.
fn links(room: &Room<'_>, asked: &Asked, total: u64, each: &dyn Fn(usize) -> Line) -> String {
    let page = page_of(asked);
    let link = |page: u64| format!("{}{}", room.base, query(&[("page", &page.to_string())]));
    let pages = if total > EACH { pager(page, EACH, total, &link) } else { String::new() };
    let mut out = format!("{pages}<ol class=\"links\" start=\"{}\">", page * EACH);
    for place in (page * EACH..total).take(EACH as usize) {
        let Line { address, name, kind } = each(usize::try_from(place).unwrap_or(usize::MAX));
        let (address, name) = (escape(&address), cut(&name));
        let name = if address.is_empty() { name } else { format!("<a href=\"{address}\">{name}</a>") };
        let _ = write!(out, "<li value=\"{place}\">{name} <small>{kind}</small></li>");
    }
    out + "</ol>" + &lower(&pages)
}

/// The games of a file.
pub(super) fn chunks(room: &Room<'_>, asked: &Asked) -> String {
    let total = room.shelf.len() as u64;
    let head = head(room, &[("File of", escape(&room.shelf.format())), (room.games(), grouped(total))]);
    let each = |place: usize| {
        let name = room
            .shelf
            .member(place)
            .map_or_else(|| format!("{} {place}", room.game()), |name| plain(name).into_owned());
        Line { address: format!("{}game/{place}", room.base), name, kind: "" }
    };
    head + &links(room, asked, total, &each)
}

/// The packs and files of a folder.
pub(super) fn items(room: &Room<'_>, asked: &Asked) -> String {
    let total = room.shelf.items().unwrap_or_default() as u64;
    // Files elsewhere are not opened to say what they are.
    let is_near = is_local(room.shelf.path());
    let each = |place: usize| {
        let name = room.shelf.item(place).map_or_else(String::new, |path| plain(below(path, room)).into_owned());
        let kind = if is_near { room.shelf.kind_of(place) } else { Some("") };
        let address = kind.map_or(String::new(), |_| format!("{}file/{place}/", room.base));
        Line { address, name, kind: kind.unwrap_or("not data") }
    };
    head(room, &[("Packs and files", grouped(total))]) + &links(room, asked, total, &each)
}

/// The part of a path below the folder.
fn below<'a>(path: &'a str, room: &Room<'_>) -> &'a str {
    let folder = room.shelf.path().display().to_string();
    path.strip_prefix(&folder).map_or(path, |rest| rest.trim_start_matches('/'))
}
