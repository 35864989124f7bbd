//! Markers as statements that change a schema.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    NamedField,
    marker::{Effect, Marker, Rule, Value},
};

/// Returns the statements that carry out markers on the members `schema`, a map.
pub(super) fn statements(markers: &[Marker], fields: &[NamedField], schema: &TokenStream) -> TokenStream {
    // Effects that remove keywords come before effects that set keywords.
    let removes = |marker: &&Marker| matches!(marker.effect, Effect::Schemaless | Effect::IntOrString);
    let (first, second): (Vec<_>, Vec<_>) = markers.iter().partition(removes);
    first.into_iter().chain(second).map(|marker| statement(marker, fields, schema)).collect()
}

fn statement(marker: &Marker, fields: &[NamedField], schema: &TokenStream) -> TokenStream {
    match &marker.effect {
        Effect::Set(keyword, value) => {
            let value = json(value);
            quote! { #schema.insert(#keyword.into(), #value); }
        }
        Effect::IntOrString => quote! {
            for keyword in ["type", "format", "anyOf", "oneOf"] {
                #schema.remove(keyword);
            }
            #schema.insert("x-kubernetes-int-or-string".into(), true.into());
        },
        Effect::Schemaless => quote! { #schema.retain(|keyword, _| keyword == "description"); },
        Effect::NoDescription => quote! { #schema.remove("description"); },
        Effect::Rule(rule) => add_rule(&rule_value(rule), schema),
        Effect::OneOf { operator, message, fields: named } => {
            let named = || named.iter().filter_map(|ident| fields.iter().find(|field| *ident == field.ident));
            let in_cel: Vec<&str> = named().filter_map(|field| field.cel.as_deref()).collect();
            let rule = rule_of_union(&in_cel, operator);
            let names: Vec<&str> = named().map(|field| field.json.as_str()).collect();
            let message = message.replace("{}", &names.join(" "));
            add_rule(
                &quote!(::schemars::json_schema!({ "rule": #rule, "message": #message }).to_value()),
                schema,
            )
        }
        Effect::Items(markers) => {
            let inner = statements(markers, &[], &quote!(items));
            quote! {
                if let Some(items) = #schema.get_mut("items").and_then(|items| items.as_object_mut()) {
                    #inner
                }
            }
        }
    }
}

/// Returns the rule for the number of fields that are set. The text is the text of controller-gen 0.23.
fn rule_of_union(names: &[&str], operator: &str) -> String {
    let each = |set: fn(&str) -> String| names.iter().map(|name| set(name)).collect::<Vec<_>>();
    if operator == ">= 1" {
        return each(|name| format!("has(self.{name})")).join("||");
    }
    format!("{} {operator}", each(|name| format!("(has(self.{name})?1:0)")).join("+"))
}

fn add_rule(rule: &TokenStream, schema: &TokenStream) -> TokenStream {
    quote! {
        if let Some(rules) = #schema
            .entry("x-kubernetes-validations")
            .or_insert_with(|| ::std::vec::Vec::<bool>::new().into())
            .as_array_mut()
        {
            rules.push(#rule);
        }
    }
}

fn rule_value(rule: &Rule) -> TokenStream {
    let members = rule.texts.iter().map(|(name, text)| quote!(#name: #text));
    let optional = rule.optional_old_self.then(|| quote!(, "optionalOldSelf": true));
    quote!(::schemars::json_schema!({ #(#members),* #optional }).to_value())
}

fn json(value: &Value) -> TokenStream {
    match value {
        Value::True => quote!(true.into()),
        Value::Number(number, _) => quote!((#number).into()),
        Value::Text(text) => quote!(#text.into()),
        Value::Texts(texts) => quote!(::std::vec![#(#texts),*].into()),
        Value::Any(value) => quote!(::schemars::json_schema!({ "value": #value }).to_value()["value"].take()),
        Value::Members(members) => {
            let members = members.iter().map(|(name, text)| quote!(#name: #text));
            quote!(::schemars::json_schema!({ #(#members),* }).to_value())
        }
    }
}
