//! Errors: collected per stage, so that none hides another, and shown together.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};

/// One mistake: where, what, and how to mend it.
#[derive(Debug)]
pub(crate) struct Error {
    span: (Span, Span),
    message: String,
}

/// The errors of one stage. Dropping it unseen would lose them, so [`finish`](Self::finish) is the only way out.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<Error>);

impl Errors {
    /// Adds an error over the given tokens.
    pub(crate) fn at(&mut self, tokens: &impl ToTokens, message: impl Into<String>) -> Builder<'_> {
        let mut spans = tokens.to_token_stream().into_iter().map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        let last = spans.last().unwrap_or(first);
        self.0.push(Error { span: (first, last), message: message.into() });
        Builder(self)
    }

    /// Adds an error at a span.
    pub(crate) fn at_span(&mut self, span: Span, message: impl Into<String>) -> Builder<'_> {
        self.0.push(Error { span: (span, span), message: message.into() });
        Builder(self)
    }

    /// Adds syn's own.
    pub(crate) fn syn(&mut self, error: &syn::Error) {
        self.0.push(Error { span: (error.span(), error.span()), message: error.to_string() });
    }

    /// The stage's result, if there was no error.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Errors> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    /// For tests: where each begins, by its first token, and what it says.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> Vec<String> {
        let at = |error: &Error| error.span.0.source_text().unwrap_or_default();
        self.0.iter().map(|error| format!("{}: {}", at(error), error.message)).collect()
    }

    /// As `compile_error!`s.
    pub(crate) fn to_compile_errors(&self) -> impl Iterator<Item = TokenStream> {
        self.0.iter().map(|error| {
            let message = &error.message;
            let (first, last) = error.span;
            // An error spans from the path's first token to the last of the arguments.
            let path = quote_spanned!(first=> ::core::compile_error);
            quote_spanned!(last=> #path!{ #message })
        })
    }
}

/// Adds to the error just made.
pub(crate) struct Builder<'e>(&'e mut Errors);

impl Builder<'_> {
    /// An edit that mends it.
    pub(crate) fn help(self, help: impl AsRef<str>) -> Self {
        self.line("help", help.as_ref())
    }

    /// Why it is refused.
    pub(crate) fn note(self, note: impl AsRef<str>) -> Self {
        self.line("note", note.as_ref())
    }

    fn line(self, kind: &str, text: &str) -> Self {
        if let Some(error) = self.0.0.last_mut() {
            error.message.push_str(&format!("\n{kind}: {text}"));
        }
        self
    }
}

/// The known name that is most like `name`, if any is like it.
pub(crate) fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(name.len()) / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The optimal string alignment distance: edits and swaps of neighbours (Damerau 1964, in its restricted form).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = (0..=a.len()).map(|i| (i..=i + b.len()).collect()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["filter", "map", "flat_map", "sink"];
        assert_eq!(similar("fitler", known), Some("filter"));
        assert_eq!(similar("flatmap", known), Some("flat_map"));
        assert_eq!(similar("window", known), None);
    }
}
