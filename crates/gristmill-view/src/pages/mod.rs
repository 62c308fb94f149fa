//! What is on the pages: a shelf of games and a request -> HTML, JSON or a picture. Knows no connection.

mod card;
mod charts;
mod frame;
mod game;
mod known;
mod list;
mod marked;
mod origin;
mod pack;
mod picture;
mod repeated;

use gristmill_engine::sink::desk::Answer;
use gristmill_format::Kind;
use gristmill_format::demo::KIND;
use gristmill_jobs::inspect::Shelf;
use serde::Serialize;

use crate::beside::Beside;
use crate::database::Database;
use crate::html;
use crate::search::Search;
use crate::url::Asked;

pub(crate) use card::{card, position};

/// Why there is no page: an HTTP code, and words for people.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: u16,
    pub(crate) text: String,
}

pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    pub(crate) fn new(code: u16, text: impl Into<String>) -> Self {
        Fault { code, text: text.into() }
    }
}

impl From<gristmill_engine::Error> for Fault {
    fn from(e: gristmill_engine::Error) -> Self {
        let code = match &e {
            gristmill_engine::Error::Format(e) if matches!(e.kind(), Kind::Missing | Kind::UnknownFormat) => 404,
            gristmill_engine::Error::Config { .. } => 400,
            _ => 500,
        };
        Fault::new(code, e.to_string())
    }
}

/// Where a shelf stands in the site.
pub(crate) struct Room<'a> {
    /// Where the site begins, such as `/` or `/TOKEN/`.
    pub(crate) root: &'a str,
    /// Where the pages of this shelf begin, such as `/file/3/`.
    pub(crate) base: String,
    /// Names and addresses of the pages above, and of this shelf.
    pub(crate) way: Vec<(String, String)>,
    pub(crate) shelf: &'a Shelf,
    /// Of a pack its table of games.
    pub(crate) database: Option<&'a Database>,
    /// The search for repeated games.
    pub(crate) search: &'a Search,
    /// What is known beside it.
    pub(crate) beside: &'a Beside,
}

impl Room<'_> {
    /// The answer to a request, whose path is `path` below this shelf.
    pub(crate) fn answer(&self, path: &[&str], asked: &Asked) -> Result<Answer> {
        match (path, self.database, self.shelf.pack()) {
            ([], Some(database), Some(pack)) => Ok(self.page(self.games(), &pack::games(self, pack, database, asked))),
            ([], ..) if self.shelf.items().is_some() => Ok(self.page("Files", &list::items(self, asked))),
            ([], ..) => Ok(self.page(self.games(), &list::chunks(self, asked))),
            (["games.json"], Some(database), _) => json(&pack::games_as_data(database, asked)?),
            (["columns"], Some(database), Some(pack)) => match pack::kept(self, database, asked) {
                Some(narrowed) => narrowed,
                None => Ok(self.page("Columns", &pack::columns(self, pack, database, asked))),
            },
            (["columns.json"], Some(database), _) => json(&pack::columns_as_data(database, asked)?),
            (["marks"], Some(_), Some(pack)) => Ok(self.page("Marks", &origin::marks(self, pack)?)),
            (["duplicates"], Some(_), Some(pack)) => Ok(repeated::answer(self, pack, asked)),
            (["duplicates.json"], Some(_), Some(pack)) => json(&repeated::data(self, pack, asked)),
            (["left-out"], Some(_), Some(pack)) => Ok(self.page("Left out", &origin::left_out(self, pack, asked)?)),
            (["origin"], Some(_), Some(pack)) => Ok(self.page("Origin", &origin::lineage(self, pack))),
            (["game", id], ..) => game::page(self, id, asked),
            (["game", id, "when.json"], ..) => json(&known::times(self, &game::named(self, id)?)?),
            (["game", id, "frame", at], ..) => game::frame(self, id, at),
            (["game", id, "picture", at, field], ..) => picture::png(self, id, at, field),
            _ => Err(Fault::new(404, "there is no such page; the first page leads to all")),
        }
    }

    /// A page of this shelf.
    pub(crate) fn page(&self, title: &str, body: &str) -> Answer {
        self.page_by(&self.way, title, body)
    }

    /// A page below those of this shelf, with its address.
    fn page_below(&self, title: &str, address: String, body: &str) -> Answer {
        self.page_by(&[self.way.clone(), vec![(title.to_owned(), address)]].concat(), title, body)
    }

    fn page_by(&self, way: &[(String, String)], title: &str, body: &str) -> Answer {
        let title = format!("{title} · {}", self.name());
        html_answer(200, html::page(&html::Frame { root: self.root, title: &title, way, again: None }, body))
    }

    /// What the shelf is called.
    fn name(&self) -> &str {
        self.way.last().map_or("", |(name, _)| name)
    }

    /// What a game is called here.
    fn game(&self) -> &'static str {
        if self.shelf.kind() == KIND { "Trajectory" } else { "Game" }
    }

    /// What games are called here.
    fn games(&self) -> &'static str {
        if self.shelf.kind() == KIND { "Trajectories" } else { "Games" }
    }
}

/// HTML.
pub(crate) fn html_answer(code: u16, text: String) -> Answer {
    Answer { code, kind: "text/html; charset=utf-8", lines: Vec::new(), body: text.into_bytes() }
}

/// JSON.
pub(crate) fn json(data: &impl Serialize) -> Result<Answer> {
    let body = serde_json::to_vec(data).map_err(|e| Fault::new(500, e.to_string()))?;
    Ok(Answer { code: 200, kind: "application/json", lines: Vec::new(), body })
}

/// What stands between the pages of a long list: where it is, and links. `link` gives the address of a page, from 0.
fn pager(page: u64, each: u64, total: u64, link: &dyn Fn(u64) -> String) -> String {
    let last = total.saturating_sub(1) / each;
    let (from, to) =
        (page.saturating_mul(each).saturating_add(1).min(total), (page + 1).saturating_mul(each).min(total));
    let way = |there: bool, to: u64, rel: &str, text: &str| match there {
        true => format!("<a href=\"{}\" rel=\"{rel}\">{text}</a>", html::escape(&link(to))),
        false => format!("<span aria-disabled=\"true\">{text}</span>"),
    };
    format!(
        "<nav class=\"pager\" aria-label=\"Pages\">{}{}<span class=\"at\">{}–{} of {}</span>{}{}</nav>",
        way(page > 0, 0, "first", "⇤ First"),
        way(page > 0, page.saturating_sub(1), "prev", "← Earlier"),
        html::grouped(from),
        html::grouped(to),
        html::grouped(total),
        way(page < last, page.saturating_add(1), "next", "Later →"),
        way(page < last, last, "last", "Last ⇥"),
    )
}

/// The same below the list, by a name of its own.
fn lower(pager: &str) -> String {
    pager.replacen("aria-label=\"Pages\"", "aria-label=\"Pages, below\"", 1)
}

/// The page of a list that a request names, no larger than the last.
fn page_of(asked: &Asked) -> u64 {
    asked.number("page").min(1 << 40)
}
