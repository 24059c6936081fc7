//! Confined work: settings from an untrusted source must not load code or read files of this machine.

use std::cell::RefCell;
use std::sync::Arc;

/// The names that confined work may use.
pub type Permitted = Arc<[String]>;

thread_local! {
    static PERMITTED: RefCell<Option<Permitted>> = const { RefCell::new(None) };
}

/// Runs `work`, in which settings name neither external kinds nor files, except those in `permitted`. It applies to this
/// thread.
pub fn confined<T>(permitted: Permitted, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Permitted>);
    impl Drop for Restore {
        fn drop(&mut self) {
            PERMITTED.set(self.0.take());
        }
    }
    let _restore = Restore(PERMITTED.replace(Some(permitted)));
    work()
}

/// Permits the use of `name`, which is a file or has code, unless the work of this thread is confined to others.
///
/// # Errors
/// One line with the name.
pub fn permit(name: &str) -> Result<(), String> {
    let permitted = PERMITTED.with_borrow(|names| {
        names
            .as_ref()
            .is_none_or(|names| names.iter().any(|one| one == name))
    });
    if permitted {
        return Ok(());
    }
    Err(format!(
        "{name:?} is not available here: settings from a link or a file of others cannot name classes and files of this machine"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confines_one_call() {
        assert!(permit("aimd.py:Aimd").is_ok());
        let message = confined(Permitted::default(), || permit("aimd.py:Aimd")).unwrap_err();
        assert!(
            message.starts_with("\"aimd.py:Aimd\" is not available here"),
            "{message}"
        );
        assert!(permit("aimd.py:Aimd").is_ok());
    }

    #[test]
    fn permits_exactly_the_given_names() {
        let names = Permitted::from(["aimd.py:Aimd".to_owned()]);
        let found = confined(names, || {
            ["aimd.py:Aimd", "aimd.py:Other", "aimd.py"].map(|name| permit(name).is_ok())
        });
        assert_eq!(found, [true, false, false]);
    }
}
