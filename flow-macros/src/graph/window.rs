//! A window, as it is put together by a chain of methods.

use proc_macro2::{Ident, Span};
use syn::Expr;

use crate::vocab::{TIMELESS_WINDOWS, WindowFunction};

/// What a pipeline says of a window.
#[derive(Debug)]
pub(crate) struct Window {
    /// Whether it is of all records, and not of those of a key.
    pub(crate) all: bool,
    /// To which windows a record belongs.
    pub(crate) assigner: Expr,
    /// Whether it goes by the clock.
    pub(crate) by_clock: bool,
    pub(crate) trigger: Option<(Span, Expr)>,
    pub(crate) evictor: Option<(Span, Expr)>,
    pub(crate) lateness: Option<(Span, Expr)>,
    /// Where it is said that late records come out, too.
    pub(crate) late_output: Option<Span>,
    /// What is computed, and the word that says so; none while the window is being put together.
    pub(crate) function: Option<(&'static WindowFunction, Span)>,
    /// The aggregate of `.aggregate(..)`.
    pub(crate) aggregate: Option<Expr>,
    /// With what `.fold(..)` begins.
    pub(crate) initial: Option<Expr>,
    /// Whether the last of the node's arguments is the closure of `.with(..)`.
    pub(crate) with: bool,
}

impl Window {
    /// `by_clock` is what the pipeline says of all windows.
    pub(super) fn of(assigner: Expr, all: bool, by_clock: bool) -> Self {
        let mut window = Window {
            all,
            assigner,
            by_clock: false,
            trigger: None,
            evictor: None,
            lateness: None,
            late_output: None,
            function: None,
            aggregate: None,
            initial: None,
            with: false,
        };
        let said = called(&window.assigner, "processing_time").is_some();
        window.by_clock = said || (by_clock && !window.of_number());
        window
    }

    /// Whether this is what is computed.
    pub(crate) fn is(&self, function: &str) -> bool {
        self.name() == function
    }

    /// What is computed.
    pub(crate) fn name(&self) -> &'static str {
        self.function.map_or("", |(function, _)| function.name)
    }

    /// Whether it goes by the number of records, as far as its assigner tells.
    pub(crate) fn of_number(&self) -> bool {
        root_name(&self.assigner).is_some_and(|name| TIMELESS_WINDOWS.iter().any(|word| name == word))
    }

    /// Whether it needs no event time.
    pub(crate) fn timeless(&self) -> bool {
        self.by_clock || self.of_number()
    }

    /// Whether the assigner itself says that it goes by the clock.
    pub(crate) fn says_so(&self) -> bool {
        called(&self.assigner, "processing_time").is_some()
    }

    /// The function that makes its assigner.
    pub(crate) fn assigner_name(&self) -> Option<&Ident> {
        root_name(&self.assigner)
    }

    /// The values of which it is made when the job is wired.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Expr> {
        let settings = [&self.trigger, &self.evictor, &self.lateness];
        let settings = settings.into_iter().flatten().map(|(_, value)| value);
        [&self.assigner].into_iter().chain(settings).chain(&self.aggregate).chain(&self.initial)
    }
}

/// The function with whose call a chain of methods begins.
pub(crate) fn root_name(mut value: &Expr) -> Option<&Ident> {
    while let Expr::MethodCall(call) = value {
        value = &call.receiver;
    }
    let Expr::Call(call) = value else { return None };
    let Expr::Path(path) = &*call.func else { return None };
    path.path.segments.last().map(|segment| &segment.ident)
}

/// Where a chain of methods calls this one.
fn called(mut value: &Expr, method: &str) -> Option<Span> {
    while let Expr::MethodCall(call) = value {
        if call.method == method {
            return Some(call.method.span());
        }
        value = &call.receiver;
    }
    None
}
