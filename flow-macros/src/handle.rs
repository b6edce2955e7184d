//! `#[derive(TransactionHandle)]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Data, DeriveInput, Field, Fields, LitInt, Path, Type, spanned::Spanned};

use crate::names::{here, private, private_at};

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    expand(input).unwrap_or_else(|error| error.to_compile_error())
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(refuse(lifetime, "a handle cannot borrow", "it outlives the process: own its fields"));
    }
    let options = Options::parse(&input.attrs)?;
    let (private, name) = (private(), &input.ident);
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        generics.make_where_clause().predicates.push(syn::parse_quote!(#parameter: #private::Durable));
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let version = options.version;
    let (put, get, codecs) = match &input.data {
        Data::Struct(data) => {
            let variant = Variant::of(None, quote!(Self), &data.fields)?;
            let (pattern, put, get) = (variant.pattern(), variant.put(version), variant.get());
            (quote!(let #pattern = self; #put), get, variant.codecs())
        }
        Data::Enum(data) => {
            let variants = data.variants.iter().map(|variant| {
                let ident = &variant.ident;
                Variant::of(Some(ident.to_string()), quote!(Self::#ident), &variant.fields)
            });
            let variants = variants.collect::<syn::Result<Vec<_>>>()?;
            if variants.is_empty() {
                return Err(refuse(name, "a handle without a value", "an enum needs a variant"));
            }
            let arms = variants.iter().map(|variant| {
                let (pattern, put) = (variant.pattern(), variant.put(version));
                quote!(#pattern => { #put })
            });
            let names = variants.iter().map(|variant| &variant.name);
            let gets = variants.iter().map(Variant::get);
            let get = quote! {
                match envelope.variant() {
                    #(#names => #gets,)*
                    _ => envelope.unknown_variant(),
                }
            };
            let codecs = variants.iter().map(Variant::codecs);
            (quote!(match self { #(#arms)* }), get, quote!(#(#codecs)*))
        }
        Data::Union(_) => {
            return Err(refuse(
                name,
                "a union cannot be the handle of a transaction",
                "use a struct or an enum",
            ));
        }
    };
    let older = options.from.map(|old| {
        let read = quote_spanned!(here(old.span())=> <#old as #private::TransactionHandle>::from_envelope);
        quote! {
            if envelope.version() < #version {
                let old = #read(envelope)?;
                return ::core::result::Result::Ok(::core::convert::Into::into(old));
            }
        }
    });
    // One place where a field's type has to be durable: what cannot be stored is one error.
    let codecs = (!codecs.is_empty()).then(|| {
        quote! {
            #[automatically_derived]
            #[allow(non_upper_case_globals)]
            impl #impl_generics #name #ty_generics #where_clause { #codecs }
        }
    });
    Ok(quote! {
        #codecs
        #[automatically_derived]
        impl #impl_generics #private::Enveloped for #name #ty_generics #where_clause {
            fn put(&self) -> ::core::result::Result<#private::Envelope<'static>, #private::BoxError> {
                #put
            }
            fn get(envelope: #private::Envelope<'_>) -> ::core::result::Result<Self, #private::BoxError> {
                #older
                envelope.check(#version)?;
                #get
            }
        }
    })
}

/// A struct, or a variant of an enum.
struct Variant {
    /// Of the variant.
    name: Option<String>,
    path: TokenStream,
    fields: Vec<Stored>,
}

struct Stored {
    /// As the field is called in the envelope.
    name: String,
    /// As it is called in the program.
    member: syn::Member,
    ty: Type,
    default: bool,
    /// The constant that holds its codec.
    codec: syn::Ident,
}

impl Variant {
    fn of(name: Option<String>, path: TokenStream, fields: &Fields) -> syn::Result<Self> {
        let prefix = name.clone().unwrap_or_default();
        let fields = fields.iter().zip(fields.members()).map(|(field, member)| {
            let name = match &member {
                syn::Member::Named(name) => name.to_string().trim_start_matches("r#").to_owned(),
                syn::Member::Unnamed(index) => index.index.to_string(),
            };
            let codec = format_ident!("__codec_of_{prefix}_{name}", span = here(field.ty.span()));
            Ok(Stored { name, member, ty: field.ty.clone(), default: is_default(field)?, codec })
        });
        Ok(Variant { name, path, fields: fields.collect::<syn::Result<_>>()? })
    }

    fn pattern(&self) -> TokenStream {
        let path = &self.path;
        let fields = self.fields.iter().enumerate().map(|(i, field)| {
            let (member, variable) = (&field.member, variable(i));
            quote!(#member: #variable)
        });
        quote!(#path { #(#fields),* })
    }

    fn put(&self, version: u32) -> TokenStream {
        let private = private();
        let name = match &self.name {
            Some(name) => quote!(::core::option::Option::Some(#name)),
            None => quote!(::core::option::Option::None),
        };
        let mutable = (!self.fields.is_empty()).then(|| quote!(mut));
        let puts = self.fields.iter().enumerate().map(|(i, field)| {
            let (name, variable, codec) = (&field.name, variable(i), &field.codec);
            quote!(envelope.put(Self::#codec, #name, #variable)?;)
        });
        quote! {
            let #mutable envelope = #private::Envelope::new(#version, #name);
            #(#puts)*
            ::core::result::Result::Ok(envelope)
        }
    }

    fn codecs(&self) -> TokenStream {
        let codecs = self.fields.iter().map(|Stored { ty, codec, .. }| {
            let span = here(ty.span());
            let private = private_at(span);
            let value = quote_spanned!(span=> #private::codec::<#ty>());
            quote!(const #codec: #private::Codec<#ty> = #value;)
        });
        quote!(#(#codecs)*)
    }

    fn get(&self) -> TokenStream {
        let path = &self.path;
        let gets = self.fields.iter().map(|field| {
            let Stored { name, member, ty, default, codec } = field;
            let method =
                format_ident!("{}", if *default { "get_or_default" } else { "get" }, span = here(ty.span()));
            quote!(#member: envelope.#method(Self::#codec, #name)?)
        });
        quote!(::core::result::Result::Ok(#path { #(#gets),* }))
    }
}

fn variable(i: usize) -> syn::Ident {
    syn::Ident::new(&format!("field_{i}"), Span::mixed_site())
}

/// `#[handle(..)]` of the type.
struct Options {
    version: u32,
    from: Option<Path>,
}

impl Options {
    fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut options = Options { version: 1, from: None };
        each(attributes, |meta| {
            if meta.path.is_ident("version") {
                let literal: LitInt = meta.value()?.parse()?;
                options.version = literal.base10_parse()?;
                if options.version == 0 {
                    return Err(refuse(&literal, "versions are counted from 1", "write `version = 1`"));
                }
                return Ok(());
            }
            if meta.path.is_ident("from") {
                options.from = Some(meta.value()?.parse()?);
                return Ok(());
            }
            Err(refuse(
                &meta.path,
                "no such option of a handle",
                "there are `version = 2` and `from = OldHandle`",
            ))
        })?;
        if let Some(from) = options.from.as_ref().filter(|_| options.version == 1) {
            return Err(refuse(
                from,
                "the first version of a handle has no former one",
                "raise it: `#[handle(version = 2, from = ..)]`",
            ));
        }
        Ok(options)
    }
}

fn is_default(field: &Field) -> syn::Result<bool> {
    let mut default = false;
    each(&field.attrs, |meta| {
        default |= meta.path.is_ident("default");
        if default {
            return Ok(());
        }
        Err(refuse(&meta.path, "no such option of a handle's field", "there is `default`"))
    })?;
    Ok(default)
}

fn each(
    attributes: &[Attribute],
    mut option: impl FnMut(syn::meta::ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    let own = attributes.iter().filter(|attribute| attribute.path().is_ident("handle"));
    own.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut option))
}

fn refuse(at: &dyn ToTokens, message: &str, help: &str) -> syn::Error {
    syn::Error::new_spanned(at, format!("{message}\nhelp: {help}"))
}
