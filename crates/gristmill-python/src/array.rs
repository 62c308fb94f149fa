//! Engine memory out as Python buffers and DLPack capsules; Python buffers in as bytes.
//! The only file here with `unsafe`. The DLPack deleter drops an `Arc`: it needs no GIL and never calls Python.
#![allow(unsafe_code, reason = "the buffer protocol and DLPack are C interfaces")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use gristmill_engine::Column;
use gristmill_engine::store::Room;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Fault;
use crate::spare;

/// One cache line; vectors of it are aligned as JAX wants before it takes memory without a copy.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// What keeps the bytes alive.
#[allow(dead_code, reason = "owned for their memory")]
enum Owner {
    Lines(Vec<Line>),
    Room(Room),
    Bytes(Vec<u8>),
    /// Comes back for the next result.
    Reused(Vec<u8>),
    Column(Column),
}

/// A span of bytes with a fixed address and its owner.
struct Block {
    start: *mut u8,
    len: usize,
    owner: Owner,
}

// SAFETY: the bytes belong to the owner, whose parts are Send and Sync; the pointer never changes.
// Writes go through Python arrays, whose users synchronise as for any NumPy array.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        if let Owner::Reused(bytes) = &mut self.owner {
            spare::give(std::mem::take(bytes));
        }
    }
}

/// Bytes that the engine owns, as a writable Python buffer; freed or recycled with the last array over them.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Memory(Arc<Block>);

/// Allocations of at least this many bytes use huge pages.
const LARGE: usize = 4 << 20;

impl Memory {
    /// `len` zero bytes at an address that is a multiple of 64.
    pub(crate) fn zeroed(len: usize) -> Result<Self, Fault> {
        if len >= LARGE {
            let mut room = Room::new(len).map_err(|e| PyMemoryError::new_err(e.to_string()))?;
            let start = room.bytes_mut().as_mut_ptr();
            return Ok(Memory(Arc::new(Block { start, len, owner: Owner::Room(room) })));
        }
        let mut lines = Vec::new();
        let count = len.div_ceil(64);
        lines.try_reserve_exact(count).map_err(|e| PyMemoryError::new_err(format!("{len} bytes: {e}")))?;
        lines.resize(count, Line([0; 64]));
        let start = lines.as_mut_ptr().cast();
        Ok(Memory(Arc::new(Block { start, len, owner: Owner::Lines(lines) })))
    }

    /// The first `len` bytes of a vector, at whatever address it has.
    pub(crate) fn of_vec(mut bytes: Vec<u8>, len: usize) -> Self {
        bytes.truncate(len);
        let start = bytes.as_mut_ptr();
        Memory(Arc::new(Block { start, len: bytes.len(), owner: Owner::Bytes(bytes) }))
    }

    /// `len` bytes that `fill` writes, all of them: memory of an earlier result where some of that size waits. The memory comes back for
    /// the next result when Python lets go of it.
    ///
    /// Errors: those of `fill`.
    pub(crate) fn filled<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut bytes = spare::take(len).unwrap_or_else(|| vec![0; len]);
        fill(&mut bytes)?;
        let start = bytes.as_mut_ptr();
        Ok(Memory(Arc::new(Block { start, len, owner: Owner::Reused(bytes) })))
    }

    /// A column of a delivered batch, which now belongs to Python.
    pub(crate) fn of_column(column: Column) -> Self {
        let (start, len) = (column.as_ptr(), column.bytes().len());
        Memory(Arc::new(Block { start, len, owner: Owner::Column(column) }))
    }

    /// The bytes, while no one else has seen this memory.
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8], Fault> {
        let block = Arc::get_mut(&mut self.0).ok_or_else(|| PyBufferError::new_err("the memory is shared"))?;
        // SAFETY: `start` is valid for `len` bytes as long as the owner lives, and `get_mut` proved it unshared.
        Ok(unsafe { std::slice::from_raw_parts_mut(block.start, block.len) })
    }
}

/// `nbytes` zero bytes at an address that is a multiple of 64.
#[pyfunction]
pub(crate) fn allocate(py: Python<'_>, nbytes: usize) -> Result<Memory, Fault> {
    py.detach(|| Memory::zeroed(nbytes))
}

#[pymethods]
impl Memory {
    /// Bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.len
    }

    /// Lets GPUs read a batch's memory by themselves, while the loader has it: `device` is the number of one that the process
    /// uses. Whether they may.
    fn pin(&self, py: Python<'_>, device: i32) -> bool {
        py.detach(|| matches!(&self.0.owner, Owner::Column(column) if column.pin(device)))
    }

    /// Whether `nbytes` bytes at `address` lie wholly inside.
    fn holds(&self, address: usize, nbytes: usize) -> bool {
        let start = self.0.start.addr();
        address >= start && (address - start).checked_add(nbytes).is_some_and(|end| end <= self.0.len)
    }

    /// A DLPack capsule over a part of this memory.
    ///
    /// `shape` and `strides` count elements; `code` and `bits` are DLPack's element type; `versioned`
    /// asks for DLPack 1.0, whose `flags` say whether it is read-only (1) or a copy (2).
    /// Raises BufferError when the elements do not lie inside this memory.
    #[allow(clippy::too_many_arguments, reason = "the fields of a DLPack tensor")]
    fn dlpack<'py>(
        &self,
        py: Python<'py>,
        address: usize,
        shape: Vec<i64>,
        strides: Vec<i64>,
        code: u8,
        bits: u8,
        versioned: bool,
        flags: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_extent(address, &shape, &strides, i64::from(bits / 8))?;
        let data = self.0.start.with_addr(address).cast::<c_void>();
        let dtype = ElementType { code, bits, lanes: 1 };
        let keep = Arc::clone(&self.0);
        if versioned {
            export(py, shape, strides, keep, VERSIONED, |manager, shape, strides, ndim| VersionedTensor {
                version: [1, 0],
                manager,
                deleter: Some(delete::<VersionedTensor>),
                flags,
                tensor: Tensor::on_cpu(data, ndim, dtype, shape, strides),
            })
        } else {
            export(py, shape, strides, keep, LEGACY, |manager, shape, strides, ndim| LegacyTensor {
                tensor: Tensor::on_cpu(data, ndim, dtype, shape, strides),
                manager,
                deleter: Some(delete::<LegacyTensor>),
            })
        }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let block = &slf.get().0;
        let len = isize::try_from(block.len).map_err(|_| PyBufferError::new_err("too large for a buffer"))?;
        // SAFETY: `view` is CPython's; `start` is valid for `len` bytes while `slf`, which the view keeps, lives.
        let done = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), block.start.cast(), len, 0, flags) };
        if done == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

impl Memory {
    fn check_extent(&self, address: usize, shape: &[i64], strides: &[i64], itemsize: i64) -> PyResult<()> {
        let outside = || PyBufferError::new_err("the array does not lie inside the memory it came from");
        if shape.len() != strides.len() || itemsize == 0 || shape.iter().any(|&n| n < 1) {
            return Err(outside());
        }
        let (mut low, mut high) = (0i64, itemsize);
        for (&n, &stride) in shape.iter().zip(strides) {
            let reach = (n - 1).checked_mul(stride).and_then(|r| r.checked_mul(itemsize)).ok_or_else(outside)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach).ok_or_else(outside)?;
        }
        let first = i64::try_from(address).ok().and_then(|a| a.checked_add(low)).and_then(|a| usize::try_from(a).ok());
        let bytes = high.checked_sub(low).and_then(|n| usize::try_from(n).ok());
        match (first, bytes) {
            (Some(first), Some(bytes)) if self.holds(first, bytes) => Ok(()),
            _ => Err(outside()),
        }
    }
}

/// `DLDataType`.
#[derive(Clone, Copy)]
#[repr(C)]
struct ElementType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`; the device is (1, 0), the CPU.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    dtype: ElementType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

impl Tensor {
    fn on_cpu(data: *mut c_void, ndim: i32, dtype: ElementType, shape: *mut i64, strides: *mut i64) -> Self {
        Tensor { data, device: [1, 0], ndim, dtype, shape, strides, byte_offset: 0 }
    }
}

/// `DLManagedTensor`.
#[repr(C)]
struct LegacyTensor {
    tensor: Tensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut LegacyTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct VersionedTensor {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedTensor)>,
    flags: u64,
    tensor: Tensor,
}

trait Managed {
    fn manager(&self) -> *mut c_void;
}

impl Managed for LegacyTensor {
    fn manager(&self) -> *mut c_void {
        self.manager
    }
}

impl Managed for VersionedTensor {
    fn manager(&self) -> *mut c_void {
        self.manager
    }
}

/// All that a consumer of a capsule holds; freed by its deleter.
struct Export<T> {
    managed: Option<T>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _keep: Arc<Block>,
}

/// DLPack's deleter: called by the consumer, once, from any thread, with or without the GIL.
unsafe extern "C" fn delete<T: Managed>(managed: *mut T) {
    // SAFETY: `managed` points into the `Export` that `export` leaked as `manager`; the consumer calls this once.
    unsafe { drop(Box::from_raw((*managed).manager().cast::<Export<T>>())) }
}

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

fn export<'py, T: Managed>(
    py: Python<'py>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    keep: Arc<Block>,
    name: &'static CStr,
    make: impl FnOnce(*mut c_void, *mut i64, *mut i64, i32) -> T,
) -> PyResult<Bound<'py, PyAny>> {
    let ndim = i32::try_from(shape.len()).map_err(|_| PyBufferError::new_err("too many axes"))?;
    let owned = Box::into_raw(Box::new(Export { managed: None, shape, strides, _keep: keep }));
    // SAFETY: `owned` was just made and is not shared; the capsule takes it over, or it is freed below.
    unsafe {
        let (shape, strides) = ((*owned).shape.as_mut_ptr(), (*owned).strides.as_mut_ptr());
        let managed: *mut T = (*owned).managed.insert(make(owned.cast(), shape, strides, ndim));
        let capsule = ffi::PyCapsule_New(managed.cast(), name.as_ptr(), Some(drop_unconsumed::<T>));
        if capsule.is_null() {
            drop(Box::from_raw(owned));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// The capsule's own destructor: a consumer renames what it takes, so only an untouched capsule is freed here.
unsafe extern "C" fn drop_unconsumed<T: Managed>(capsule: *mut ffi::PyObject) {
    for name in [LEGACY, VERSIONED] {
        // SAFETY: CPython hands a live capsule made by `export`, whose pointer is a `T` while it has our name.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1 {
                delete::<T>(ffi::PyCapsule_GetPointer(capsule, name.as_ptr()).cast());
                return;
            }
        }
    }
}

/// A C-contiguous Python buffer of such elements, held and read as bytes.
pub(crate) struct Contiguous<T: Element = u8>(PyBuffer<T>);

impl<'py, T: Element> FromPyObject<'_, 'py> for Contiguous<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<T>::get(&object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("expected a contiguous buffer"));
        }
        Ok(Contiguous(buffer))
    }
}

/// A C-contiguous Python buffer that can be written to.
pub(crate) struct Writable(PyBuffer<u8>);

impl<'py> FromPyObject<'_, 'py> for Writable {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(&object)?;
        if !buffer.is_c_contiguous() || buffer.readonly() {
            return Err(PyBufferError::new_err("expected a contiguous buffer of bytes that can be written to"));
        }
        Ok(Writable(buffer))
    }
}

impl Writable {
    /// The bytes. As everywhere in NumPy, another thread that reads or writes them meanwhile gets mixed results.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: the buffer is contiguous, writable, `len_bytes` long, and pinned by the `PyBuffer` for the borrow's life.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl<T: Element> Contiguous<T> {
    /// The bytes. As everywhere in NumPy, another thread that writes them meanwhile gets mixed results.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the buffer is contiguous, `len_bytes` long, and pinned by the `PyBuffer` for the borrow's life.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}
