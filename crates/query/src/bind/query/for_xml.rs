//! FOR XML RAW, AUTO and PATH: the query's rows as one XML text, in the way of FOR JSON.

use super::for_json::{Joining, call, has_one_table, has_tables, one_column, text};
use super::{BoundQuery, QueryUse, auto_nesting};
use crate::algebra::{ColumnRef, Rel};
use crate::bind::error::{error, not_built};
use crate::bind::{Binder, coerce};
use crate::xml::format::Layout;
use thawdb_tsql::ast::{self, OptionItem, OptionValue, QueryBody, TableRef, TableRefKind};
use thawdb_types::{SqlError, SqlType};

/// Name of the one column of a statement's own FOR XML result.
const RESULT_NAME: &str = "XML_F52E2B61-18A1-11d1-B105-00805F49916B";

#[derive(Default)]
struct Options {
    root: Option<String>,
    typed: bool,
    elements: bool,
    nil: bool,
}

impl Options {
    fn read(options: &[OptionItem], span: ast::Span) -> Result<Self, SqlError> {
        let mut read = Self::default();
        for option in options {
            match option.name.as_str() {
                "ROOT" => read.root = Some(root_name(&option.value)),
                "TYPE" => read.typed = true,
                "ELEMENTS" => {
                    read.elements = true;
                    read.nil = matches!(&option.value, OptionValue::Word(word) if word == "XSINIL");
                }
                "ELEMENTS XSINIL" => (read.elements, read.nil) = (true, true),
                "ELEMENTS ABSENT" => read.elements = true,
                "BINARY BASE64" | "BINARY" => {}
                other => return Err(not_built(&format!("FOR XML {other}"), option.span)),
            }
        }
        if read.root.as_deref() == Some("") { Err(error(6861, &[], span)) } else { Ok(read) }
    }

    fn wrapping(&self, declared: &str) -> String {
        match &self.root {
            Some(root) => format!("<{root}{declared}>\u{1f}</{root}>"),
            None => "\u{1f}".to_owned(),
        }
    }
}

fn root_name(value: &OptionValue) -> String {
    match value {
        OptionValue::Expr(ast::Expr { kind: ast::ExprKind::Literal(ast::Literal::String { value, .. }), .. }) => value.clone(),
        _ => "root".to_owned(),
    }
}

impl Binder<'_> {
    pub(super) fn bind_for_xml(
        &mut self,
        query: &ast::Query,
        (mode, name): (&str, Option<&str>),
        options: &[OptionItem],
        usage: QueryUse,
    ) -> Result<BoundQuery, SqlError> {
        let options = Options::read(options, query.span)?;
        let bound = self.bind_rows(query, QueryUse::Statement)?;
        let names: Vec<String> = bound.outputs.iter().map(|output| output.name.clone()).collect();
        let layout = match mode {
            "PATH" => Layout::path(name.unwrap_or("row"), &names, options.nil)?,
            "RAW" => Layout::flat(name.unwrap_or("row"), &names, options.elements, options.nil)?,
            "AUTO" if has_one_table(query) => Layout::flat(&table_name(query), &names, options.elements, options.nil)?,
            "AUTO" if !has_tables(query) => return Err(error(6800, &[], query.span)),
            "AUTO" => return self.bind_nested_xml(query, bound, &options, usage),
            _ => return Err(not_built(&format!("FOR XML {mode}"), query.span)),
        };
        let declared: String = self.xml_namespaces.iter().map(|(prefix, uri)| declaration(prefix, uri)).collect();
        let wrapping = options.wrapping(&declared);
        let layout = if options.root.is_some() { layout } else { layout.declaring(declared) };
        let mut values = vec![text(layout.encode())];
        for output in &bound.outputs {
            values.push(self.column_expr(output.column));
        }
        // Items of data() stay apart from row to row too.
        let separator = if name == Some("") && names.iter().all(|name| name == "data()") { " " } else { "" };
        let column = self.join_rows(bound.rel, call("FOR XML ROW", values), Joining::Flat(separator), wrapping);
        Ok(self.result_of_xml(column, &options, usage))
    }

    /// AUTO over several tables.
    fn bind_nested_xml(
        &mut self,
        query: &ast::Query,
        bound: BoundQuery,
        options: &Options,
        usage: QueryUse,
    ) -> Result<BoundQuery, SqlError> {
        let levels = auto_nesting::levels(query, &bound.outputs);
        if levels.is_empty() {
            return Err(not_built("FOR XML AUTO without a column of a table", query.span));
        }
        let mut declared: String = self.xml_namespaces.iter().map(|(prefix, uri)| declaration(prefix, uri)).collect();
        let wrapping = options.wrapping(&declared);
        if options.root.is_some() {
            declared.clear();
        }
        let (mut rows, mut elements) = (Vec::with_capacity(levels.len()), Vec::with_capacity(levels.len()));
        for (depth, level) in levels.iter().enumerate() {
            let names: Vec<String> = level.columns.iter().map(|at| bound.outputs[*at].name.clone()).collect();
            let layout = Layout::flat(&level.name, &names, options.elements, options.nil && depth == 0)?;
            let layout = if depth == 0 { layout.declaring(declared.clone()) } else { layout };
            elements.push(layout.element().to_owned());
            let mut values = vec![text(layout.encode())];
            values.extend(level.columns.iter().map(|at| self.column_expr(bound.outputs[*at].column)));
            rows.push(call("FOR XML ROW", values));
        }
        let column = self.join_rows(bound.rel, auto_nesting::row_of(rows), Joining::Nested("FOR XML NEST", elements), wrapping);
        Ok(self.result_of_xml(column, options, usage))
    }

    fn result_of_xml(&mut self, (rel, column): (Rel, ColumnRef), options: &Options, usage: QueryUse) -> BoundQuery {
        if options.typed {
            let xml = self.columns.add("", SqlType::Xml, true);
            let value = coerce::cast(self.column_expr(column), SqlType::Xml);
            return one_column((Rel::Project { input: Box::new(rel), exprs: vec![(xml, value)] }, xml));
        }
        match usage {
            QueryUse::Statement => self.in_pieces((rel, column), RESULT_NAME),
            _ => one_column((rel, column)),
        }
    }
}

/// A namespace as an attribute; the default one has no prefix.
fn declaration(prefix: &str, uri: &str) -> String {
    let mut out = if prefix.is_empty() { " xmlns=\"".to_owned() } else { format!(" xmlns:{prefix}=\"") };
    thawdb_types::xml::escape_attribute_into(&mut out, uri);
    out.push('"');
    out
}

/// The name that AUTO gives its elements: the table's alias or name.
fn table_name(query: &ast::Query) -> String {
    let only = match &query.body {
        QueryBody::Select(select) => select.from.first(),
        QueryBody::Paren(inner) => return table_name(inner),
        QueryBody::Set { .. } => None,
    };
    only.map(shown_name).unwrap_or_default()
}

fn shown_name(table: &TableRef) -> String {
    match &table.kind {
        TableRefKind::Table(named) => match (&named.alias, &named.name.schema) {
            (Some(alias), _) => alias.text.clone(),
            (None, Some(schema)) => format!("{}.{}", schema.text, named.name.name.text),
            (None, None) => named.name.name.text.clone(),
        },
        TableRefKind::Derived { alias: Some(alias), .. } | TableRefKind::Values { alias: Some(alias), .. } => alias.name.text.clone(),
        TableRefKind::Function { alias: Some(alias), .. } => alias.name.text.clone(),
        _ => String::new(),
    }
}
