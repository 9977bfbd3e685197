//! Names, variables and data types.
//!
//! ```text
//! object ::= [[[server .] database .] schema .] name           an omitted part leaves its dot: db..t
//! type   ::= object [( {n | max} [, n] )] | DOUBLE PRECISION | NATIONAL ... | {CHAR | BINARY} VARYING | xml([CONTENT] c)
//! ```
//!
//! Messages: 117 (too many parts).

use crate::ast::{ColumnName, DataType, Ident, ObjectName, TypeParameter, Variable};
use crate::lexer::span_of;
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

/// Parts of a name; one left out is `None`.
pub(crate) type NameParts = Vec<Option<Ident>>;

impl Parser<'_> {
    /// The parts of a name. Stops before a `.` that no identifier follows (`t.*`, `t.$identity`).
    pub(crate) fn name_parts(&mut self) -> Parsed<NameParts> {
        let mut parts = Vec::with_capacity(2);
        // `..t` and `.t` leave the first parts out.
        if self.at(TokenKind::Dot) && (self.ident_at(1) || self.kind_at(1) == TokenKind::Dot) {
            parts.push(None);
        } else {
            parts.push(Some(self.ident()?));
        }
        while self.at(TokenKind::Dot) {
            if self.ident_at(1) {
                self.advance();
                parts.push(Some(self.ident()?));
            } else if self.kind_at(1) == TokenKind::Dot {
                self.advance();
                parts.push(None);
            } else {
                break;
            }
        }
        Ok(parts)
    }

    /// A name of one to four parts.
    pub(crate) fn object_name(&mut self) -> Parsed<ObjectName> {
        let mark = self.position;
        let parts = self.name_parts()?;
        if self.at(TokenKind::Dot) {
            self.advance();
            return self.unexpected();
        }
        self.object_of(parts, mark)
    }

    /// Makes an object name of parts read since `mark`.
    pub(crate) fn object_of(&self, mut parts: NameParts, mark: usize) -> Parsed<ObjectName> {
        let span = self.span_since(mark);
        if parts.len() > 4 {
            let written = span.slice(self.text).to_owned();
            return self.error_near(117, vec!["object".to_owned(), written.clone(), "3".to_owned()], &written, span);
        }
        match parts.pop().flatten() {
            Some(name) => {
                Ok(ObjectName { name, schema: parts.pop().flatten(), database: parts.pop().flatten(), server: parts.pop().flatten(), span })
            }
            None => self.unexpected(),
        }
    }

    /// Makes a column name of parts read since `mark`.
    pub(crate) fn column_of(&self, mut parts: NameParts, mark: usize) -> Parsed<ColumnName> {
        let span = self.span_since(mark);
        let Some(column) = parts.pop().flatten() else { return self.unexpected() };
        if parts.is_empty() {
            return Ok(ColumnName { table: None, column, span });
        }
        let mut table = self.object_of(parts, mark)?;
        table.span.end = table.name.span.end;
        Ok(ColumnName { table: Some(Box::new(table)), column, span })
    }

    /// A column name with its qualifiers.
    pub(crate) fn column_name(&mut self) -> Parsed<ColumnName> {
        let mark = self.position;
        let parts = self.name_parts()?;
        self.column_of(parts, mark)
    }

    /// `@name`
    pub(crate) fn variable(&mut self) -> Parsed<Variable> {
        let name = self.text_at(0).to_owned();
        let token = self.expect(TokenKind::Variable)?;
        Ok(Variable { name, span: span_of(token) })
    }

    /// A data type.
    pub(crate) fn data_type(&mut self) -> Parsed<DataType> {
        let mark = self.position;
        let name = self.type_name()?;
        let mut data_type = DataType { name, parameters: Vec::new(), xml_collection: None, span: self.span_since(mark) };
        if self.at(TokenKind::LeftParen) {
            if data_type.name.is_simple() && data_type.name.name.is("xml") {
                self.advance();
                let _ = self.eat_word("CONTENT") || self.eat_word("DOCUMENT");
                data_type.xml_collection = Some(self.object_name()?);
                self.expect(TokenKind::RightParen)?;
            } else {
                data_type.parameters = self.paren_list(Self::type_parameter)?;
            }
        }
        // `char (10) varying` is not T-SQL, but `char varying (10)` is: both words come before the length.
        data_type.span = self.span_since(mark);
        Ok(data_type)
    }

    fn type_parameter(&mut self) -> Parsed<TypeParameter> {
        if self.eat_word("MAX") {
            return Ok(TypeParameter::Max);
        }
        match self.text_at(0).parse() {
            Ok(number) if self.at(TokenKind::Integer) => {
                self.advance();
                Ok(TypeParameter::Number(number))
            }
            _ => self.unexpected(),
        }
    }

    fn type_name(&mut self) -> Parsed<ObjectName> {
        let mark = self.position;
        let one_word = |p: &Self, word: &str| ObjectName::simple(Ident { span: p.span_since(mark), ..Ident::new(word) });
        if self.eat_words(&["DOUBLE", "PRECISION"]) {
            return Ok(one_word(self, "float"));
        }
        if self.eat_keyword(Keyword::Cursor) {
            return Ok(one_word(self, "cursor"));
        }
        let national = self.eat_keyword(Keyword::National);
        let Some(first) = self.text_at(0).is_ascii().then(|| self.text_at(0).to_ascii_lowercase()) else {
            return self.object_name();
        };
        let character = matches!(first.as_str(), "char" | "character" | "nchar");
        if self.at(TokenKind::Word) && (national || self.keyword_at(1, Keyword::Varying)) {
            let national = national || first == "nchar";
            self.advance();
            let varying = self.eat_keyword(Keyword::Varying);
            return Ok(match (first.as_str(), national, varying) {
                ("text", true, false) => one_word(self, "ntext"),
                ("binary", false, true) => one_word(self, "varbinary"),
                (_, true, true) if character => one_word(self, "nvarchar"),
                (_, true, false) if character => one_word(self, "nchar"),
                (_, false, true) if character => one_word(self, "varchar"),
                _ => {
                    self.position -= 1;
                    return self.unexpected();
                }
            });
        }
        self.object_name()
    }
}
