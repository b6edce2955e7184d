//! A window, as it is put together by a chain of methods.

use proc_macro2::Span;
use syn::Expr;

use crate::vocab::{TIMELESS_WINDOWS, WindowFunction};

/// What a pipeline says of a window.
#[derive(Debug)]
pub(crate) struct Window {
    /// To which windows a record belongs.
    pub(crate) assigner: Expr,
    pub(crate) trigger: Option<(Span, Expr)>,
    pub(crate) evictor: Option<(Span, Expr)>,
    pub(crate) lateness: Option<(Span, Expr)>,
    /// What is computed, and the word that says so; none while the window is being put together.
    pub(crate) function: Option<(&'static WindowFunction, Span)>,
    /// The aggregate of `.aggregate(..)`.
    pub(crate) aggregate: Option<Expr>,
    /// Whether the last of the node's arguments is the closure of `.with(..)`.
    pub(crate) with: bool,
}

impl Window {
    pub(super) fn of(assigner: Expr) -> Self {
        Window {
            assigner,
            trigger: None,
            evictor: None,
            lateness: None,
            function: None,
            aggregate: None,
            with: false,
        }
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
    pub(crate) fn timeless(&self) -> bool {
        let mut assigner = &self.assigner;
        while let Expr::MethodCall(call) = assigner {
            assigner = &call.receiver;
        }
        let Expr::Call(call) = assigner else { return false };
        let Expr::Path(path) = &*call.func else { return false };
        path.path.segments.last().is_some_and(|name| TIMELESS_WINDOWS.iter().any(|word| name.ident == word))
    }

    /// The values of which it is made when the job is wired.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Expr> {
        let settings = [&self.trigger, &self.evictor, &self.lateness];
        let settings = settings.into_iter().flatten().map(|(_, value)| value);
        [&self.assigner].into_iter().chain(settings).chain(&self.aggregate)
    }
}
