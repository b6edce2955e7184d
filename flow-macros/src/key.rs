//! `#[derive(Key)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::names::private;

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = "a key of your own cannot borrow\nhelp: own its fields, or use a tuple of `&str` and numbers as the key";
        return syn::Error::new_spanned(lifetime, message).to_compile_error();
    }
    let private = private();
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        generics.make_where_clause().predicates.push(syn::parse_quote!(#parameter: #private::StoredKeyPart));
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #private::Record for #name #ty_generics #where_clause {
            type Owned = Self;
            #[inline]
            fn into_owned(self) -> Self { self }
        }
        #[automatically_derived]
        impl #impl_generics #private::Lend for #name #ty_generics #where_clause {
            type Lent<'a> = Self;
            type Place = ::core::option::Option<Self>;
            #[inline]
            fn place(self) -> Self::Place { ::core::option::Option::Some(self) }
            #[inline]
            fn lend(place: &mut Self::Place) -> Self {
                ::core::option::Option::expect(place.take(), "a slot is lent once")
            }
        }
        #[automatically_derived]
        impl #impl_generics #private::Key for #name #ty_generics #where_clause {
            type Stored = Self;
            #[inline]
            fn is(&self, stored: &Self) -> bool { self == stored }
            #[inline]
            fn store(&self) -> Self { ::core::clone::Clone::clone(self) }
        }
    }
}
