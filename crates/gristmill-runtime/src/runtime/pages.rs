//! An allocator for programs: large blocks are mappings of their own, the largest on huge pages, and the system has them back when
//! they are freed; all else is the system allocator's, which would keep what a thread freed for that thread. With `arena.rs` and
//! `sheet.rs`, the only file of the machinery that may use `unsafe`: there is no safe way to be an allocator.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// A block of at least this many bytes is a mapping.
pub const LARGE: usize = 256 << 10;

/// A block of at least this many bytes is on huge pages where the system has them: touching it for the first time costs a small part of
/// what it costs elsewhere.
pub const HUGE: usize = 4 << 20;

/// What `#[global_allocator]` of the command and of the Python module is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pages;

/// Whether a block is a mapping: a function of its layout, so that freeing it finds the same.
fn is_large(layout: Layout) -> bool {
    cfg!(target_os = "linux") && layout.size() >= LARGE && layout.align() <= 4096
}

// SAFETY: blocks come from the system allocator or from anonymous mappings, which are as long as requested, zeroed, and
// aligned to a page, the largest alignment for which they are used; size and alignment, which stay the same for a block
// until it is resized, say which of the two a block is from. Nothing here panics or allocates.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's promise about the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: a block of this layout is a mapping of this length, and it is no longer in use.
            unsafe { libc::munmap(block.cast(), layout.size()) };
        } else {
            // SAFETY: a block of this layout is the system allocator's.
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `size`, rounded up to the alignment, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(layout), is_large(wanted)) {
            // SAFETY: the block is the system allocator's, and so is what it becomes.
            (false, false) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: the block is a mapping of this length.
            (true, true) => unsafe { remap(block, layout.size(), size) },
            _ => {
                // SAFETY: `wanted` is a layout of more than no bytes, by the caller's promise.
                let other = unsafe { self.alloc(wanted) };
                if !other.is_null() {
                    // SAFETY: both blocks are at least as long as what is copied, and are two; the old one is freed once.
                    unsafe {
                        std::ptr::copy_nonoverlapping(block, other, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                }
                other
            }
        }
    }
}

/// A mapping of `len` zero bytes; null where there is none.
fn map(len: usize) -> *mut u8 {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping touches no other memory.
    let block = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
    if block == libc::MAP_FAILED { std::ptr::null_mut() } else { advised(block, len) }
}

/// The mapping `block` of `len` bytes, with the wish for huge pages where it is large. A system without them refuses it, and ordinary
/// ones serve.
fn advised(block: *mut libc::c_void, len: usize) -> *mut u8 {
    #[cfg(target_os = "linux")]
    if len >= HUGE {
        // SAFETY: advice about pages changes none of their bytes.
        let _ = unsafe { libc::madvise(block, len, libc::MADV_HUGEPAGE) };
    }
    block.cast()
}

/// The mapping `block`, made longer or shorter, wherever it then is; null, and all as before, where that cannot be.
///
/// # Safety
/// `block` is a mapping of `len` bytes that [`map`] made.
#[cfg(target_os = "linux")]
unsafe fn remap(block: *mut u8, len: usize, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise; no address is given, so that no other mapping is touched.
    let block = unsafe { libc::mremap(block.cast(), len, size, libc::MREMAP_MAYMOVE) };
    if block == libc::MAP_FAILED { std::ptr::null_mut() } else { advised(block, size) }
}

/// Never called: elsewhere no block is a mapping.
///
/// # Safety
/// None is needed.
#[cfg(not(target_os = "linux"))]
unsafe fn remap(_: *mut u8, _: usize, _: usize) -> *mut u8 {
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_bytes_across_the_limit_and_back() {
        let sizes = [100, LARGE - 1, LARGE, 3 * LARGE + 5, HUGE, 40 * LARGE, HUGE + 9, LARGE + 1, LARGE - 7, 50];
        for align in [1, 8, 64, 4096, 8192] {
            let mut layout = Layout::from_size_align(sizes[0], align).unwrap();
            // SAFETY: layouts have bytes, each block is resized and freed with the layout that it has, and only its bytes
            // are touched.
            unsafe {
                let mut block = Pages.alloc_zeroed(layout);
                assert!(!block.is_null() && (0..sizes[0]).all(|i| *block.add(i) == 0));
                for (i, size) in sizes.into_iter().enumerate() {
                    block = Pages.realloc(block, layout, size);
                    layout = Layout::from_size_align(size, align).unwrap();
                    assert!(!block.is_null() && (block as usize).is_multiple_of(align));
                    assert!(i == 0 || *block == i as u8 && *block.add(49) == i as u8);
                    block.write_bytes(i as u8 + 1, size);
                }
                Pages.dealloc(block, layout);
                let large = Layout::from_size_align(LARGE, 8).unwrap();
                let block = Pages.alloc_zeroed(large);
                assert!((0..LARGE).all(|i| *block.add(i) == 0));
                Pages.dealloc(block, large);
            }
        }
    }

    #[test]
    fn what_no_machine_has_is_null() {
        let layout = Layout::from_size_align(isize::MAX as usize - 4096, 8).unwrap();
        // SAFETY: a layout of more than no bytes; nothing is touched.
        assert!(unsafe { Pages.alloc(layout) }.is_null());
    }
}
