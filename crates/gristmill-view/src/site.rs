//! A path or a loader, an address and a flag -> a site of what is there, served until the flag is set. Checks each request first:
//! the name of this machine or a token, no other site, no method but GET. Lets browsers load nothing from other sites.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::runtime::seed::fresh_root;
use gristmill_engine::sink::desk::{Answer, Door, Head, Host, Reply, is_local};
use gristmill_jobs::inspect::Shelf;

use crate::assets::asset;
use crate::beside::Beside;
use crate::database::Database;
use crate::html::{self, escape};
use crate::pages::{self, Fault, Room};
use crate::run::Run;
use crate::search::Search;
use crate::url::Asked;
use crate::watch::client::Client;

/// What a page may load, and who may show it.
const POLICY: &str =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// What lies at a path, at an address, not served yet.
pub struct View {
    door: Door,
    site: Site,
}

/// Why there are no pages of a loader.
#[derive(Debug)]
pub enum Unseen {
    /// The address for the pages cannot be bound.
    Address(Error),
    /// No loader is heard, and why.
    Loader(String),
}

struct Site {
    /// Where the site begins: `/`, or `/TOKEN/`.
    root: String,
    token: Option<String>,
    name: String,
    all: All,
    beside: Beside,
    /// What was shown last of a folder.
    last: RefCell<Option<(usize, Rc<Opened>)>>,
}

/// What the site is of.
enum All {
    Data(Box<Opened>),
    Run(Run),
}

/// A shelf; for a pack also the table of its games and the search for repeated games.
struct Opened {
    shelf: Shelf,
    database: Option<Database>,
    search: Search,
}

impl Opened {
    fn at(path: &Path) -> Result<Self> {
        let shelf = Shelf::open(path)?;
        let table = shelf.pack().map(|all| all.pack().games_table());
        let database = table.map(|table| Database::open(shelf.path(), table)).transpose()?;
        Ok(Opened { shelf, database, search: Search::default() })
    }
}

impl View {
    /// Opens what lies at `path`, and binds the address. An address that other machines reach gets a random token, without which
    /// nothing is shown.
    ///
    /// Errors: those of opening; `Config` in `addr` for an address that cannot be bound.
    pub fn open(path: &Path, address: &str) -> Result<Self> {
        Self::open_with(path, Beside::default(), address)
    }

    /// The same, with what is known beside the data.
    ///
    /// Errors: as [`View::open`].
    pub fn open_with(path: &Path, beside: Beside, address: &str) -> Result<Self> {
        let all = All::Data(Box::new(Opened::at(path)?));
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        Self::of(all, beside, name, address, false)
    }

    /// Listens to a running loader, and binds the address, with a token as [`View::open`] has it; of a loader that wants a token
    /// the pages have one of their own in any case.
    ///
    /// Errors: `Address` for an address that cannot be bound, `Loader` where none is heard.
    pub fn watch(client: Client, address: &str) -> Result<Self, Unseen> {
        let (name, is_guarded) = (client.address().to_owned(), client.has_token());
        let run = Run::attach(client).map_err(|why| Unseen::Loader(format!("no loader is heard at {name}: {why}")))?;
        Self::of(All::Run(run), Beside::default(), name, address, is_guarded).map_err(Unseen::Address)
    }

    fn of(all: All, beside: Beside, name: String, address: &str, is_guarded: bool) -> Result<Self> {
        let bound = Door::bind(address);
        let door = bound.map_err(|e| Error::config("addr", format!("cannot listen on {address}: {e}")))?;
        let guarded = is_guarded || !door.is_local();
        let token = guarded.then(|| format!("{:016x}{:016x}", fresh_root(), fresh_root()));
        let root = token.as_ref().map_or("/".to_owned(), |token| format!("/{token}/"));
        Ok(View { door, site: Site { root, token, name, all, beside, last: RefCell::default() } })
    }

    /// The address of the first page. It has the token, where there is one.
    pub fn url(&self) -> String {
        let address = self.door.address();
        let host = match address.ip().is_unspecified() {
            true => format!("127.0.0.1:{}", address.port()),
            false => address.to_string(),
        };
        format!("http://{host}{}", self.site.root)
    }

    /// Whether other machines reach it.
    pub fn is_open(&self) -> bool {
        !self.door.is_local()
    }

    /// Answers requests until `stop` is set.
    pub fn serve(self, stop: &AtomicBool) {
        self.door.serve(stop, &self.site);
    }
}

impl Host for Site {
    type Late = ();

    fn reply(&self, head: &Head) -> Reply<()> {
        let mut answer = match self.checked(head).and_then(|asked| self.answer(&asked)) {
            Ok(answer) => answer,
            Err(fault) => self.refused(&fault, head),
        };
        let mut lines = vec![
            ("Content-Security-Policy", POLICY.to_owned()),
            ("X-Content-Type-Options", "nosniff".to_owned()),
            ("X-Frame-Options", "DENY".to_owned()),
            ("Referrer-Policy", "no-referrer".to_owned()),
            ("Cross-Origin-Resource-Policy", "same-origin".to_owned()),
        ];
        lines.append(&mut answer.lines);
        if lines.iter().all(|(name, _)| *name != "Cache-Control") {
            lines.push(("Cache-Control", "no-store".to_owned()));
        }
        Reply::Now(Answer { lines, ..answer })
    }

    fn late(&self, (): ()) -> Answer {
        Answer::plain(500, "no answer is held back")
    }
}

impl Site {
    /// What a request asks for, without the token. The sender is checked first.
    fn checked(&self, head: &Head) -> pages::Result<Asked> {
        if self.token.is_none() && !head.hosts.iter().all(|host| is_local(host)) {
            return Err(Fault::new(403, "ask for 127.0.0.1 or localhost"));
        }
        let foreign = head.origins.iter().any(|site| !["same-origin", "none"].contains(&site.trim()));
        if foreign && !(head.uses.len() == 1 && head.uses[0].trim() == "document") {
            return Err(Fault::new(403, "the page of another site asks for this; open the address itself"));
        }
        let mut asked = Asked::parse(&head.target).map_err(|e| Fault::new(400, e))?;
        if let Some(token) = &self.token {
            let given = asked.path.first().is_some_and(|given| is_same(given, token));
            if !given {
                return Err(Fault::new(403, "open the address that `gristmill view` printed: it has a token"));
            }
            asked.path.remove(0);
        }
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            return Err(Fault::new(405, "only GET is answered"));
        }
        Ok(asked)
    }

    fn answer(&self, asked: &Asked) -> pages::Result<Answer> {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        let missing = || Fault::new(404, "there is no such page; the first page leads to all");
        if let ["assets", name] = path[..] {
            let (kind, text) = asset(name).ok_or_else(missing)?;
            let lines = vec![("Cache-Control", "private, max-age=300".to_owned())];
            return Ok(Answer { code: 200, kind, lines, body: text.as_bytes().to_vec() });
        }
        let all = match &self.all {
            All::Run(run) => return run.answer(&self.root, &path, asked),
            All::Data(all) => all,
        };
        let way = vec![(self.name.clone(), self.root.clone())];
        if let ["file", number, rest @ ..] = &path[..] {
            let place: usize = number.parse().map_err(|_| missing())?;
            let file = all.shelf.item(place).ok_or_else(missing)?;
            let opened = self.item(place, file)?;
            let base = format!("{}file/{place}/", self.root);
            let name = Path::new(file).file_name().map_or(file.to_owned(), |name| name.to_string_lossy().into_owned());
            let way = [way, vec![(name, base.clone())]].concat();
            return self.room(&opened, base, way).answer(rest, asked);
        }
        self.room(all, self.root.clone(), way).answer(&path, asked)
    }

    /// The pages of the open pack, file or folder, below the address `base`.
    fn room<'a>(&'a self, opened: &'a Opened, base: String, way: Vec<(String, String)>) -> Room<'a> {
        let Opened { shelf, database, search } = opened;
        Room { root: &self.root, base, way, shelf, database: database.as_ref(), search, beside: &self.beside }
    }

    /// A pack or file of the folder, open.
    fn item(&self, place: usize, path: &str) -> pages::Result<Rc<Opened>> {
        if let Some((_, opened)) = self.last.borrow().as_ref().filter(|(there, _)| *there == place) {
            return Ok(Rc::clone(opened));
        }
        let opened = Rc::new(Opened::at(Path::new(path))?);
        *self.last.borrow_mut() = Some((place, Rc::clone(&opened)));
        Ok(opened)
    }

    /// A page that says what is wrong. Those who were not let in learn nothing of what is here.
    fn refused(&self, fault: &Fault, head: &Head) -> Answer {
        if matches!(fault.code, 403 | 405) {
            return Answer::plain(fault.code, &fault.text);
        }
        let path = head.target.split('?').next().unwrap_or_default();
        if path.ends_with(".json") {
            let body = serde_json::json!({ "error": fault.text }).to_string().into_bytes();
            return Answer { code: fault.code, kind: "application/json", lines: Vec::new(), body };
        }
        let way = [(self.name.clone(), self.root.clone())];
        let body = format!("<h1>No page here</h1><p class=\"wrong\" role=\"alert\">{}</p>", escape(&fault.text));
        let frame = html::Frame { root: &self.root, title: "No page here", way: &way, again: None };
        pages::html_answer(fault.code, html::page(&frame, &body))
    }
}

/// Compares a guess with the token; how long that takes says nothing of how far it was right.
fn is_same(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == token.len() && differing == 0
}

#[cfg(test)]
mod tests;
