//! Words -> the address of a loader and the token for it. Sends nothing itself.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// The port that stands for none.
const PORT: u16 = 9100;

/// Where the token may be, besides a file.
const VARIABLE: &str = "GRISTMILL_TOKEN";

/// `PORT`, `HOST`, `HOST:PORT` or `http://HOST:PORT/…` -> `HOST:PORT`.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let expected = || format!("expected HOST:PORT, such as 127.0.0.1:{PORT}, not `{text}`");
    if text.starts_with("https://") {
        return Err("a loader speaks plain HTTP; for other machines use a tunnel, such as ssh -L".to_owned());
    }
    let place = text.strip_prefix("http://").map_or(text, |rest| rest.split('/').next().unwrap_or(""));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%".contains(c);
    if place.is_empty() || !place.chars().all(plain) {
        return Err(expected());
    }
    if place.bytes().all(|byte| byte.is_ascii_digit()) {
        return place.parse::<u16>().map(|port| format!("127.0.0.1:{port}")).map_err(|_| expected());
    }
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().map_err(|_| expected())?)
        }
        Some(_) if !place.starts_with('[') => return Err(format!("{}; write IPv6 as [ADDRESS]:PORT", expected())),
        _ => (place, PORT),
    };
    if host.is_empty() { Err(expected()) } else { Ok(format!("{host}:{port}")) }
}

/// The address of a loader, where a text is one and no path or URL of data: `PORT`, `HOST:PORT`, `http://HOST:PORT`, or that
/// of its pages. A file or folder of that name comes first.
pub(crate) fn of_loader(text: &str) -> Option<String> {
    let (place, page) = match text.strip_prefix("http://") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None if Path::new(text).exists() => return None,
        None => (text, ""),
    };
    let is_page = ["", "status", "metrics"].contains(&page);
    let port = place.rsplit_once(':').map_or(place, |(_, port)| port);
    let has_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_page && has_port).then(|| parse(place).ok()).flatten()
}

/// The token of a file, else of the environment, if there is one.
pub(crate) fn token(file: Option<&PathBuf>) -> Result<Option<String>> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())));
    let text = match file {
        Some(path) => Some(read(path)?),
        None => std::env::var(VARIABLE).ok(),
    };
    Ok(text.map(|text| text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (text, address) in [
            ("9100", "127.0.0.1:9100"),
            ("trainer", "trainer:9100"),
            ("10.0.0.7:81", "10.0.0.7:81"),
            ("[::1]:81", "[::1]:81"),
            ("[::1]", "[::1]:9100"),
            ("http://trainer:81", "trainer:81"),
            ("http://127.0.0.1:81/metrics", "127.0.0.1:81"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(address), "{text}");
        }
        for refused in ["", ":", ":81", "a:b", "a:70000", "99999", "::1", "a b:1", "a/b:1", "user@a:1", "http://"] {
            assert!(parse(refused).unwrap_err().contains("HOST:PORT"), "{refused}");
        }
        assert!(parse("https://a:1").unwrap_err().contains("ssh"));
    }

    #[test]
    fn what_is_data_is_no_loader() {
        for (text, address) in [
            ("9100", Some("127.0.0.1:9100")),
            ("trainer:81", Some("trainer:81")),
            ("[::1]:81", Some("[::1]:81")),
            ("http://127.0.0.1:81", Some("127.0.0.1:81")),
            ("http://127.0.0.1:81/", Some("127.0.0.1:81")),
            ("http://127.0.0.1:81/status", Some("127.0.0.1:81")),
            ("http://127.0.0.1:81/games.tar", None),
            ("http://trainer/", None),
            ("https://trainer:81", None),
            ("s3://bucket:81", None),
            ("packed", None),
            ("games/a:1", None),
            ("", None),
            ("src", None),
        ] {
            assert_eq!(of_loader(text).as_deref(), address, "{text}");
        }
    }

    #[test]
    fn a_token_comes_from_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789abcdef\n").unwrap();
        let path = file.path().to_owned();
        assert_eq!(token(Some(&path)).unwrap().as_deref(), Some("0123456789abcdef"));
        let Err(Failure::Failed(text)) = token(Some(&path.join("none"))) else { panic!() };
        assert!(text.contains("none"), "{text}");
    }
}
