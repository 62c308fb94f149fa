//! What lies beside the games of a pack: its marks, what was left out of it, and how it came to be. Changes none of it.

use std::fmt::Write;

use gristmill_engine::chunks::is_pack;
use gristmill_engine::chunks::manifest::Manifest as ChunkManifest;
use gristmill_engine::lineage::Step;
use gristmill_engine::marks::{self, Fit};
use gristmill_engine::pack::manifest::{Manifest, Skipped};
use gristmill_engine::selection::Selection;
use gristmill_jobs::inspect;

use super::pack::head;
use super::{Result, Room, lower, page_of, pager};
use crate::html::{cut, escape, grouped};
use crate::url::{Asked, query};

/// Rows on one page, and the steps of a lineage that are shown.
const EACH: u64 = 100;
const STEPS: usize = 200;

/// The marks, and how many frames each has.
pub(super) fn marks(room: &Room<'_>, pack: &Selection) -> Result<String> {
    let mut out = head(room, pack, "Marks");
    let listed = marks::list(&**pack.pack())?;
    if listed.is_empty() {
        let advice = "No marks. <code>gristmill mark PACK NAME --rule \"…\"</code> makes them.";
        return Ok(out + "<p class=\"none\">" + advice + "</p>");
    }
    out.push_str(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Marks\"><table><thead><tr><th scope=\"col\">mark</th>\
         <th scope=\"col\">frames</th><th scope=\"col\">share</th><th scope=\"col\">made by</th><th scope=\"col\">rule</th>\
         <th scope=\"col\">state</th></tr></thead><tbody>",
    );
    for mark in listed {
        let share = mark.marked as f64 / (mark.frames.max(1) as f64) * 100.0;
        let state = match (&mark.fault, mark.fit) {
            (Some(fault), _) => format!("<span class=\"wrong\">{}</span>", cut(fault)),
            (None, Fit::Fits) => "of all frames".to_owned(),
            (None, Fit::Grown) => format!("of the first {} frames: the pack has grown", grouped(mark.frames)),
            (None, _) => "<span class=\"wrong\">of another pack</span>".to_owned(),
        };
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"share\">\
             <svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"room\" width=\"100\" \
             height=\"8\"/><rect class=\"bar\" width=\"{share:.2}\" height=\"8\"/></svg> {share:.1} %</td><td>{}</td>\
             <td><code>{}</code></td><td>{state}</td></tr>",
            escape(&mark.name),
            grouped(mark.marked),
            escape(mark.origin),
            cut(&mark.rule)
        );
    }
    Ok(out + "</tbody></table></div>")
}

/// What was found where the pack was made, and is not in it.
pub(super) fn left_out(room: &Room<'_>, pack: &Selection, asked: &Asked) -> Result<String> {
    let folder = room.shelf.path();
    let skipped = match is_pack(folder).map_err(gristmill_engine::Error::from)? {
        true => ChunkManifest::read(folder)?.skipped,
        false => Manifest::read(folder)?.map(|manifest| manifest.skipped).unwrap_or_default(),
    };
    let mut out = head(room, pack, "Left out");
    if skipped.is_empty() {
        return Ok(out + "<p class=\"none\">Nothing was left out of this pack.</p>");
    }
    let (page, total) = (page_of(asked), skipped.len() as u64);
    let link = |page: u64| format!("{}left-out{}", room.base, query(&[("page", &page.to_string())]));
    let pages = if total > EACH { pager(page, EACH, total, &link) } else { String::new() };
    let _ = write!(
        out,
        "<p>Files or games that were found and are not in the pack: {}.</p>{pages}<div class=\"wide\" tabindex=\"0\" \
         role=\"region\" aria-label=\"Left out\"><table><thead><tr><th scope=\"col\">file</th><th scope=\"col\">kind</th>\
         <th scope=\"col\">place</th><th scope=\"col\">reason</th></tr></thead><tbody>",
        grouped(total)
    );
    let first = usize::try_from(page * EACH).unwrap_or(usize::MAX);
    for Skipped { file, kind, line, column, offset, detail } in skipped.iter().skip(first).take(EACH as usize) {
        let place = match (line, offset) {
            (Some(line), _) => format!("line {line}, column {}", column.unwrap_or_default()),
            (None, Some(offset)) => format!("byte {offset}"),
            (None, None) => String::new(),
        };
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td><code>{}</code></td><td>{place}</td><td>{}</td></tr>",
            cut(file),
            escape(kind),
            cut(detail)
        );
    }
    Ok(out + "</tbody></table></div>" + &lower(&pages))
}

/// How the pack came to be.
pub(super) fn lineage(room: &Room<'_>, pack: &Selection) -> String {
    let mut out = head(room, pack, "Origin");
    match inspect::lineage(room.shelf.path()) {
        Ok(steps) => {
            let mut left = STEPS;
            list(&steps, &mut left, &mut out);
        }
        Err(e) => {
            let _ = write!(out, "<p class=\"none\">{}</p>", escape(&e.to_string()));
        }
    }
    out
}

/// Jobs in their order, with those of what went into each; `left` bounds them all.
fn list(steps: &[Step], left: &mut usize, out: &mut String) {
    out.push_str("<ol class=\"lineage\">");
    for step in steps {
        let Some(fewer) = left.checked_sub(1) else { break };
        *left = fewer;
        let _ = write!(out, "<li><strong>{}</strong> <small>{}</small>", escape(&step.job), escape(&step.writer));
        if let Some(sources) = &step.sources {
            let _ = write!(out, "<p>{} games of <code>{}</code></p>", grouped(sources.games), cut(&sources.name));
        }
        for (name, value) in &step.options {
            let _ = write!(out, "<div><code>{} = {}</code></div>", escape(name), cut(&value.to_string()));
        }
        step.from.iter().for_each(|steps| list(steps, left, out));
        out.push_str("</li>");
    }
    out.push_str("</ol>");
}
