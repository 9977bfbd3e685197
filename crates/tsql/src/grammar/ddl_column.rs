//! Column definitions and the body of a table.
//!
//! ```text
//! body   ::= ( {column | constraint | INDEX ... | PERIOD FOR SYSTEM_TIME (a, b)}, ... )
//! column ::= name type property* | name AS e [PERSISTED [NOT NULL]] property* | name [type] rowversion without a type
//! property ::= COLLATE c | IDENTITY [(s, i)] [NOT FOR REPLICATION] | [NOT] NULL | [CONSTRAINT n] {DEFAULT e | PRIMARY KEY ...}
//!            | ROWGUIDCOL | SPARSE | FILESTREAM | HIDDEN | GENERATED ALWAYS AS ... | MASKED WITH (...) | ENCRYPTED WITH (...)
//! ```
//!
//! The properties may come in any order, as SQL Server takes them. A comma between body members may be missing before a
//! table constraint, which it also takes.

use crate::ast::{
    ColumnDefinition, ColumnKind, ComputedColumn, DefaultDefinition, GeneratedAlways, Ident, Identity, OptionItem, OptionValue,
    RegularColumn, SystemTimePeriod, TableBody,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    /// `( member, ... )`
    pub(crate) fn table_body(&mut self) -> Parsed<TableBody> {
        self.expect(TokenKind::LeftParen)?;
        let mut body = TableBody::default();
        self.nested(|p| {
            loop {
                p.table_member(&mut body)?;
                let comma = p.eat(TokenKind::Comma);
                if p.at(TokenKind::RightParen) {
                    return Ok(());
                }
                if !comma && !p.at_table_constraint() {
                    return p.unexpected();
                }
            }
        })?;
        self.expect(TokenKind::RightParen)?;
        Ok(body)
    }

    /// One member of a table's body.
    pub(crate) fn table_member(&mut self, body: &mut TableBody) -> Parsed<()> {
        if self.at_table_constraint() {
            body.constraints.push(self.table_constraint(false)?);
        } else if self.at_keyword(K::Index) {
            body.indexes.push(self.inline_index()?);
        } else if self.at_words(&["PERIOD", "FOR", "SYSTEM_TIME"]) {
            self.position += 3;
            self.expect(TokenKind::LeftParen)?;
            let start = self.ident()?;
            self.expect(TokenKind::Comma)?;
            let end = self.ident()?;
            self.expect(TokenKind::RightParen)?;
            body.period = Some(SystemTimePeriod { start, end });
        } else {
            body.columns.push(self.column_definition()?);
        }
        Ok(())
    }

    /// One column.
    pub(crate) fn column_definition(&mut self) -> Parsed<ColumnDefinition> {
        let mark = self.position;
        let name = self.ident()?;
        let kind = if self.eat_keyword(K::As) {
            ColumnKind::Computed(Box::new(self.computed_column()?))
        } else if self.at_words(&["XML", "COLUMN_SET", "FOR", "ALL_SPARSE_COLUMNS"]) {
            self.position += 4;
            ColumnKind::ColumnSet
        } else {
            ColumnKind::Regular(Box::new(self.regular_column(&name)?))
        };
        Ok(ColumnDefinition { name, kind, span: self.span_since(mark) })
    }

    fn computed_column(&mut self) -> Parsed<ComputedColumn> {
        let expr = self.expression()?;
        let persisted = self.eat_word("PERSISTED");
        let mut column = ComputedColumn { expr, persisted, nullable: self.nullability(), constraints: Vec::new() };
        while self.at_column_constraint() {
            column.constraints.push(self.table_constraint(true)?);
        }
        Ok(column)
    }

    fn regular_column(&mut self, name: &Ident) -> Parsed<RegularColumn> {
        // `timestamp` alone is both the column's name and its type.
        let data_type = if name.is("timestamp") && !self.at_ident() {
            crate::ast::DataType {
                name: crate::ast::ObjectName::simple(name.clone()),
                parameters: Vec::new(),
                xml_collection: None,
                span: name.span,
            }
        } else {
            self.data_type()?
        };
        let mut column = RegularColumn {
            data_type,
            collation: None,
            nullable: None,
            identity: None,
            default: None,
            constraints: Vec::new(),
            row_guid: false,
            sparse: false,
            filestream: false,
            hidden: false,
            not_for_replication: false,
            generated: None,
            mask: None,
            encryption: Vec::new(),
            index: None,
        };
        while self.column_property(&mut column)? {}
        Ok(column)
    }

    /// Takes one property; false if none is there.
    fn column_property(&mut self, column: &mut RegularColumn) -> Parsed<bool> {
        if let Some(nullable) = self.nullability() {
            column.nullable = Some(nullable);
            return Ok(true);
        }
        match self.kind() {
            TokenKind::Keyword(K::Collate) => {
                self.advance();
                column.collation = Some(self.collation()?);
            }
            TokenKind::Keyword(K::Identity) => column.identity = Some(self.identity()?),
            TokenKind::Keyword(K::Not) if self.keyword_at(1, K::For) => {
                self.expect_words(&["NOT", "FOR", "REPLICATION"])?;
                column.not_for_replication = true;
            }
            TokenKind::Keyword(K::Rowguidcol) => {
                self.advance();
                column.row_guid = true;
            }
            TokenKind::Keyword(K::Index) => column.index = Some(Box::new(self.inline_index()?)),
            TokenKind::Keyword(K::Default) => column.default = Some(self.default_definition(None)?),
            TokenKind::Keyword(K::Constraint) if self.keyword_at(2, K::Default) => {
                self.advance();
                let name = Some(self.ident()?);
                column.default = Some(self.default_definition(name)?);
            }
            _ if self.at_column_constraint() => column.constraints.push(self.table_constraint(true)?),
            TokenKind::Word => return self.column_word_property(column),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn column_word_property(&mut self, column: &mut RegularColumn) -> Parsed<bool> {
        if self.eat_word("SPARSE") {
            column.sparse = true;
        } else if self.eat_word("FILESTREAM") {
            column.filestream = true;
        } else if self.eat_word("HIDDEN") {
            column.hidden = true;
        } else if self.eat_words(&["GENERATED", "ALWAYS", "AS"]) {
            column.generated = Some(self.generated()?);
        } else if self.eat_words(&["MASKED", "WITH"]) {
            let items = self.option_list()?;
            column.mask = Some(mask_text(&items));
        } else if self.eat_words(&["ENCRYPTED", "WITH"]) {
            column.encryption = self.option_list()?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn generated(&mut self) -> Parsed<GeneratedAlways> {
        let what = self.any_word()?;
        let which = self.any_word()?;
        Ok(match (what.as_str(), which.as_str()) {
            ("ROW", "START") => GeneratedAlways::RowStart,
            ("ROW", "END") => GeneratedAlways::RowEnd,
            ("TRANSACTION_ID", "START") => GeneratedAlways::TransactionIdStart,
            ("TRANSACTION_ID", "END") => GeneratedAlways::TransactionIdEnd,
            ("SEQUENCE_NUMBER", "START") => GeneratedAlways::SequenceNumberStart,
            ("SEQUENCE_NUMBER", "END") => GeneratedAlways::SequenceNumberEnd,
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        })
    }

    fn identity(&mut self) -> Parsed<Identity> {
        self.advance();
        let mut identity = Identity { seed: None, increment: None, not_for_replication: false };
        if self.eat(TokenKind::LeftParen) {
            identity.seed = Some(self.number_text()?);
            self.expect(TokenKind::Comma)?;
            identity.increment = Some(self.number_text()?);
            self.expect(TokenKind::RightParen)?;
        }
        identity.not_for_replication = self.eat_words(&["NOT", "FOR", "REPLICATION"]);
        Ok(identity)
    }

    /// A whole number with its sign, as written.
    fn number_text(&mut self) -> Parsed<String> {
        let sign = if self.eat(TokenKind::Minus) { "-" } else { "" };
        let _ = sign.is_empty() && self.eat(TokenKind::Plus);
        let digits = self.text_at(0).to_owned();
        if !self.at(TokenKind::Integer) && !self.at(TokenKind::Decimal) {
            return self.unexpected();
        }
        self.advance();
        Ok(format!("{sign}{digits}"))
    }

    /// `DEFAULT e [WITH VALUES]`
    fn default_definition(&mut self, name: Option<Ident>) -> Parsed<DefaultDefinition> {
        let mark = self.position;
        self.expect_keyword(K::Default)?;
        let value = self.expression()?;
        let with_values = self.eat_words(&["WITH", "VALUES"]);
        Ok(DefaultDefinition { name, value, with_values, span: self.span_since(mark) })
    }
}

/// The function of `MASKED WITH (FUNCTION = '...')`.
fn mask_text(items: &[OptionItem]) -> String {
    use crate::ast::{ExprKind, Literal};
    items
        .iter()
        .find_map(|item| match &item.value {
            OptionValue::Expr(expr) => match &expr.kind {
                ExprKind::Literal(Literal::String { value, .. }) => Some(value.clone()),
                _ => None,
            },
            _ => None,
        })
        .unwrap_or_default()
}
