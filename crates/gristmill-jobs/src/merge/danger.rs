//! Folders of packs and of an output -> a refusal where writing one would hurt another.
//! Compares what paths lead to, not how they are written.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack;
use gristmill_engine::store::pack_of;
use gristmill_engine::store::place::is_local;

/// Refuses an output that is an input or lies in one, and packs that are given twice.
///
/// Errors: `Config` naming the option; `Path` for an input that does not exist.
pub(crate) fn check(inputs: &[PathBuf], output: &Path) -> Result<()> {
    let real = |path: &Path| {
        let path = pack_of(path);
        if is_local(&path) { path.canonicalize().map_err(|e| Error::path(&*path, &e)) } else { Ok(path.into_owned()) }
    };
    let target = future(output).map_err(|e| Error::path(output, &e))?;
    let mut seen: Vec<(PathBuf, Option<(u64, u64)>)> = Vec::new();
    for input in inputs {
        let found = real(input)?;
        let shown = input.display();
        if found == target {
            let message = format!("{shown} is an input too; choose another folder, then delete or rename");
            return Err(Error::config("output", message));
        }
        if target.starts_with(&found) {
            let message = format!("{} lies in the input {shown}; choose a folder outside", output.display());
            return Err(Error::config("output", message));
        }
        // One database under two names is one pack, however it came about.
        let database = fs::metadata(found.join(pack::METADATA)).ok().map(|meta| (meta.dev(), meta.ino()));
        let same = |(path, id): &&(PathBuf, Option<(u64, u64)>)| *path == found || id.is_some() && *id == database;
        if let Some((earlier, _)) = seen.iter().find(same) {
            let message = format!("{shown} is the same pack as {}; every run would be there twice", earlier.display());
            return Err(Error::config("packs", message));
        }
        if let Ok(there) = fs::metadata(output.join(pack::METADATA))
            && Some((there.dev(), there.ino())) == database
        {
            return Err(Error::config("output", format!("the pack there is the input {shown} under another name")));
        }
        seen.push((found, database));
    }
    Ok(())
}

/// What a path will lead to once it is made: its deepest folder that exists, resolved, and the rest.
fn future(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for folder in path.ancestors() {
        match folder.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(folder).unwrap_or(Path::new(""));
                return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(inputs: &[&Path], output: &Path) -> Option<String> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|path| path.to_path_buf()).collect();
        check(&inputs, output).err().map(|e| e.to_string())
    }

    #[test]
    fn overlaps_are_refused_however_they_are_spelled() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["a", "b", "ab"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join(pack::METADATA), name).unwrap();
        }
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        fs::create_dir(at("twin")).unwrap();
        fs::hard_link(at("a").join(pack::METADATA), at("twin").join(pack::METADATA)).unwrap();
        let (a, b) = (&*at("a"), &*at("b"));
        for output in ["out", "new/deep", "ab/c", "."] {
            assert_eq!(refused(&[a, b], &at(output)), None, "{output}");
        }
        for output in ["a", "b", "link", "a/", "a/new", "b/x/y", "link/new", "b/../a", "twin", "ab/../a/z"] {
            assert!(refused(&[a, b], &at(output)).is_some_and(|e| e.contains("output")), "{output}");
        }
        for (left, right) in [("a", "a"), ("a", "link"), ("a", "b/../a"), ("twin", "a")] {
            let e = refused(&[&at(left), b, &at(right)], &at("out"));
            assert!(e.is_some_and(|e| e.contains("same pack")), "{left} {right}");
        }
        assert!(refused(&[a, &at("gone")], &at("out")).is_some_and(|e| e.contains("gone")));
        fs::write(at("file"), "no folder").unwrap();
        assert!(refused(&[a, b], &at("file/out")).is_some_and(|e| e.contains("file/out")));
    }
}
