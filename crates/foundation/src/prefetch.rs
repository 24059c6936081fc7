//! Hints to the processor about memory that is needed soon.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Loads a value into the processor's cache without waiting for it. Does nothing on processors other than x86-64.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        for line in 0..size_of::<T>().div_ceil(LINE) {
            // SAFETY: a prefetch reads nothing and cannot fault, whatever the address; every x86-64 processor has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE)) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE);
}
