//! Buffers that direct I/O takes.
//!
//! One of the modules where `unsafe` is allowed: it allocates zeroed memory at sector alignment, which the standard
//! collections cannot. Exercised by the tests below.
//!
//! Buffers of [`HUGE_BYTES`] and more are mapped by themselves, in huge pages where the system has some: the allocator would
//! zero what the system has zeroed already, 4 KiB pages cost a fault each, and a transfer into them is a list of hundreds of
//! places for the kernel and the disk to go through.
#![allow(unsafe_code)]

use crate::file::SECTOR_BYTES;
use std::alloc::{self, Layout};
use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A buffer that can be handed to the device for the time of a transfer, and is given back after.
///
/// Address and length are multiples of [`SECTOR_BYTES`]. A pool implements it for a latched frame to read ahead
/// without a copy.
pub trait IoBuffer: Any + Send {
    /// The bytes to write.
    fn bytes(&self) -> &[u8];
    /// Where to read.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Size and alignment of the system's huge pages.
pub const HUGE_BYTES: usize = 2 << 20;

/// Asks the system to back memory by huge pages where it can; a hint, which nothing depends on.
///
/// # Safety
/// `len_bytes` bytes from `address` on are private anonymous memory of this process.
pub unsafe fn prefer_huge_pages(address: *mut u8, len_bytes: usize) {
    let begin = address.addr().next_multiple_of(HUGE_BYTES);
    let end = (address.addr() + len_bytes) / HUGE_BYTES * HUGE_BYTES;
    if begin < end {
        // SAFETY: within the caller's memory; the advice changes no byte.
        let _ = unsafe { rustix::mm::madvise(address.with_addr(begin).cast(), end - begin, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Gives memory back to the system that stays reserved: it reads as zero when it is touched again. Where the system cannot,
/// nothing happens.
///
/// # Safety
/// `len_bytes` bytes from `address` on are private anonymous memory of this process, address and length are multiples of
/// [`SECTOR_BYTES`], and nobody has a reference to any of them.
pub unsafe fn give_back(address: *mut u8, len_bytes: usize) {
    assert!(address.addr().is_multiple_of(SECTOR_BYTES) && len_bytes.is_multiple_of(SECTOR_BYTES), "whole pages are given back");
    // SAFETY: passed on from the caller. The bytes become zero, which is a value like any other for bytes.
    let _ = unsafe { rustix::mm::madvise(address.cast(), len_bytes, rustix::mm::Advice::LinuxDontNeed) };
}

/// A buffer whose address and length are multiples of [`SECTOR_BYTES`].
pub struct AlignedBuf {
    address: NonNull<u8>,
    len_bytes: usize,
}

/// Stands for the alignment of an empty buffer.
#[repr(align(4096))]
struct Sector;

const _: () = assert!(align_of::<Sector>() == SECTOR_BYTES);

// SAFETY: the memory is owned by this value alone and reached only through its references, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: as for `Send`; `&AlignedBuf` gives only `&[u8]`.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// Zeroed bytes; `len_bytes` must be a multiple of [`SECTOR_BYTES`].
    pub fn zeroed(len_bytes: usize) -> Self {
        let layout = Self::layout(len_bytes);
        if len_bytes == 0 {
            return Self { address: NonNull::<Sector>::dangling().cast(), len_bytes };
        }
        if len_bytes >= HUGE_BYTES {
            return Self { address: map(len_bytes).unwrap_or_else(|| alloc::handle_alloc_error(layout)), len_bytes };
        }
        // SAFETY: the layout's size is not 0. Failure is checked below; the memory is initialised, to zero.
        let address = unsafe { alloc::alloc_zeroed(layout) };
        Self { address: NonNull::new(address).unwrap_or_else(|| alloc::handle_alloc_error(layout)), len_bytes }
    }

    fn layout(len_bytes: usize) -> Layout {
        assert!(len_bytes.is_multiple_of(SECTOR_BYTES), "buffer of {len_bytes} bytes is not whole sectors");
        Layout::from_size_align(len_bytes, SECTOR_BYTES).expect("a buffer is smaller than half the address space")
    }
}

/// Maps zeroed memory that begins where huge pages do.
fn map(len_bytes: usize) -> Option<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let whole = len_bytes.checked_add(HUGE_BYTES)?;
    // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
    let base = unsafe { mmap_anonymous(std::ptr::null_mut(), whole, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    let base: *mut u8 = base.ok()?.cast();
    let before = base.addr().next_multiple_of(HUGE_BYTES) - base.addr();
    let start = base.wrapping_add(before);
    // SAFETY: the parts before and after the buffer are of this mapping, whole pages of it, and nobody knows them. A part
    // that cannot be unmapped stays reserved and untouched.
    unsafe {
        if before > 0 {
            let _ = munmap(base.cast(), before);
        }
        let _ = munmap(start.wrapping_add(len_bytes).cast(), HUGE_BYTES - before);
        prefer_huge_pages(start, len_bytes);
    }
    NonNull::new(start)
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.len_bytes >= HUGE_BYTES {
            // SAFETY: `map` made this mapping of this length, and nobody else unmaps it.
            let _ = unsafe { rustix::mm::munmap(self.address.as_ptr().cast(), self.len_bytes) };
        } else if self.len_bytes > 0 {
            // SAFETY: `zeroed` allocated this address with this layout, and nobody else frees it.
            unsafe { alloc::dealloc(self.address.as_ptr(), Self::layout(self.len_bytes)) }
        }
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len_bytes);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `len_bytes` initialised bytes live at the address (none, and it is aligned, if empty).
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len_bytes) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len_bytes) }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len_bytes)
    }
}

impl IoBuffer for AlignedBuf {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zeroed_aligned_and_copied() {
        for len_bytes in [0, SECTOR_BYTES, 256 * SECTOR_BYTES, HUGE_BYTES, 3 * HUGE_BYTES + SECTOR_BYTES] {
            let mut buffer = AlignedBuf::zeroed(len_bytes);
            assert_eq!(buffer.as_ptr().addr() % SECTOR_BYTES, 0);
            assert_eq!(buffer.len(), len_bytes);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(7);
            assert_eq!(&*buffer.clone(), &*buffer);
            assert!(len_bytes < HUGE_BYTES || buffer.as_ptr().addr().is_multiple_of(HUGE_BYTES));
        }
    }

    #[test]
    #[should_panic(expected = "not whole sectors")]
    fn a_broken_sector_is_refused() {
        let _ = AlignedBuf::zeroed(SECTOR_BYTES + 512);
    }
}
