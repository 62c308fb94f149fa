//! Calls of C programs, as `include/gristmill.h` declares them -> games in files.
//! No panic crosses the boundary. Null pointers, sizes and texts are checked before anything is read through them.
#![allow(unsafe_code, reason = "pointers of C are read here, and nowhere else")]

mod playing;

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use playing::{Code, Done, Playing, Refusal};

/// What `gristmill_writer` is. Its lock is poisoned where a panic left it half changed.
#[derive(Debug)]
pub struct Writer(Mutex<Playing>);

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Does what a call is for; keeps the words where it fails.
fn guarded<T>(act: impl FnOnce() -> Done<T>) -> Result<T, c_int> {
    let panicked = |_| Err(Refusal { code: Code::Bug, says: "a bug of gristmill: please report it".to_owned() });
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(panicked).map_err(|refusal| {
        let words = CString::new(refusal.says.replace('\0', "\\0")).unwrap_or_default();
        // A thread that is ending has no place for words any more.
        let _ = LAST.try_with(|last| last.replace(words));
        refusal.code as c_int
    })
}

fn code(done: Result<(), c_int>) -> c_int {
    done.err().unwrap_or(0)
}

/// # Safety
/// `text` is null, or ends with a zero and lives for as long as what is returned.
unsafe fn bytes<'a>(name: &str, text: *const c_char) -> Done<&'a [u8]> {
    if text.is_null() {
        return Err(Refusal::argument(format!("{name}: a null pointer")));
    }
    // SAFETY: it is not null; the caller promises the rest.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

fn utf8<'a>(name: &str, text: &'a [u8]) -> Done<&'a str> {
    std::str::from_utf8(text).map_err(|e| Refusal::argument(format!("{name}: no UTF-8: {e}")))
}

/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed.
unsafe fn with<T>(writer: *mut Writer, act: impl FnOnce(&mut Playing) -> Done<T>) -> Result<T, c_int> {
    guarded(|| {
        // SAFETY: the caller promises it.
        let writer = unsafe { writer.as_ref() }.ok_or_else(|| Refusal::argument("writer: a null pointer"))?;
        let broken = |_| Refusal { code: Code::Bug, says: "the writer met a bug before: close it".to_owned() };
        act(&mut *writer.0.lock().map_err(broken)?)
    })
}

/// See `gristmill.h`.
///
/// # Safety
/// `folder` and `schema` are null, or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_open(
    folder: *const c_char,
    schema: *const c_char,
    row_bytes: usize,
    file_bytes: u64,
) -> *mut Writer {
    let opened = guarded(|| {
        // SAFETY: the caller promises it.
        let folder = unsafe { bytes("folder", folder) }?;
        // SAFETY: as above.
        let schema = utf8("schema", unsafe { bytes("schema", schema) }?)?;
        Playing::open(Path::new(OsStr::from_bytes(folder)), schema, row_bytes, file_bytes)
    });
    opened.map_or(std::ptr::null_mut(), |playing| Box::into_raw(Box::new(Writer(Mutex::new(playing)))))
}

/// See `gristmill.h`.
///
/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_recovered(writer: *mut Writer) -> u64 {
    // SAFETY: the caller promises it.
    unsafe { with(writer, |playing| Ok(playing.recovered())) }.unwrap_or(0)
}

/// See `gristmill.h`.
///
/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed; `rows` is null, or has `count` rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_append(writer: *mut Writer, rows: *const c_void, count: usize) -> c_int {
    let append = |playing: &mut Playing| {
        let bytes = playing.row_bytes().checked_mul(count);
        playing.check_room(bytes)?;
        match bytes.unwrap_or(0) {
            0 => Ok(()),
            _ if rows.is_null() => Err(Refusal::argument("rows: a null pointer")),
            // SAFETY: it is not null, and has as many bytes, the caller promises.
            bytes => playing.append(unsafe { std::slice::from_raw_parts(rows.cast(), bytes) }),
        }
    };
    // SAFETY: the caller promises it.
    code(unsafe { with(writer, append) })
}

/// See `gristmill.h`.
///
/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed; `facts` is null, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_end_game(writer: *mut Writer, facts: *const c_char) -> c_int {
    let end = |playing: &mut Playing| {
        // SAFETY: the caller promises it.
        let facts = if facts.is_null() { "" } else { utf8("facts", unsafe { bytes("facts", facts) }?)? };
        playing.end_game(facts)
    };
    // SAFETY: the caller promises it.
    code(unsafe { with(writer, end) })
}

/// See `gristmill.h`.
///
/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_drop_game(writer: *mut Writer) -> c_int {
    let forget = |playing: &mut Playing| {
        playing.drop_game();
        Ok(())
    };
    // SAFETY: the caller promises it.
    code(unsafe { with(writer, forget) })
}

/// See `gristmill.h`.
///
/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_flush(writer: *mut Writer) -> c_int {
    // SAFETY: the caller promises it.
    code(unsafe { with(writer, Playing::flush) })
}

/// See `gristmill.h`.
///
/// # Safety
/// `writer` is null, or of `gristmill_open` and not closed; no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gristmill_close(writer: *mut Writer) -> c_int {
    if writer.is_null() {
        return 0;
    }
    code(guarded(|| {
        // SAFETY: `gristmill_open` made it, and the caller uses it no more.
        let writer = unsafe { Box::from_raw(writer) };
        let broken = |_| Refusal { code: Code::Bug, says: "the writer met a bug before".to_owned() };
        writer.0.into_inner().map_err(broken)?.close()
    }))
}

/// See `gristmill.h`.
#[unsafe(no_mangle)]
pub extern "C" fn gristmill_error() -> *const c_char {
    const NONE: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(NONE.as_ptr())
}
