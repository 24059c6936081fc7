//! The time limit of calls of Python classes. A call that does not return cannot be stopped from outside, so a thread raises
//! an exception in it: after the limit of the class, and when the run is cancelled.

use std::cell::{OnceCell, RefCell};
use std::os::raw::c_long;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

pyo3::create_exception!(
    _native,
    CallStopped,
    PyBaseException,
    "A call of a Python class exceeded its limit, or its run was cancelled."
);

/// Why a call was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It exceeded the limit of its class.
    Limit,
    /// Its run was cancelled.
    Cancelled,
}

/// How often calls are examined.
const TICK: Duration = Duration::from_millis(100);
/// Time until the exception is raised again in a class that catches all of them.
const AGAIN: Duration = Duration::from_secs(1);
/// The value of `Calls::started` outside of calls.
const IDLE: u64 = 0;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the time since the first call in nanoseconds, at least 1.
fn clock() -> u64 {
    START.elapsed().as_nanos() as u64 + 1
}

/// The calls of one thread.
struct Calls {
    /// The thread's identifier in Python.
    thread: c_long,
    /// Start of the running call, or `IDLE`.
    started: AtomicU64,
    /// Limit of the running call in nanoseconds.
    limit: AtomicU64,
    /// Why the running call was stopped: 0, or 1 + [`Stop`].
    stopped: AtomicU8,
    /// The flag that cancels the thread's trials.
    cancel: Mutex<Option<Arc<AtomicBool>>>,
}

impl Calls {
    /// Returns why the running call has to stop, and its start.
    fn due(&self) -> Option<(Stop, u64)> {
        let started = self.started.load(Ordering::Relaxed);
        if started == IDLE {
            return None;
        }
        let cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some((Stop::Cancelled, started));
        }
        let is_over = clock().saturating_sub(started) > self.limit.load(Ordering::Relaxed);
        is_over.then_some((Stop::Limit, started))
    }

    /// Raises [`CallStopped`] in the call that started at `started`.
    fn stop(&self, stop: Stop, started: u64) {
        // `None` while the interpreter exits.
        Python::try_attach(|py| {
            // A call starts and ends with the interpreter's lock, so it cannot end meanwhile.
            if self.started.load(Ordering::Relaxed) == started {
                self.stopped.store(1 + stop as u8, Ordering::Relaxed);
                raise_in(self.thread, py.get_type::<CallStopped>().as_ptr());
            }
        });
    }
}

/// Raises an exception class in a thread of Python; null revokes one that the thread has not seen yet.
fn raise_in(thread: c_long, class: *mut pyo3::ffi::PyObject) {
    // SAFETY: the calling thread is attached, and `class` is null or a live class.
    unsafe {
        pyo3::ffi::PyThreadState_SetAsyncExc(thread, class);
    }
}

static ALL: Mutex<Vec<Weak<Calls>>> = Mutex::new(Vec::new());

thread_local! {
    static CALLS: OnceCell<Arc<Calls>> = const { OnceCell::new() };
    static CANCEL: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Examines the calls of all threads, for as long as the process lives.
fn examine() {
    let mut raised: Vec<(c_long, u64, Instant)> = Vec::new();
    loop {
        thread::sleep(TICK);
        let threads: Vec<Arc<Calls>> = {
            let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|calls| calls.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        raised.retain(|(.., at)| at.elapsed() < AGAIN);
        for calls in threads {
            if let Some((stop, started)) = calls.due()
                && !raised
                    .iter()
                    .any(|&(thread, of, _)| (thread, of) == (calls.thread, started))
            {
                calls.stop(stop, started);
                raised.push((calls.thread, started, Instant::now()));
            }
        }
    }
}

/// Registers the calling thread.
fn register(py: Python<'_>) -> PyResult<Arc<Calls>> {
    static EXAMINER: LazyLock<std::io::Result<thread::JoinHandle<()>>> =
        LazyLock::new(|| thread::Builder::new().name("call-limit".into()).spawn(examine));
    if let Err(error) = &*EXAMINER {
        return Err(crate::calls::wrong(error));
    }
    let identifier: u64 = py.import("threading")?.call_method0("get_ident")?.extract()?;
    let calls = Arc::new(Calls {
        thread: identifier as c_long,
        started: AtomicU64::new(IDLE),
        limit: AtomicU64::new(u64::MAX),
        stopped: AtomicU8::new(0),
        cancel: Mutex::new(CANCEL.with_borrow(Clone::clone)),
    });
    ALL.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Arc::downgrade(&calls));
    Ok(calls)
}

/// Ends the call of a thread also when it unwinds.
struct Running<'a> {
    calls: &'a Calls,
    /// Start and limit of the call around this one, if any.
    outer: (u64, u64),
}

impl<'a> Running<'a> {
    fn new(calls: &'a Calls, limit: Duration) -> Self {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self {
            calls,
            outer: (
                calls.started.swap(clock(), Ordering::Relaxed),
                calls.limit.swap(limit, Ordering::Relaxed),
            ),
        }
    }

    /// Ends the call; returns why it was stopped.
    fn end(&self) -> Option<Stop> {
        self.calls.started.store(self.outer.0, Ordering::Relaxed);
        self.calls.limit.store(self.outer.1, Ordering::Relaxed);
        let stopped = self.calls.stopped.swap(0, Ordering::Relaxed);
        if stopped > 0 {
            // The call may have returned before it saw the exception.
            raise_in(self.calls.thread, std::ptr::null_mut());
        }
        match stopped {
            0 => None,
            1 => Some(Stop::Limit),
            _ => Some(Stop::Cancelled),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.calls.started.load(Ordering::Relaxed) != self.outer.0 {
            self.end();
        }
    }
}

/// Runs `act`, which may call Python for up to `limit`.
///
/// # Errors
/// Why it was stopped, whatever it returned then.
pub(super) fn limited<T>(limit: Duration, act: impl FnOnce(Python<'_>) -> T) -> Result<T, Stop> {
    Python::attach(|py| {
        CALLS.with(|cell| {
            let calls = match cell.get() {
                Some(calls) => calls,
                None => match register(py) {
                    Ok(calls) => cell.get_or_init(|| calls),
                    // Without threads there is no limit.
                    Err(_) => return Ok(act(py)),
                },
            };
            let running = Running::new(calls, limit);
            let result = act(py);
            running.end().map_or(Ok(result), Err)
        })
    })
}

/// Runs `work` on this thread; the flag stops calls of Python classes in it.
pub fn cancellable<T>(flag: Option<&Arc<AtomicBool>>, work: impl FnOnce() -> T) -> T {
    let set = |flag: Option<Arc<AtomicBool>>| {
        CALLS.with(|cell| {
            if let Some(calls) = cell.get() {
                (*calls.cancel.lock().unwrap_or_else(PoisonError::into_inner)).clone_from(&flag);
            }
        });
        CANCEL.replace(flag)
    };
    struct Restore<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Restore<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let mut before = set(flag.cloned());
    let _restore = Restore(|| drop(set(before.take())));
    work()
}
