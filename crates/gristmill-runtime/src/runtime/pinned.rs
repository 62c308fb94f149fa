//! Pinned memory: a GPU reads a mapping by itself once its driver has it registered, and the mapping is registered as long
//! as its `Pin` lives. The driver is loaded when the first mapping is pinned; without it nothing is. A `Pin` must be dropped
//! before its mapping, and never names another device than that of the context which it was made in.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::sync::OnceLock;

use libloading::Library;

/// A context of the driver: what the process has on one device.
type Context = *mut c_void;

/// The memory is pinned for all contexts of the process.
const PORTABLE: c_uint = 1;

/// The calls of the CUDA driver that pin memory. Each returns 0 where it succeeds.
#[derive(Debug)]
struct Driver {
    current: unsafe extern "C" fn(*mut Context) -> c_int,
    enter: unsafe extern "C" fn(Context) -> c_int,
    leave: unsafe extern "C" fn(*mut Context) -> c_int,
    register: unsafe extern "C" fn(*mut c_void, usize, c_uint) -> c_int,
    unregister: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// Keeps the functions where they are.
    _library: Option<Library>,
}

impl Driver {
    /// The driver of this machine; `None` where there is none.
    fn of_machine() -> Option<&'static Driver> {
        static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Driver::load).as_ref()
    }

    fn load() -> Option<Driver> {
        // SAFETY: the driver's library is one that frameworks load as well; its functions have these types in every version.
        unsafe {
            let library = Library::new("libcuda.so.1").ok()?;
            Some(Driver {
                current: *library.get(b"cuCtxGetCurrent\0").ok()?,
                enter: *library.get(b"cuCtxPushCurrent_v2\0").ok()?,
                leave: *library.get(b"cuCtxPopCurrent_v2\0").ok()?,
                register: *library.get(b"cuMemHostRegister_v2\0").ok()?,
                unregister: *library.get(b"cuMemHostUnregister\0").ok()?,
                _library: Some(library),
            })
        }
    }
}

/// A mapping that the driver of a GPU has registered, until this is dropped.
#[derive(Debug)]
pub struct Pin {
    driver: &'static Driver,
    start: *mut c_void,
    context: Context,
    /// A process that is forked off has the memory, and no driver.
    process: u32,
}

// SAFETY: the driver's calls may come from any thread; the pointers are only handed to it.
unsafe impl Send for Pin {}
// SAFETY: as above.
unsafe impl Sync for Pin {}

impl Pin {
    /// Registers `len` bytes from `start` in the context of the calling thread. It takes milliseconds for large mappings.
    ///
    /// Errors: there is no driver, the thread has no context, or the driver refuses.
    ///
    /// # Safety
    /// The bytes are one mapping, or whole pages of one, and are unmapped only after the pin is dropped.
    pub unsafe fn new(start: *mut u8, len: usize) -> io::Result<Pin> {
        let driver = Driver::of_machine().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the caller's promise.
        unsafe { Pin::by(driver, start, len) }
    }

    /// # Safety
    /// As for `new`; the functions of `driver` are what their names say.
    unsafe fn by(driver: &'static Driver, start: *mut u8, len: usize) -> io::Result<Pin> {
        let (mut context, start) = (std::ptr::null_mut(), start.cast());
        // SAFETY: the driver writes one pointer, and registers bytes that the caller owns.
        let refused = unsafe {
            if (driver.current)(&mut context) != 0 || context.is_null() {
                return Err(io::Error::other("this thread has no context of a GPU"));
            }
            (driver.register)(start, len, PORTABLE)
        };
        if refused != 0 {
            return Err(io::Error::other(format!("the driver refused to pin {len} bytes: error {refused}")));
        }
        Ok(Pin { driver, start, context, process: std::process::id() })
    }
}

impl Drop for Pin {
    /// In the context where it was registered, whatever the thread has: a thread that has none would be given another device's.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // SAFETY: the context was current once, and the mapping is registered in it. Once a process ends its driver refuses
        // each of these, which does no harm.
        unsafe {
            if (self.driver.enter)(self.context) == 0 {
                (self.driver.unregister)(self.start);
                (self.driver.leave)(&mut std::ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    thread_local! {
        static CONTEXT: Cell<usize> = const { Cell::new(0) };
        static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    fn called(name: &'static str) -> c_int {
        CALLS.with_borrow_mut(|calls| calls.push(name));
        0
    }

    unsafe extern "C" fn current(context: *mut Context) -> c_int {
        // SAFETY: the caller has room for one pointer.
        unsafe { *context = std::ptr::without_provenance_mut(CONTEXT.get()) };
        0
    }

    unsafe extern "C" fn enter(context: Context) -> c_int {
        assert_eq!(context.addr(), 7, "the context of the registration");
        called("enter")
    }

    unsafe extern "C" fn leave(_: *mut Context) -> c_int {
        called("leave")
    }

    unsafe extern "C" fn register(_: *mut c_void, len: usize, _: c_uint) -> c_int {
        if len > 4096 { 2 } else { called("register") }
    }

    unsafe extern "C" fn unregister(_: *mut c_void) -> c_int {
        called("unregister")
    }

    static RECORDED: Driver = Driver { current, enter, leave, register, unregister, _library: None };

    #[test]
    fn a_mapping_is_registered_once_and_let_go_in_its_own_context() {
        let mut page = [0u8; 4096];
        let start = page.as_mut_ptr();
        // SAFETY: the functions keep nothing of the memory.
        let pin = |len| unsafe { Pin::by(&RECORDED, start, len) };
        assert!(pin(4096).unwrap_err().to_string().contains("no context"));
        CONTEXT.set(7);
        assert!(pin(8192).unwrap_err().to_string().contains("refused to pin 8192 bytes: error 2"));
        let pinned = pin(4096).unwrap();
        CONTEXT.set(0);
        drop(pinned);
        assert_eq!(CALLS.take(), ["register", "enter", "unregister", "leave"]);
    }

    #[test]
    fn a_forked_process_leaves_the_registration_to_its_parent() {
        let mut page = [0u8; 4096];
        CONTEXT.set(7);
        // SAFETY: as above.
        let mut pinned = unsafe { Pin::by(&RECORDED, page.as_mut_ptr(), 4096) }.unwrap();
        pinned.process += 1;
        drop(pinned);
        assert_eq!(CALLS.take(), ["register"]);
    }
}
