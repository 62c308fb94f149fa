//! Table `extras` of a finished database: sidecars of a drop have the same words around other numbers, so that the words stand in the
//! table's definition, and a row has its numbers. `sidecar` is then a column that SQLite computes; it reads as it was written.

use std::collections::HashMap;
use std::fmt::Write as _;

use gristmill_runtime::error::Result;
use gristmill_runtime::sql::refusal;
use rusqlite::OptionalExtension;
use rusqlite::types::Value;

use super::MetadataWriter;

/// At most this many different texts around numbers are known to a table.
const FORMS: usize = 16;

/// At most this many are counted to find these.
const COUNTED: usize = 4096;

/// Numbers of one sidecar, at most, and bytes of the text around them.
const NUMBERS: usize = 100;
const WORDS: usize = 4096;

/// The end of `source`: the name of the log, which sidecars repeat.
const NAME: &str = "substr(source, length(rtrim(source, replace(source, '/', ''))) + 1)";

/// A sidecar that was taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Apart {
    /// A format of SQLite's `printf`, and for each of its values whether it is the name of the log.
    form: (String, Vec<bool>),
    /// The other values: an array of JSON.
    said: String,
}

impl Apart {
    /// Takes a sidecar apart. `None` if that would save nothing.
    fn of(sidecar: &str, source: &str) -> Option<Self> {
        let name = source.rsplit('/').next().filter(|name| !name.is_empty());
        let (mut format, mut names, mut said, mut rest) = (String::new(), Vec::new(), String::new(), sidecar);
        while let Some(next) = rest.chars().next() {
            if let Some(behind) = name.and_then(|name| rest.strip_prefix(name)) {
                (format, rest) = (format + "%s", behind);
                names.push(true);
                continue;
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                let (number, behind) = rest.split_at(digits);
                let is_plain = digits <= 18 && (number == "0" || !number.starts_with('0'));
                let comma = if said.is_empty() { "" } else { "," };
                let quote = if is_plain { "" } else { "\"" };
                let _ = write!(said, "{comma}{quote}{number}{quote}");
                (format, rest) = (format + "%s", behind);
                names.push(false);
                continue;
            }
            match next {
                '\0' => return None,
                '%' => format.push_str("%%"),
                next => format.push(next),
            }
            rest = &rest[next.len_utf8()..];
        }
        let fits = names.len() <= NUMBERS && format.len() <= WORDS;
        fits.then(|| Apart { form: (format, names), said: format!("[{said}]") })
    }
}

/// What SQLite computes of a form.
fn expression((format, names): &(String, Vec<bool>)) -> String {
    let mut out = format!("printf('{}'", format.replace('\'', "''"));
    let mut at = 0;
    for is_name in names {
        if *is_name {
            let _ = write!(out, ", {NAME}");
        } else {
            let _ = write!(out, ", json_extract(said, '$[{at}]')");
            at += 1;
        }
    }
    out + ")"
}

impl MetadataWriter {
    /// Writes table `extras` in fewer bytes if many sidecars have the same words. Readers get the same sidecars.
    ///
    /// Errors: `Format` with the path.
    pub fn shorten(&mut self) -> Result<()> {
        if self.is_short()? != Some(false) {
            return Ok(());
        }
        let forms = self.forms()?;
        if forms.is_empty() {
            return Ok(());
        }
        let of_form = |(i, form)| format!(" WHEN {i} THEN {}", expression(form));
        let computed: String = forms.iter().enumerate().map(of_form).collect();
        self.batch(&format!(
            "CREATE TABLE short (run_id INTEGER PRIMARY KEY, first_row BIGINT NOT NULL, source TEXT NOT NULL, \
             stored_bytes BIGINT NOT NULL, stored_xxh3 BLOB NOT NULL, form INT, said TEXT NOT NULL, \
             sidecar TEXT GENERATED ALWAYS AS (CASE form{computed} ELSE said END) VIRTUAL)"
        ))?;
        let mut next = i64::MIN;
        while let Some((id, source, sidecar)) = self.sidecar_from(next)? {
            let apart = Apart::of(&sidecar, &source);
            let form = apart.as_ref().and_then(|apart| forms.iter().position(|form| *form == apart.form));
            let said = apart.filter(|_| form.is_some()).map_or(sidecar, |apart| apart.said);
            let form = form.map_or(Value::Null, |form| Value::Integer(form as i64));
            let values = [Value::Integer(id), form, Value::Text(said)];
            self.put(
                "INSERT INTO short SELECT run_id, first_row, source, stored_bytes, stored_xxh3, ?2, ?3 FROM extras \
                 WHERE run_id = ?1",
                values,
            )?;
            let Some(behind) = id.checked_add(1) else { break };
            next = behind;
        }
        let other = "SELECT 1 FROM extras JOIN short USING (run_id) WHERE extras.sidecar IS NOT short.sidecar LIMIT 1";
        let differs = self.db.query_row(other, [], |_| Ok(())).optional().map_err(|e| refusal(&self.path, &e))?;
        match differs {
            None => self.batch("DROP TABLE extras; ALTER TABLE short RENAME TO extras"),
            Some(()) => self.batch("DROP TABLE short"),
        }
    }

    /// Writes table `extras` as it takes rows, where it is short.
    ///
    /// Errors: `Format` with the path.
    pub(super) fn lengthen(&mut self) -> Result<()> {
        if self.is_short()? != Some(true) {
            return Ok(());
        }
        self.batch(&format!(
            "ALTER TABLE extras RENAME TO short; {}; INSERT INTO extras SELECT run_id, first_row, source, stored_bytes, \
             stored_xxh3, sidecar FROM short; DROP TABLE short",
            super::EXTRAS.trim_end().trim_end_matches(';')
        ))
    }

    /// Whether table `extras` is short; none where there is none.
    fn is_short(&self) -> Result<Option<bool>> {
        let query = "SELECT max(hidden) FROM pragma_table_xinfo('extras')";
        let hidden = self.db.query_row(query, [], |row| row.get::<_, Option<i64>>(0));
        Ok(hidden.map_err(|e| refusal(&self.path, &e))?.map(|hidden| hidden > 0))
    }

    /// The forms that most sidecars have, each more than one.
    fn forms(&self) -> Result<Vec<(String, Vec<bool>)>> {
        let (mut counted, mut next) = (HashMap::new(), i64::MIN);
        while let Some((id, source, sidecar)) = self.sidecar_from(next)? {
            if let Some(Apart { form, .. }) = Apart::of(&sidecar, &source)
                && (counted.len() < COUNTED || counted.contains_key(&form))
            {
                counted.entry(form).or_insert((0u64, id)).0 += 1;
            }
            let Some(behind) = id.checked_add(1) else { break };
            next = behind;
        }
        let mut forms: Vec<_> = counted.into_iter().filter(|(_, (count, _))| *count > 1).collect();
        forms.sort_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
        Ok(forms.into_iter().take(FORMS).map(|(form, _)| form).collect())
    }

    /// The first run from `id` on that has a sidecar, its log, and that.
    fn sidecar_from(&self, id: i64) -> Result<Option<(i64, String, String)>> {
        let query = "SELECT run_id, source, sidecar FROM extras WHERE run_id >= ?1 ORDER BY run_id LIMIT 1";
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.db.prepare_cached(query)?;
            statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        };
        read().map_err(|e| refusal(&self.path, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::metadata::{Extra, Metadata};

    fn extra(run_id: u64, sidecar: String) -> Extra {
        let source = format!("a%b/depth06_seed{run_id:06}.jsonl.gz");
        Extra { run_id, first_row: run_id * 1000, source, stored_bytes: 9, stored_xxh3: 7 << 100, sidecar }
    }

    fn read(path: &std::path::Path) -> Vec<Extra> {
        let mut found = Vec::new();
        let metadata = Metadata::open(path).unwrap();
        metadata
            .extras(&mut |extra| {
                found.push(extra);
                Ok(())
            })
            .unwrap();
        found
    }

    #[test]
    fn sidecars_come_back_from_half_the_bytes_and_rows_are_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.db");
        let usual = |i: u64| {
            let name = format!("depth06_seed{i:06}.jsonl.gz");
            extra(
                i,
                format!(
                    "{{\"seed\": {i}, \"depth\": 6, \"steps_file\": \"{name}\", \"num_moves\": {}, \"score\": {}, \"it's\": \"100%ä\", \
                 \"max_tile\": 2048, \"max_rank\": 11, \"sum_tile\": 3244, \"seconds\": {}.0{i}}}",
                    1000 + i,
                    i * 7919,
                    i % 90
                ),
            )
        };
        let others = ["", "{}", "{\"one\": 007}", "no JSON \u{7f} %s", "{\"huge\": 99999999999999999999999}"];
        let mut all: Vec<Extra> = (0..600).map(usual).collect();
        all.extend(others.iter().zip(600..).map(|(sidecar, id)| extra(id, (*sidecar).to_owned())));
        let bytes = |shorten: bool| {
            let _ = std::fs::remove_file(&path);
            let mut writer = MetadataWriter::open(&path).unwrap();
            all.iter().for_each(|extra| writer.put_extra(extra).unwrap());
            if shorten {
                writer.shorten().unwrap();
                writer.shorten().unwrap();
            }
            writer.finish_anew().unwrap();
            std::fs::read(&path).unwrap()
        };
        let (plain, short) = (bytes(false), bytes(true));
        assert!(short.len() * 2 < plain.len(), "{} of {}", short.len(), plain.len());
        assert_eq!(read(&path), all);
        let metadata = Metadata::open(&path).unwrap();
        let query = "SELECT json_extract(sidecar, '$.score') FROM extras WHERE run_id = 5";
        assert_eq!(metadata.connection().query_row(query, [], |row| row.get::<_, i64>(0)).unwrap(), 5 * 7919);
        // As one job that is killed after it was done, and resumed.
        let mut again = MetadataWriter::open(&path).unwrap();
        again.shorten().unwrap();
        again.finish_anew().unwrap();
        assert!(std::fs::read(&path).unwrap() == short);
        let mut more = MetadataWriter::open(&path).unwrap();
        more.put_extra(&usual(605)).unwrap();
        more.shorten().unwrap();
        more.finish().unwrap();
        all.push(usual(605));
        assert_eq!(read(&path), all);
    }

    #[test]
    fn sidecars_that_are_not_alike_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.db");
        let mut writer = MetadataWriter::open(&path).unwrap();
        writer.shorten().unwrap();
        let all = ["{\"a\": 1}", "{\"b\": 1}", "\0"].iter().zip(0..).map(|(text, id)| extra(id, (*text).to_owned()));
        let all: Vec<Extra> = all.collect();
        all.iter().for_each(|extra| writer.put_extra(extra).unwrap());
        writer.shorten().unwrap();
        writer.finish().unwrap();
        assert_eq!(read(&path), all);
        let columns = gristmill_runtime::sql::columns(Metadata::open(&path).unwrap().connection(), "extras").unwrap();
        assert_eq!(columns.last().map(String::as_str), Some("sidecar"));
    }
}
