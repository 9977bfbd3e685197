//! The parser's machinery: looking at tokens, taking them, and saying what was expected.
//!
//! ```text
//! tokens:  SELECT  a  ,  b  FROM  t  End
//!                     ^ position            nothing before it is looked at again, except by a bounded look-ahead
//! ```
//!
//! 1. The grammar functions are `impl Parser` blocks in `grammar/`; they see tokens and the text behind them, no more.
//! 2. The first error ends the batch: with it nothing of the batch runs, and guessing where the next statement starts
//!    would only invent errors. What the lexer found wrong is reported beside it, in the order of the text.
//! 3. Recursion goes through [`Parser::nested`], which bounds it ([`NESTING_MAX`]); growing a tree to the left goes through
//!    [`Parser::grow`], which bounds the tree's height ([`HEIGHT_MAX`]). Loops take a token each time round.
//!
//! Messages: 102 and 156 (unexpected token), 319 and 336 (WITH without a semicolon before it), 191 (too deep).

use crate::ast::{Ident, Quote, Span};
use crate::error::SyntaxError;
use crate::lexer::span_of;
use crate::limits::{HEIGHT_MAX, NESTING_MAX};
use crate::token::{Keyword, Token, TokenKind};

/// What a grammar function gives back. The error is boxed because it is large and rare.
pub(crate) type Parsed<T> = Result<T, Box<SyntaxError>>;

/// What the statements being read belong to; it decides where RETURN may carry a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Batch,
    Procedure,
    Function,
    Trigger,
}

/// A position in the tokens of one text.
pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) tokens: &'t [Token],
    pub(crate) position: usize,
    pub(crate) within: Within,
    /// WHILE statements around the position.
    pub(crate) loops: u32,
    depth: u32,
    /// Height of the highest tree finished at this level of nesting.
    peak: u32,
}

impl<'t> Parser<'t> {
    /// `tokens` are those of `text` and end with [`TokenKind::End`].
    pub(crate) fn new(text: &'t str, tokens: &'t [Token]) -> Self {
        assert!(tokens.last().is_some_and(|t| t.kind == TokenKind::End), "the lexer ends every stream");
        Self { text, tokens, position: 0, within: Within::Batch, loops: 0, depth: 0, peak: 0 }
    }

    // ---- Looking ----

    pub(crate) fn token_at(&self, ahead: usize) -> Token {
        self.tokens[(self.position + ahead).min(self.tokens.len() - 1)]
    }

    pub(crate) fn kind(&self) -> TokenKind {
        self.token_at(0).kind
    }

    pub(crate) fn kind_at(&self, ahead: usize) -> TokenKind {
        self.token_at(ahead).kind
    }

    pub(crate) fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    pub(crate) fn at_keyword(&self, keyword: Keyword) -> bool {
        self.kind() == TokenKind::Keyword(keyword)
    }

    pub(crate) fn keyword_at(&self, ahead: usize, keyword: Keyword) -> bool {
        self.kind_at(ahead) == TokenKind::Keyword(keyword)
    }

    pub(crate) fn at_end(&self) -> bool {
        self.at(TokenKind::End)
    }

    /// The written text of the token `ahead` of the position.
    pub(crate) fn text_at(&self, ahead: usize) -> &'t str {
        let token = self.token_at(ahead);
        &self.text[token.start as usize..token.end as usize]
    }

    /// True if the token `ahead` is the undelimited word `word` (upper case), reserved or not.
    pub(crate) fn word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.kind_at(ahead), TokenKind::Word | TokenKind::Keyword(_)) && self.text_at(ahead).eq_ignore_ascii_case(word)
    }

    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.word_at(0, word)
    }

    /// True if the next tokens are these words.
    pub(crate) fn at_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| self.word_at(ahead, word))
    }

    /// True if the token is an identifier, delimited or not.
    pub(crate) fn at_ident(&self) -> bool {
        self.ident_at(0)
    }

    pub(crate) fn ident_at(&self, ahead: usize) -> bool {
        matches!(self.kind_at(ahead), TokenKind::Word | TokenKind::BracketName | TokenKind::QuotedName)
    }

    // ---- Taking ----

    pub(crate) fn advance(&mut self) -> Token {
        let token = self.token_at(0);
        if token.kind != TokenKind::End {
            self.position += 1;
        }
        token
    }

    pub(crate) fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        self.eat(TokenKind::Keyword(keyword))
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        self.eat_words(&[word])
    }

    pub(crate) fn eat_words(&mut self, words: &[&str]) -> bool {
        let found = self.at_words(words);
        if found {
            self.position += words.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, kind: TokenKind) -> Parsed<Token> {
        if self.at(kind) { Ok(self.advance()) } else { self.unexpected() }
    }

    pub(crate) fn expect_keyword(&mut self, keyword: Keyword) -> Parsed<()> {
        self.expect(TokenKind::Keyword(keyword)).map(|_| ())
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { self.unexpected() }
    }

    pub(crate) fn expect_words(&mut self, words: &[&str]) -> Parsed<()> {
        words.iter().try_for_each(|word| self.expect_word(word))
    }

    /// An undelimited word, reserved or not, in upper case.
    pub(crate) fn any_word(&mut self) -> Parsed<String> {
        if !matches!(self.kind(), TokenKind::Word | TokenKind::Keyword(_)) {
            return self.unexpected();
        }
        let word = self.text_at(0).to_ascii_uppercase();
        self.advance();
        Ok(word)
    }

    /// An identifier.
    pub(crate) fn ident(&mut self) -> Parsed<Ident> {
        if !self.at_ident() {
            return self.unexpected();
        }
        let token = self.advance();
        Ok(self.ident_of(token))
    }

    /// The identifier a token of an identifier kind, a word or a string spells.
    pub(crate) fn ident_of(&self, token: Token) -> Ident {
        let written = &self.text[token.start as usize..token.end as usize];
        let quote = match token.kind {
            TokenKind::BracketName => Quote::Bracket,
            TokenKind::QuotedName | TokenKind::String => Quote::Double,
            _ => Quote::None,
        };
        Ident { text: self.unquoted(token, written), quote, span: span_of(token) }
    }

    fn unquoted(&self, token: Token, written: &str) -> String {
        let inner = |from: usize| written.get(from..written.len().saturating_sub(1)).unwrap_or("");
        match token.kind {
            TokenKind::BracketName => inner(1).replace("]]", "]"),
            TokenKind::QuotedName => inner(1).replace("\"\"", "\""),
            TokenKind::String | TokenKind::NationalString => self.string_value(token),
            _ => written.to_owned(),
        }
    }

    /// `item, item, ...`
    pub(crate) fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(TokenKind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `( item, item, ... )`
    pub(crate) fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect(TokenKind::LeftParen)?;
        let items = self.comma_list(item)?;
        self.expect(TokenKind::RightParen)?;
        Ok(items)
    }

    /// `( name, name, ... )`
    pub(crate) fn ident_list(&mut self) -> Parsed<Vec<Ident>> {
        self.paren_list(Self::ident)
    }

    // ---- Places ----

    /// The span of the tokens taken since the position was `mark`.
    pub(crate) fn span_since(&self, mark: usize) -> Span {
        let first = self.tokens[mark.min(self.tokens.len() - 1)];
        let last = self.tokens[self.position.saturating_sub(1).max(mark).min(self.tokens.len() - 1)];
        Span { start: first.start, end: last.end.max(first.start), line: first.line }
    }

    // ---- Bounds ----

    /// Runs `body` one level deeper.
    pub(crate) fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_MAX {
            return self.error(191, Vec::new());
        }
        let outside = std::mem::replace(&mut self.peak, 0);
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        let inside = std::mem::replace(&mut self.peak, outside);
        result.and_then(|value| self.raise_peak(inside + 1).map(|()| value))
    }

    /// Runs `body`, whose calls of [`Self::grow`] each put one more level above all that it has read.
    pub(crate) fn chain<T>(&mut self, body: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outside = std::mem::replace(&mut self.peak, 0);
        let result = body(self);
        self.peak = self.peak.max(outside);
        result
    }

    /// Tells that the tree being read got one more level on top.
    pub(crate) fn grow(&mut self) -> Parsed<()> {
        self.raise_peak(self.peak + 1)
    }

    fn raise_peak(&mut self, height: u32) -> Parsed<()> {
        self.peak = self.peak.max(height);
        if self.peak > HEIGHT_MAX { self.error(191, Vec::new()) } else { Ok(()) }
    }

    // ---- Errors ----

    /// The token at the position stands where the grammar does not have it.
    pub(crate) fn unexpected<T>(&self) -> Parsed<T> {
        let token = self.token_at(0);
        match token.kind {
            TokenKind::Keyword(Keyword::With) if !self.keyword_at(1, Keyword::With) && self.ident_at(1) => self.error(319, Vec::new()),
            TokenKind::Keyword(_) => self.error(156, vec![self.text_at(0).to_owned()]),
            _ => self.error(102, vec![self.near()]),
        }
    }

    /// The token's text as messages show it: names and strings without their delimiters; at the end the last token's.
    pub(crate) fn near(&self) -> String {
        let token = match self.token_at(0) {
            Token { kind: TokenKind::End, .. } if self.position > 0 => self.tokens[self.position - 1],
            token => token,
        };
        self.unquoted(token, &self.text[token.start as usize..token.end as usize])
    }

    /// An error at the token of the position.
    pub(crate) fn error<T>(&self, number: i32, args: Vec<String>) -> Parsed<T> {
        self.error_near(number, args, &self.near(), self.error_span())
    }

    pub(crate) fn error_near<T>(&self, number: i32, args: Vec<String>, near: &str, span: Span) -> Parsed<T> {
        Err(Box::new(SyntaxError::new(number, args, near, span)))
    }

    fn error_span(&self) -> Span {
        match self.token_at(0) {
            // SQL Server names the line of the last token when the text ends too early.
            Token { kind: TokenKind::End, .. } if self.position > 0 => span_of(self.tokens[self.position - 1]),
            token => span_of(token),
        }
    }
}
