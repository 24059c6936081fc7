//! The interface of the WebAssembly module: requests and replies are UTF-8 in its memory.

use std::cell::RefCell;

use crate::requests::Sessions;

thread_local! {
    static SESSIONS: RefCell<Sessions> = RefCell::default();
    /// The reply to the last call, until the next one.
    static REPLY: RefCell<String> = RefCell::default();
}

/// Returns the address of `length` bytes for a request, which `call` takes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Handles the request at `address`, from [`reserve`] with the same `length`, and returns the address of the reply. It is valid
/// until the next call.
///
/// # Safety
/// `address` and `length` are those of one call of [`reserve`], and are used once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn call(address: *mut u8, length: usize) -> *const u8 {
    // SAFETY: `reserve` made a boxed slice of this length, and the caller uses it once.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(address, length)) };
    let reply = SESSIONS.with_borrow_mut(|sessions| sessions.reply(&request));
    REPLY.with_borrow_mut(|kept| {
        *kept = reply;
        kept.as_ptr()
    })
}

/// Returns the length of the last reply in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reply_length() -> usize {
    REPLY.with_borrow(String::len)
}
