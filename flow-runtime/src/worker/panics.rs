//! Panics of user code become errors; this keeps them from also being printed.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs user code. A panic comes back as its message and place in the source.
pub(crate) fn in_user_code<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                LOCATION.set(info.location().map(|at| format!("{}:{}", at.file(), at.line())));
            } else {
                previous(info);
            }
        }));
    });
    let before = CATCHING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(f));
    CATCHING.set(before);
    outcome.map_err(|payload| {
        let message = crate::error::panic_message(&*payload);
        match LOCATION.take() {
            Some(location) => format!("{message} ({location})"),
            None => message,
        }
    })
}
