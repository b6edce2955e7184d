//! `#[derive(State)]`.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Field, Fields, Ident, LitStr, Type, spanned::Spanned};

use crate::{
    names::{here, private, private_at},
    parse::duration,
};

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    expand(input).unwrap_or_else(|error| error.to_compile_error())
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(refuse(lifetime, "keyed state cannot borrow", "it outlives the record: own its fields"));
    }
    let Data::Struct(data) = &input.data else {
        return Err(refuse(
            &input.ident,
            "keyed state is a struct",
            "put an enum into a `ValueState<..>` of a struct",
        ));
    };
    let fields = match &data.fields {
        Fields::Named(fields) => fields.named.iter().map(Kept::of).collect::<syn::Result<Vec<_>>>()?,
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => {
            return Err(refuse(
                fields,
                "the fields of keyed state have names",
                "struct Account { balance: ValueState<i64> }, since a checkpoint finds them by their names",
            ));
        }
    };
    let (private, name) = (private(), &input.ident);
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        generics.make_where_clause().predicates.push(syn::parse_quote!(#parameter: #private::StateValue));
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let constants = fields.iter().map(Kept::constants);
    let expires = fields.iter().map(|field| {
        let (own, field) = (field.ttl.is_some(), &field.field);
        quote!(#own || Self::#field.expires)
    });
    let each = |f: &dyn Fn(&Kept) -> TokenStream| fields.iter().map(f).collect::<Vec<_>>();
    let empty = each(
        &|Kept { member, field, life, .. }| quote!(#member: (Self::#field.empty)(::core::option::Option::or(Self::#life, ttl))),
    );
    let copy = each(&|Kept { member, field, .. }| quote!(#member: (Self::#field.copy)(&self.#member)));
    let nothing = each(&|Kept { member, field, .. }| quote!((Self::#field.holds_nothing)(&self.#member)));
    let ends = each(&|Kept { member, field, .. }| {
        quote! {
            if let ::core::option::Option::Some(end) = (Self::#field.ends)(&self.#member)
                && ends.is_none_or(|first| end < first)
            {
                ends = ::core::option::Option::Some(end);
            }
        }
    });
    let clean = each(&|Kept { member, field, .. }| quote!((Self::#field.clean)(&mut self.#member, now);));
    let put =
        each(&|Kept { member, field, name, .. }| quote!(stored.put(&Self::#field, #name, &self.#member)?;));
    let get = each(
        &|Kept { member, field, name, life, .. }| quote!(#member: stored.get(&Self::#field, #name, ::core::option::Option::or(Self::#life, ttl))?),
    );
    // One place where a field's type has to be a state: what cannot be kept is one error.
    let constants = (!fields.is_empty()).then(|| {
        quote! {
            #[automatically_derived]
            #[allow(non_upper_case_globals)]
            impl #impl_generics #name #ty_generics #where_clause { #(#constants)* }
        }
    });
    let result = quote!(::core::result::Result);
    let ttl = quote!(::core::option::Option<&'static #private::Ttl>);
    let time = quote!(#private::Timestamp);
    Ok(quote! {
        #constants
        #[automatically_derived]
        #[allow(unused_variables, unused_mut, clippy::unnecessary_literal_unwrap)]
        impl #impl_generics #private::State for #name #ty_generics #where_clause {
            const EXPIRES: bool = false #(|| #expires)*;
            fn empty(ttl: #ttl) -> Self {
                #name { #(#empty),* }
            }
            fn copy(&self) -> Self {
                #name { #(#copy),* }
            }
            #[inline]
            fn holds_nothing(&self) -> bool {
                true #(&& #nothing)*
            }
            #[inline]
            fn ends(&self) -> ::core::option::Option<#time> {
                let mut ends: ::core::option::Option<#time> = ::core::option::Option::None;
                #(#ends)*
                ends
            }
            fn clean(&mut self, now: #time) {
                #(#clean)*
            }
            fn encode(&self) -> #result<::std::vec::Vec<u8>, #private::BoxError> {
                let mut stored: #private::Stored<'_> = ::core::default::Default::default();
                #(#put)*
                stored.encode()
            }
            fn decode(bytes: &[u8], ttl: #ttl) -> #result<Self, #private::BoxError> {
                let stored = #private::Stored::decode(bytes)?;
                #result::Ok(#name { #(#get),* })
            }
        }
    })
}

/// A field.
struct Kept {
    member: Ident,
    /// As it is called in a checkpoint.
    name: String,
    ty: Type,
    ttl: Option<TokenStream>,
    /// The constants that hold what its type does, and how long it lives.
    field: Ident,
    life: Ident,
}

impl Kept {
    fn of(field: &Field) -> syn::Result<Self> {
        let Some(member) = field.ident.clone() else {
            return Err(refuse(field, "the fields of keyed state have names", "give it one"));
        };
        let name = member.to_string().trim_start_matches("r#").to_owned();
        let span = here(field.ty.span());
        Ok(Kept {
            field: format_ident!("__state_of_{name}", span = span),
            life: format_ident!("__ttl_of_{name}", span = span),
            ttl: ttl(field)?,
            ty: field.ty.clone(),
            member,
            name,
        })
    }

    fn constants(&self) -> TokenStream {
        let Kept { ty, field, life, ttl, .. } = self;
        let span = here(ty.span());
        let (private, door) = (private(), private_at(span));
        let value = quote_spanned!(span=> #door::state_field::<#ty>());
        let ttl = match ttl {
            Some(ttl) => quote!(::core::option::Option::Some(&#ttl)),
            None => quote!(::core::option::Option::None),
        };
        quote! {
            const #field: #private::StateField<#ty> = #value;
            const #life: ::core::option::Option<&'static #private::Ttl> = #ttl;
        }
    }
}

/// What `#[state(..)]` says of a field.
fn ttl(field: &Field) -> syn::Result<Option<TokenStream>> {
    let (mut millis, mut update, mut visibility) = (None, None, None);
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("state")) {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match name.as_str() {
                "ttl" => {
                    let text: LitStr = meta.value()?.parse()?;
                    let Some(length) = duration(&text.value()) else {
                        return Err(refuse(
                            &text,
                            &format!("`{}` is no duration", text.value()),
                            "a number and one of `ms`, `s`, `m`, `h`, `d`: `#[state(ttl = \"1h\")]`",
                        ));
                    };
                    if length.is_zero() {
                        return Err(refuse(&text, "a time to live of nothing", "#[state(ttl = \"1h\")]"));
                    }
                    millis = Some(i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
                    Ok(())
                }
                "update" => {
                    let known = [("on_write", "OnWrite"), ("on_read_and_write", "OnReadAndWrite")];
                    update = Some((meta.path.clone(), choice(&meta.value()?.parse()?, "update", &known)?));
                    Ok(())
                }
                "visibility" => {
                    let known = [
                        ("never_return_expired", "NeverReturnExpired"),
                        ("return_expired_if_not_cleaned_up", "ReturnExpiredIfNotCleanedUp"),
                    ];
                    visibility =
                        Some((meta.path.clone(), choice(&meta.value()?.parse()?, "visibility", &known)?));
                    Ok(())
                }
                _ => Err(refuse(
                    &meta.path,
                    "no such option of a field of keyed state",
                    "there are `ttl = \"1h\"`, `update = ..` and `visibility = ..`",
                )),
            }
        })?;
    }
    let Some(millis) = millis else {
        return match update.or(visibility) {
            Some((path, _)) => Err(refuse(
                &path,
                "this says something of the time to live, and there is none",
                "#[state(ttl = \"1h\", ..)]",
            )),
            None => Ok(None),
        };
    };
    let (private, millis) = (private(), Literal::i64_unsuffixed(millis));
    let update = update.map_or_else(|| format_ident!("OnWrite"), |(_, update)| update);
    let visibility =
        visibility.map_or_else(|| format_ident!("NeverReturnExpired"), |(_, visibility)| visibility);
    Ok(Some(quote! {
        #private::Ttl {
            millis: #millis,
            update: #private::TtlUpdate::#update,
            visibility: #private::TtlVisibility::#visibility,
        }
    }))
}

/// One of several words.
fn choice(word: &Ident, what: &str, known: &[(&str, &str)]) -> syn::Result<Ident> {
    match known.iter().find(|(name, _)| word == name) {
        Some((_, variant)) => Ok(format_ident!("{variant}")),
        None => {
            let names: Vec<_> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
            Err(refuse(word, &format!("no such `{what}`"), &format!("it is one of {}", names.join(", "))))
        }
    }
}

fn refuse(at: &dyn ToTokens, message: &str, help: &str) -> syn::Error {
    syn::Error::new_spanned(at, format!("{message}\nhelp: {help}"))
}
