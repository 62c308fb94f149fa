//! Who is let in, what is served, and that it is nothing else: of a pack, of a file and of a folder.

use std::path::PathBuf;

use gristmill_engine::chunks::metadata::Games;
use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs::pack::{PackOptions, pack};

use super::*;

/// A folder with ten games in it, and a pack of them beside it.
fn made() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (games, packed) = (folder.path().join("games"), folder.path().join("<packed>"));
    let options = ChessOptions {
        folder: games.clone(),
        games: 10,
        first: 1,
        seed: 3,
        plies_max: 30,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
    std::fs::write(games.join("training.<b>.gz"), "no game").unwrap();
    pack(&PackOptions::new(&games, &packed), &mut |_| {}).unwrap();
    (folder, games, packed)
}

fn head(target: &str) -> Head {
    Head { method: "GET".into(), target: target.into(), hosts: vec!["localhost:1".into()], ..Head::default() }
}

fn reply(site: &Site, head: &Head) -> Answer {
    let Reply::Now(answer) = site.reply(head) else { panic!("nothing is held back") };
    answer
}

fn get(site: &Site, target: &str) -> (u16, String) {
    let answer = reply(site, &head(target));
    (answer.code, String::from_utf8_lossy(&answer.body).into_owned())
}

fn open(path: &Path) -> Site {
    View::open(path, "127.0.0.1:0").unwrap().site
}

#[test]
fn a_pack_has_its_pages() {
    let (_folder, _, packed) = made();
    let site = open(&packed);
    for (target, words) in [
        ("/", &["10", "training.1.gz", "href=\"/game/0\"", "&lt;packed&gt;"][..]),
        ("/?where=id+%3C+3&sort=frames&way=down", &["1–3 of 3", "aria-sort=\"descending\""]),
        ("/?where=nought+%3C+3", &["no such column: nought", "role=\"alert\""]),
        ("/columns", &["<h2>frames</h2>", "<rect class=\"bar\""]),
        ("/columns?where=oops", &["no such column: oops"]),
        ("/marks", &["No marks"]),
        ("/duplicates", &["Look for duplicates"]),
        ("/left-out", &["training.&lt;b&gt;.gz", "unknown_version"]),
        ("/origin", &["<strong>pack</strong>"]),
        ("/game/2?frame=3", &["<svg class=\"board\"", "data-frame=\"3\"", "piece-k", "class=\"line s0\"", "aria-live"]),
        ("/game/2/frame/3", &["id=\"frame\"", "White: king"]),
        ("/game/2/frame/3.json", &["\"fen\":"]),
        ("/game/2.json", &["\"curves\":[{", "\"title\":\"Value for White\""]),
        ("/games.json?first=8", &["\"total\":10", "\"id\":9"]),
        ("/columns.json?column=frames", &["\"known\":10"]),
        ("/assets/view.js", &["replaceState"]),
        ("/assets/view.css", &["prefers-color-scheme"]),
    ] {
        let (code, text) = get(&site, target);
        assert_eq!(code, 200, "{target}: {text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{target}: no {word} in {text}"));
        assert!(!text.contains("<b>") && !text.contains(" style=") && !text.contains("<packed>"), "{target}: {text}");
    }
    assert_eq!(get(&site, "/game/2?frame=99999999").0, 200, "the last frame");
}

#[test]
fn a_folder_and_a_file_are_shown_game_by_game() {
    let (_folder, games, _) = made();
    let site = open(&games);
    let (_, text) = get(&site, "/");
    assert!(text.contains("training.&lt;b&gt;.gz") && text.contains("href=\"/file/1/\""), "{text}");
    assert!(get(&site, "/file/1/").1.contains("/file/1/game/0"));
    let (code, text) = get(&site, "/file/1/game/0?frame=2");
    assert!(code == 200 && text.contains("<svg class=\"board\"") && text.contains("data-frame=\"2\""), "{text}");
    for target in ["/file/99/", "/file/x/", "/file/../", "/file/1/game/1", "/file/1/file/1/", "/columns", "/game/0"] {
        assert_eq!(get(&site, target).0, 404, "{target}");
    }
    let bad = (0..11).map(|i| get(&site, &format!("/file/{i}/game/0"))).filter(|(code, _)| *code == 500);
    let bad: Vec<String> = bad.map(|(_, text)| text).collect();
    assert!(bad.len() == 1 && bad[0].contains("training.&lt;b&gt;.gz"), "one file is no game: {bad:?}");
    let site = open(&games.join("training.3.gz"));
    assert!(get(&site, "/").1.contains("href=\"/game/0\"") && get(&site, "/game/0").1.contains("<svg class=\"board\""));
}

#[test]
fn a_folder_of_packs_and_files_leads_to_all_of_them() {
    let (folder, _, packed) = made();
    std::fs::write(folder.path().join("notes.txt"), "no data").unwrap();
    std::fs::create_dir(packed.join("marks")).unwrap();
    std::fs::write(packed.join("marks/late.mark"), "no mark").unwrap();
    let site = open(folder.path());
    let (_, text) = get(&site, "/");
    // The pack is one line, first; its eleven files and the mark are none.
    assert!(text.contains("<a href=\"/file/0/\">&lt;packed&gt;</a> <small>pack</small>"), "{text}");
    assert!(text.contains("notes.txt <small>not data</small>") && !text.contains("metadata.db"), "{text}");
    assert_eq!(text.matches("<li value=").count(), 1 + 11 + 1, "{text}");
    assert!(get(&site, "/file/0/?where=id+%3C+3").1.contains("1–3 of 3"));
    assert!(get(&site, "/file/0/columns").1.contains("href=\"/file/0/marks\""));
    assert!(get(&site, "/file/0/game/2?frame=3").1.contains("href=\"/file/0/game/3\""));
    assert!(get(&site, "/file/0/marks").1.contains("late"));
    assert!(get(&site, "/file/3/game/0").1.contains("<svg class=\"board\""));
}

/// Requests made of parts that belong there and parts that do not: each gets an answer, and the next one, too.
#[test]
fn no_request_ends_the_serving() {
    let (_folder, games, packed) = made();
    let parts = [
        "",
        "game",
        "file",
        "frame",
        "picture",
        "columns",
        "games.json",
        "marks",
        "0",
        "1",
        "9",
        "-1",
        "18446744073709551615",
        "18446744073709551616",
        "1.5",
        "3.json",
        "x.png",
        "assets",
        "view.css",
        "..",
        "%00",
        "%2f",
        "ü",
        "'",
        "\"",
    ];
    let queries = [
        "",
        "where=id",
        "where=1%3B",
        "where=%27",
        "where=x%27%00",
        "where=1/0",
        "where=abs(-9223372036854775808)",
        "sort=id&way=down",
        "page=18446744073709551615",
        "page=1099511627776",
        "frame=18446744073709551615",
        "first=18446744073709551615&most=18446744073709551615",
        "column=id",
        "column=%22",
        "where=--",
        "where=/*",
        "where=?1",
        "where=:a",
        "where=id+%3C+(SELECT+max(id)+FROM+games)",
    ];
    for site in [open(&packed), open(&games)] {
        let mut state = 7u64;
        for _ in 0..3000 {
            let mut draw = |among: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % among
            };
            let path: Vec<&str> = (0..draw(6)).map(|_| parts[draw(parts.len())]).collect();
            let target = format!("/{}?{}", path.join("/"), queries[draw(queries.len())]);
            let (code, _) = get(&site, &target);
            assert!([200, 400, 404, 500].contains(&code), "{target}: {code}");
        }
        assert_eq!(get(&site, "/").0, 200);
    }
}

#[test]
fn nothing_else_is_served() {
    let (_folder, _, packed) = made();
    let site = open(&packed);
    for target in [
        "/metadata.db",
        "/../games/training.1.gz",
        "/%2e%2e/games/training.1.gz",
        "/assets/../site.rs",
        "/assets/pieces.svg",
        "/game/10",
        "/game/-1",
        "/game/0x1",
        "/game/99999999999999999999999",
        "/game/1/frame/1000",
        "/game/1/picture/0/planes.png",
        "/game/1/picture/0/<b>",
        "/file/0/",
        "/<script>alert(1)</script>",
    ] {
        let (code, text) = get(&site, target);
        assert_eq!(code, 404, "{target}");
        assert!(!text.contains("<b>") && !text.contains("<script>"), "{text}");
    }
    for target in ["/%zz", "http://elsewhere/", "*"] {
        assert_eq!(get(&site, target).0, 400, "{target}");
    }
}

#[test]
fn only_this_machine_is_let_in_and_no_other_site() {
    let (_folder, _, packed) = made();
    let site = open(&packed);
    let asked = |change: &dyn Fn(&mut Head)| {
        let mut head = head("/");
        change(&mut head);
        reply(&site, &head).code
    };
    assert_eq!(asked(&|head| head.hosts = vec!["rebound.example".into()]), 403);
    assert_eq!(asked(&|head| head.hosts.push("rebound.example".into())), 403);
    assert_eq!(asked(&|head| head.method = "POST".into()), 405);
    assert_eq!(asked(&|head| head.origins = vec!["same-origin".into()]), 200);
    for site in ["cross-site", "same-site", "nonsense"] {
        assert_eq!(asked(&|head| head.origins = vec![site.into()]), 403, "{site}");
        let linked = |head: &mut Head| (head.origins, head.uses) = (vec![site.into()], vec!["document".into()]);
        assert_eq!(asked(&linked), 200, "a link that somebody follows");
        let framed = |head: &mut Head| (head.origins, head.uses) = (vec![site.into()], vec!["iframe".into()]);
        assert_eq!(asked(&framed), 403);
    }
    for target in ["/", "/nowhere", "/assets/view.js", "/games.json"] {
        let lines = reply(&site, &head(target)).lines;
        let policy = lines.iter().find(|(name, _)| *name == "Content-Security-Policy").map(|(_, value)| &**value);
        assert!(policy.unwrap().starts_with("default-src 'self';"), "{target}");
    }
}

#[test]
fn beyond_this_machine_the_address_has_a_token() {
    let (_folder, games, _) = made();
    let Ok(view) = View::open(&games, "0.0.0.0:0") else { return };
    let (site, url) = (&view.site, view.url());
    let token = site.token.clone().unwrap();
    assert!(view.is_open() && token.len() == 32 && url.ends_with(&format!("/{token}/")), "{url}");
    let mut elsewhere = head(&format!("/{token}/"));
    elsewhere.hosts = vec!["trainer.example:80".into()];
    assert_eq!(reply(site, &elsewhere).code, 200);
    assert!(get(site, &format!("/{token}")).1.contains(&format!("href=\"/{token}/file/0/\"")));
    let wrong = "0".repeat(32);
    for target in ["/", "/file/0/", "/assets/view.js", &format!("/{wrong}/"), &format!("/{}/", &token[..31])] {
        let (code, text) = get(site, target);
        assert!(code == 403 && !text.contains("games") && !text.contains(&token), "{target}: {text}");
    }
    let second = View::open(&games, "0.0.0.0:0").unwrap();
    assert_ne!(second.site.token, view.site.token);
}

#[test]
fn what_cannot_be_shown_is_refused_when_it_is_opened() {
    let (folder, _, packed) = made();
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "no data").unwrap();
    for path in [folder.path().join("none"), notes] {
        assert!(View::open(&path, "127.0.0.1:0").is_err(), "{}", path.display());
    }
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(View::open(&folder.path().join("empty"), "127.0.0.1:0").is_err());
    let taken = View::open(&packed, "127.0.0.1:0").unwrap();
    let address = taken.door.address().to_string();
    let refused = View::open(&packed, &address).map(|view| view.url()).unwrap_err();
    assert!(matches!(&refused, Error::Config { .. }) && refused.to_string().contains(&address), "{refused}");
    // Nothing was written beside the data.
    assert!(Games::open(&packed.join("metadata.db")).is_ok());
    let names: Vec<_> = std::fs::read_dir(&packed).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("-wal")), "{names:?}");
}
