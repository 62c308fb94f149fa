//! Pinned memory: a GPU reads a mapping by itself once its driver has it registered, and the mapping is registered as long
//! as its `Pin` lives. The driver is loaded when the first mapping is pinned; without it nothing is. A `Pin` must be dropped
//! before its mapping, and opens no context on another device than the one that it is made for.
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
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    retain: unsafe extern "C" fn(*mut Context, c_int) -> c_int,
    release: unsafe extern "C" fn(c_int) -> c_int,
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
                device: *library.get(b"cuDeviceGet\0").ok()?,
                retain: *library.get(b"cuDevicePrimaryCtxRetain\0").ok()?,
                release: *library.get(b"cuDevicePrimaryCtxRelease_v2\0").ok()?,
                enter: *library.get(b"cuCtxPushCurrent_v2\0").ok()?,
                leave: *library.get(b"cuCtxPopCurrent_v2\0").ok()?,
                register: *library.get(b"cuMemHostRegister_v2\0").ok()?,
                unregister: *library.get(b"cuMemHostUnregister\0").ok()?,
                _library: Some(library),
            })
        }
    }
}

/// What frameworks have on a device, kept as long as this lives.
#[derive(Debug)]
struct Kept {
    driver: &'static Driver,
    device: c_int,
    context: Context,
    /// A process that is forked off has the memory, and no driver.
    process: u32,
}

impl Kept {
    fn new(driver: &'static Driver, number: c_int) -> io::Result<Kept> {
        let (mut device, mut context) = (0, std::ptr::null_mut());
        // SAFETY: the driver writes a number and a pointer.
        let found = unsafe { (driver.device)(&mut device, number) == 0 && (driver.retain)(&mut context, device) == 0 };
        if !found {
            return Err(io::Error::other(format!("the driver has no GPU {number} for this process")));
        }
        Ok(Kept { driver, device, context, process: std::process::id() })
    }

    /// Calls the driver in this context, whatever context the thread has; what the call gives, or why it was not made.
    fn within(&self, call: impl FnOnce(&Driver) -> c_int) -> c_int {
        // SAFETY: the context is retained; the driver writes one pointer.
        unsafe {
            let refused = (self.driver.enter)(self.context);
            if refused != 0 {
                return refused;
            }
            let said = call(self.driver);
            (self.driver.leave)(&mut std::ptr::null_mut());
            said
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // SAFETY: it was retained once. Once a process ends its driver refuses this, which does no harm.
            unsafe { (self.driver.release)(self.device) };
        }
    }
}

/// A mapping that the driver of a GPU has registered, until this is dropped.
#[derive(Debug)]
pub struct Pin {
    start: *mut c_void,
    kept: Kept,
}

// SAFETY: the driver's calls may come from any thread; the pointers are only handed to it.
unsafe impl Send for Pin {}
// SAFETY: as above.
unsafe impl Sync for Pin {}

impl Pin {
    /// Registers `len` bytes from `start` for all GPUs of the process, by the one of this number, which a framework uses
    /// already. It takes milliseconds for large mappings.
    ///
    /// Errors: there is no driver, no such GPU, or the driver refuses.
    ///
    /// # Safety
    /// The bytes are one mapping, or whole pages of one, and are unmapped only after the pin is dropped.
    pub unsafe fn new(start: *mut u8, len: usize, device: i32) -> io::Result<Pin> {
        let driver = Driver::of_machine().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the caller's promise.
        unsafe { Pin::by(driver, start, len, device) }
    }

    /// # Safety
    /// As for `new`; the functions of `driver` are what their names say.
    unsafe fn by(driver: &'static Driver, start: *mut u8, len: usize, device: c_int) -> io::Result<Pin> {
        let (kept, start) = (Kept::new(driver, device)?, start.cast());
        // SAFETY: the bytes are the caller's.
        match kept.within(|driver| unsafe { (driver.register)(start, len, PORTABLE) }) {
            0 => Ok(Pin { start, kept }),
            refused => Err(io::Error::other(format!("the driver refused to pin {len} bytes: error {refused}"))),
        }
    }
}

impl Drop for Pin {
    /// In the context where it was registered, whatever the thread has: a thread that has none would be given another device's.
    fn drop(&mut self) {
        if self.kept.process == std::process::id() {
            // SAFETY: the mapping is registered. Once a process ends its driver refuses this, which does no harm.
            self.kept.within(|driver| unsafe { (driver.unregister)(self.start) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    fn called(name: &'static str) -> c_int {
        CALLS.with_borrow_mut(|calls| calls.push(name));
        0
    }

    unsafe extern "C" fn device(found: *mut c_int, number: c_int) -> c_int {
        // SAFETY: the caller has room for one number.
        unsafe { *found = number + 100 };
        if number > 1 { 101 } else { 0 }
    }

    unsafe extern "C" fn retain(context: *mut Context, device: c_int) -> c_int {
        assert!(device == 100 || device == 101, "what the driver calls the device");
        // SAFETY: the caller has room for one pointer.
        unsafe { *context = std::ptr::without_provenance_mut(device as usize) };
        called("retain")
    }

    unsafe extern "C" fn release(device: c_int) -> c_int {
        assert!(device == 100 || device == 101);
        called("release")
    }

    unsafe extern "C" fn enter(context: Context) -> c_int {
        if context.addr() == 100 { 201 } else { called("enter") }
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

    static RECORDED: Driver = Driver { device, retain, release, enter, leave, register, unregister, _library: None };

    #[test]
    fn a_mapping_is_registered_and_let_go_in_the_context_of_its_device() {
        let mut page = [0u8; 4096];
        let start = page.as_mut_ptr();
        // SAFETY: the functions keep nothing of the memory.
        let pin = |len, device| unsafe { Pin::by(&RECORDED, start, len, device) };
        assert!(pin(4096, 2).unwrap_err().to_string().contains("no GPU 2"));
        assert_eq!(CALLS.take(), [""; 0], "nothing is opened");
        assert!(pin(4096, 0).unwrap_err().to_string().contains("error 201"), "its context is not to be had");
        assert_eq!(CALLS.take(), ["retain", "release"]);
        assert!(pin(8192, 1).unwrap_err().to_string().contains("refused to pin 8192 bytes: error 2"));
        assert_eq!(CALLS.take(), ["retain", "enter", "leave", "release"]);
        let pinned = pin(4096, 1).unwrap();
        assert_eq!(CALLS.take(), ["retain", "enter", "register", "leave"]);
        drop(pinned);
        assert_eq!(CALLS.take(), ["enter", "unregister", "leave", "release"]);
    }

    #[test]
    fn a_forked_process_leaves_the_registration_to_its_parent() {
        let mut page = [0u8; 4096];
        // SAFETY: as above.
        let mut pinned = unsafe { Pin::by(&RECORDED, page.as_mut_ptr(), 4096, 1) }.unwrap();
        pinned.kept.process += 1;
        CALLS.take();
        drop(pinned);
        assert_eq!(CALLS.take(), [""; 0]);
    }
}
