//! The games of a pack as a table with a condition, and how their columns are spread. What SQL refuses stands on the page.

use std::fmt::Write;

use gristmill_engine::runtime::metrics::Clock;
use gristmill_engine::selection::Selection;
use gristmill_engine::sink::desk::Answer;
use gristmill_engine::sql::SqlValue;
use gristmill_format::error::plain;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Fault, Result, Room, html_answer, lower, page_of, pager};
use crate::database::{Ask, Database, Games, INNER, Spread, quoted, shown};
use crate::draw::bars;
use crate::html::{cut, escape, facts, grouped, number};
use crate::url::{Asked, query};

/// Games on one page, and the most that one JSON document has.
const EACH: u64 = 50;
const MOST: u64 = 1000;

/// Seconds after which the spreads that are left are not counted.
const BUDGET: f64 = 4.0;

/// What is on top of each page of a pack; `here` is the name of this one.
pub(super) fn head(room: &Room<'_>, pack: &Selection, here: &str) -> String {
    let mut out = format!("<h1>{}</h1>", escape(room.name()));
    out.push_str(&facts(&[
        ("Pack of", escape(&room.shelf.format())),
        (room.games(), grouped(pack.games().len() as u64)),
        ("Frames", grouped(pack.rows().len())),
        ("Path", format!("<code>{}</code>", escape(&plain(&room.shelf.path().display().to_string())))),
    ]));
    out.push_str("<nav class=\"tabs\" aria-label=\"Of this pack\">");
    for (title, to) in [
        (room.games(), ""),
        ("Columns", "columns"),
        ("Marks", "marks"),
        ("Duplicates", "duplicates"),
        ("Left out", "left-out"),
        ("Origin", "origin"),
    ] {
        let current = if title == here { " aria-current=\"page\"" } else { "" };
        let _ = write!(out, "<a href=\"{}{to}\"{current}>{title}</a>", room.base);
    }
    out + "</nav>"
}

/// The form of the condition, with what is wrong with it.
fn condition(room: &Room<'_>, page: &str, asked: &Asked, columns: &[(String, String)], wrong: Option<&str>) -> String {
    let text = asked.get("where");
    let mut out = format!(
        "<form class=\"ask\" method=\"get\" action=\"{page}\" role=\"search\"><label for=\"where\">{} where</label>\
         <input id=\"where\" name=\"where\" value=\"{}\" spellcheck=\"false\" autocomplete=\"off\" autocapitalize=\"off\" \
         list=\"columns\" placeholder=\"a condition in SQL, such as id &lt; 100\"{}>",
        room.games(),
        escape(text),
        if wrong.is_some() { " aria-invalid=\"true\" aria-describedby=\"wrong\"" } else { "" }
    );
    for name in ["sort", "way"] {
        if !asked.get(name).is_empty() {
            let _ = write!(out, "<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escape(asked.get(name)));
        }
    }
    out.push_str("<datalist id=\"columns\">");
    for (name, _) in columns {
        let _ = write!(out, "<option value=\"{}\">", escape(name));
    }
    out.push_str("</datalist><button>Show</button>");
    if !text.is_empty() {
        let _ = write!(out, "<a class=\"clear\" href=\"{page}\">Clear</a>");
    }
    out.push_str("</form>");
    if let Some(wrong) = wrong {
        let _ = write!(out, "<p class=\"wrong\" id=\"wrong\" role=\"alert\">{}</p>", escape(wrong));
    }
    out.push_str("<details class=\"names\"><summary>Columns for conditions</summary><ul>");
    for (name, kind) in columns {
        let _ = write!(out, "<li><code data-word>{}</code> <small>{}</small></li>", escape(name), escape(kind));
    }
    out + "</ul></details>"
}

/// What was chosen of the games, which their pages keep.
pub(super) fn chosen(asked: &Asked) -> [(&'static str, &str); 3] {
    ["where", "sort", "way"].map(|name| (name, asked.get(name)))
}

pub(super) fn ask<'a>(asked: &'a Asked, most: u64, first: u64) -> Ask<'a> {
    let descending = asked.get("way") == "down";
    Ask { condition: asked.get("where"), sort: asked.get("sort"), descending, first, most }
}

/// The table of games.
pub(super) fn games(room: &Room<'_>, pack: &Selection, database: &Database, asked: &Asked) -> String {
    let page = page_of(asked);
    let found = database.games(&ask(asked, EACH, page * EACH));
    let mut out = head(room, pack, room.games());
    out.push_str(&condition(room, &room.base, asked, &database.columns, found.as_ref().err().map(String::as_str)));
    let Ok(found) = found else { return out };
    let link = |page: u64| {
        let (text, [condition, sort, way]) = (page.to_string(), ["where", "sort", "way"].map(|name| asked.get(name)));
        let page = if page == 0 { "" } else { text.as_str() };
        format!("{}{}", room.base, query(&[("where", condition), ("sort", sort), ("way", way), ("page", page)]))
    };
    let pages = pager(page, EACH, found.total, &link);
    if found.rows.is_empty() {
        return out + &pages + "<p class=\"none\">Nothing here.</p>";
    }
    out.push_str(&pages);
    out.push_str(&table(room, database, asked, &found));
    out + &lower(&pages)
}

fn table(room: &Room<'_>, database: &Database, asked: &Asked, found: &Games) -> String {
    let mut out = String::from(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Games\"><table class=\"games\"><thead><tr>",
    );
    // Columns without a value on this page are named below it.
    let is_told = |i: usize| found.rows.iter().any(|row| row.get(i).is_some_and(|value| *value != SqlValue::Null));
    let told: Vec<usize> = (0..database.columns.len()).filter(|i| is_told(*i)).collect();
    for i in &told {
        let name = &database.columns[*i].0;
        let sorted = asked.get("sort") == name;
        let down = sorted && asked.get("way") != "down";
        let (aria, sign) = match (sorted, asked.get("way") == "down") {
            (true, true) => (" aria-sort=\"descending\"", " ↓"),
            (true, false) => (" aria-sort=\"ascending\"", " ↑"),
            _ => ("", ""),
        };
        let to = query(&[("where", asked.get("where")), ("sort", name), ("way", if down { "down" } else { "" })]);
        let _ = write!(
            out,
            "<th scope=\"col\"{aria}><a href=\"{}{}\">{}{sign}</a></th>",
            room.base,
            escape(&to),
            escape(name)
        );
    }
    out.push_str("</tr></thead><tbody>");
    for row in &found.rows {
        out.push_str("<tr>");
        for i in &told {
            let value = &row[*i];
            if database.columns[*i].0 == "id" {
                let (id, chosen) = (escape(&shown(value)), escape(&query(&chosen(asked))));
                let _ = write!(out, "<th scope=\"row\"><a href=\"{}game/{id}{chosen}\">{id}</a></th>", room.base);
                continue;
            }
            let _ = match value {
                SqlValue::Integer(_) => write!(out, "<td class=\"n\">{}</td>", shown(value).replace('-', "−")),
                SqlValue::Real(real) => write!(out, "<td class=\"n\">{}</td>", number(*real)),
                SqlValue::Null => write!(out, "<td class=\"null\">·</td>"),
                SqlValue::Blob(_) => write!(out, "<td><code class=\"blob\">{}</code></td>", cut(&shown(value))),
                SqlValue::Text(_) => write!(out, "<td>{}</td>", cut(&shown(value))),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    let silent: Vec<String> =
        (0..database.columns.len()).filter(|i| !told.contains(i)).map(|i| escape(&database.columns[i].0)).collect();
    if !silent.is_empty() {
        let _ = write!(out, "<p class=\"note\">Without a value for these games: {}.</p>", silent.join(", "));
    }
    out
}

/// A page of games as data: their columns by name, and how many there are.
pub(super) fn games_as_data(database: &Database, asked: &Asked) -> Result<impl Serialize + use<>> {
    let most = match asked.number("most") {
        0 => EACH,
        most => most.min(MOST),
    };
    let found = database.games(&ask(asked, most, asked.number("first"))).map_err(|e| Fault::new(400, e))?;
    let rows = found.rows.iter().map(|row| {
        let pairs = database.columns.iter().zip(row).map(|((name, _), value)| {
            let value = match value {
                SqlValue::Null => Value::Null,
                SqlValue::Integer(number) => json!(number),
                SqlValue::Real(number) => json!(number),
                value => json!(shown(value)),
            };
            (name.clone(), value)
        });
        Value::Object(pairs.collect::<Map<_, _>>())
    });
    Ok(json!({ "total": found.total, "games": rows.collect::<Vec<_>>() }))
}

/// The columns that have a spread worth a picture: not the number of a game, and no blobs.
fn spreads<'a>(
    database: &'a Database,
    asked: &'a Asked,
) -> impl Iterator<Item = (&'a str, Option<Result<Spread, String>>)> {
    let clock = Clock::default();
    let named = database.columns.iter().filter(|(name, kind)| {
        let own = asked.get("column");
        if own.is_empty() {
            name != "id" && !INNER.contains(&name.as_str()) && !kind.eq_ignore_ascii_case("blob")
        } else {
            name == own
        }
    });
    named.map(move |(name, _)| {
        let counted = (clock.seconds() < BUDGET).then(|| database.spread(name, asked.get("where")));
        (name.as_str(), counted)
    })
}

/// How the values of each column are spread.
pub(super) fn columns(room: &Room<'_>, pack: &Selection, database: &Database, asked: &Asked) -> String {
    let page = format!("{}columns", room.base);
    // A condition is tried once before it is counted by, so that its fault stands once on the page.
    let wrong = database.games(&ask(asked, 0, 0)).err();
    let mut out = head(room, pack, "Columns") + &condition(room, &page, asked, &database.columns, wrong.as_deref());
    if wrong.is_some() {
        return out;
    }
    out.push_str("<div class=\"spreads\">");
    for (name, spread) in spreads(database, asked) {
        let shown = match &spread {
            Some(Ok(spread)) if spread.known == 0 => continue,
            Some(Ok(spread)) => bars::spread(spread, &room.base, asked.get("where")),
            Some(Err(wrong)) => format!("<p class=\"wrong\">{}</p>", escape(wrong)),
            None => {
                let to = query(&[("where", asked.get("where")), ("column", name)]);
                format!("<p class=\"none\"><a href=\"{page}{}\">Count this column</a></p>", escape(&to))
            }
        };
        let _ = write!(out, "<section class=\"card\"><h2>{}</h2>{shown}", escape(name));
        if let Some(Ok(Spread { range: Some([least, most, _]), bars, .. })) = &spread
            && bars.len() > bars::FEW
        {
            out.push_str(&range(&page, name, asked, [*least, *most]));
        }
        if let Some(Ok(Spread { unknown, others, .. })) = spread.filter(|_| !shown.contains("of its own")) {
            let parts = [(unknown, "without a value"), (others, "with other values")];
            let parts: Vec<String> =
                parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n))).collect();
            if !parts.is_empty() {
                let _ = write!(out, "<p class=\"note\">{}</p>", parts.join(", "));
            }
        }
        out.push_str("</section>");
    }
    out + "</div>"
}

/// The form of a range of a column: what a brush over the bars fills in.
fn range(page: &str, name: &str, asked: &Asked, [least, most]: [f64; 2]) -> String {
    let name = escape(name);
    format!(
        "<form class=\"range\" method=\"get\" action=\"{page}\" data-range><input type=\"hidden\" name=\"where\" value=\"{}\">\
         <input type=\"hidden\" name=\"of\" value=\"{name}\"><input name=\"from\" inputmode=\"decimal\" aria-label=\"{name} from\" \
         value=\"{least}\"> <span>to</span> <input name=\"to\" inputmode=\"decimal\" aria-label=\"{name} to\" value=\"{most}\"> \
         <button>Keep</button></form>",
        escape(asked.get("where"))
    )
}

/// The way to the columns of the games in a range, that a request names.
pub(super) fn kept(room: &Room<'_>, database: &Database, asked: &Asked) -> Option<Result<Answer>> {
    let of = asked.get("of");
    if of.is_empty() {
        return None;
    }
    let number = |name: &str| asked.get(name).trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let known = database.columns.iter().any(|(name, _)| name == of);
    let (true, Some(from), Some(to)) = (known, number("from"), number("to")) else {
        return Some(Err(Fault::new(
            400,
            format!(
                "expected a column and two numbers, not `{of}` from `{}` to `{}`",
                asked.get("from"),
                asked.get("to")
            ),
        )));
    };
    let name = quoted(of);
    let own = format!("{name} >= {from} AND {name} <= {to}");
    let condition = asked.get("where");
    let both = if condition.trim().is_empty() { own } else { format!("({condition}) AND {own}") };
    let to = format!("{}columns{}", room.base, query(&[("where", &both)]));
    Some(Ok(Answer { code: 303, lines: vec![("Location", to)], ..html_answer(303, String::new()) }))
}

/// The spreads as data, by column.
pub(super) fn columns_as_data(database: &Database, asked: &Asked) -> Result<impl Serialize + use<>> {
    let mut found = Map::new();
    for (name, spread) in spreads(database, asked) {
        let spread = spread.transpose().map_err(|e| Fault::new(400, e))?;
        found.insert(name.to_owned(), serde_json::to_value(spread).map_err(|e| Fault::new(500, e.to_string()))?);
    }
    Ok(Value::Object(found))
}
