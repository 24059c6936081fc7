//! Confined work: settings from an untrusted source must not load code or read files of this machine.

use std::cell::Cell;

thread_local! {
    static CONFINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, in which settings name neither external kinds nor files. It applies to this thread.
pub fn confined<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            CONFINED.set(self.0);
        }
    }
    let _restore = Restore(CONFINED.replace(true));
    work()
}

/// Permits the use of `name`, which is a file or has code, unless the work of this thread is confined.
///
/// # Errors
/// One line with the name.
pub fn permit(name: &str) -> Result<(), String> {
    match CONFINED.get() {
        true => Err(format!(
            "{name:?} is not available here: settings from a link or a file of others cannot name classes and files of this machine"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confines_one_call() {
        assert!(permit("aimd.py:Aimd").is_ok());
        let message = confined(|| permit("aimd.py:Aimd")).unwrap_err();
        assert!(
            message.starts_with("\"aimd.py:Aimd\" is not available here"),
            "{message}"
        );
        assert!(permit("aimd.py:Aimd").is_ok());
    }
}
