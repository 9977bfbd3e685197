//! Text to tokens.
//!
//! ```text
//! word      ::= (letter | _ | # ) (letter | digit | _ | # | @ | $)*        @word variable, @@word global, $word pseudo column
//! name      ::= [ ... ]] ... ] | " ... "" ... "                            the second only with QUOTED_IDENTIFIER ON
//! string    ::= [N] ' ... '' ... '                                         backslash before a line end joins the lines
//! number    ::= digits | digits . digits | number (e|E) [sign] [digits] | currency [sign] digits | 0x hexdigits
//! comment   ::= -- to the line's end | /* ... nested ... */
//! ```
//!
//! 1. Every byte of the text belongs to exactly one token, comment or white space; the lexer always advances
//!    ([`Lexer::next_token`] consumes at least one character until the end).
//! 2. The lexer never fails: an unclosed string (105) or comment (113), a name that is too long (103) or an empty one
//!    (1038) puts an error on the list and a token in the stream, and the parser refuses the batch by the list.
//!
//! `1a` is the number 1 and the word `a`, as SQL Server reads it. It does not decide whether a word is a keyword of a
//! statement (the grammar does), nor what a number's type is (`grammar::literal`).

use crate::ParseOptions;
use crate::ast::Span;
use crate::error::SyntaxError;
use crate::limits::{IDENTIFIER_UNITS_MAX, TEXT_BYTES_MAX, TOKENS_MAX};
use crate::token::{Keyword, Token, TokenKind};

/// The signs a money literal may begin with.
pub(crate) const CURRENCY: &[char] = &[
    '$', '¢', '£', '¤', '¥', '৲', '৳', '฿', '៛', '₠', '₡', '₢', '₣', '₤', '₥', '₦', '₧', '₨', '₩', '₪', '₫', '€', '₭', '₮', '₯', '₰', '₱',
    '﷼', '﹩', '＄', '￠', '￡', '￥', '￦',
];

/// How much of an unclosed string its message quotes.
const QUOTED_CHARS_MAX: usize = 1000;

/// Tokens of a text, the last of kind [`TokenKind::End`], and what is wrong with them.
#[must_use]
pub fn lex(text: &str, options: &ParseOptions) -> (Vec<Token>, Vec<SyntaxError>) {
    let mut lexer = Lexer { text, position: 0, line: 1, options: *options, errors: Vec::new() };
    if text.len() > TEXT_BYTES_MAX {
        lexer.errors.push(SyntaxError::new(8623, Vec::new(), "", Span::default()));
        return (vec![Token { kind: TokenKind::End, start: 0, end: 0, line: 1 }], lexer.errors);
    }
    let mut tokens = Vec::with_capacity(text.len() / 5 + 4);
    loop {
        let token = lexer.next_token();
        let done = token.kind == TokenKind::End;
        if !done && tokens.len() >= TOKENS_MAX {
            lexer.errors.push(SyntaxError::new(8623, Vec::new(), "", span_of(token)));
            tokens.push(Token { kind: TokenKind::End, start: token.start, end: token.start, line: token.line });
            break;
        }
        tokens.push(token);
        if done {
            break;
        }
    }
    (tokens, lexer.errors)
}

/// Where a token stands.
pub(crate) fn span_of(token: Token) -> Span {
    Span { start: token.start, end: token.end, line: token.line }
}

/// True for a character a word may begin with.
pub(crate) fn starts_word(c: char) -> bool {
    c == '_' || c == '#' || if c.is_ascii() { c.is_ascii_alphabetic() } else { c.is_alphabetic() }
}

/// True for a character a word may go on with.
pub(crate) fn continues_word(c: char) -> bool {
    matches!(c, '_' | '#' | '@' | '$') || if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() || is_mark(c) }
}

/// Combining marks, which Unicode lets stand inside a word.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x483..=0x487 | 0x591..=0x5bd | 0x610..=0x61a | 0x64b..=0x65f | 0x900..=0x903 | 0x93a..=0x94f | 0xe31 | 0xe34..=0xe3a | 0xe47..=0xe4e | 0x3099..=0x309a | 0xfe20..=0xfe2f)
}

fn is_space(c: char) -> bool {
    c <= ' ' || c == '\u{7f}' || c == '\u{feff}' || (!c.is_ascii() && c.is_whitespace())
}

struct Lexer<'t> {
    text: &'t str,
    position: usize,
    line: u32,
    options: ParseOptions,
    errors: Vec<SyntaxError>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.position + ahead).copied().unwrap_or(0)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves to `end`, counting the lines passed.
    fn advance_to(&mut self, end: usize) {
        let passed = &self.text.as_bytes()[self.position..end];
        self.line += u32::try_from(passed.iter().filter(|&&b| b == b'\n').count()).expect("text length is bounded");
        self.position = end;
    }

    fn span(&self, start: usize, line: u32) -> Span {
        Span { start: offset(start), end: offset(self.position), line }
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            match self.byte(0) {
                b'-' if self.byte(1) == b'-' => {
                    let end = self.rest().find('\n').map_or(self.text.len(), |at| self.position + at);
                    self.position = end;
                }
                b'/' if self.byte(1) == b'*' => self.skip_comment(),
                b'\n' => {
                    self.line += 1;
                    self.position += 1;
                }
                _ => match self.peek() {
                    Some(c) if is_space(c) => self.position += c.len_utf8(),
                    _ => return,
                },
            }
        }
    }

    /// Skips a comment and those nested in it.
    fn skip_comment(&mut self) {
        let (start, line) = (self.position, self.line);
        let bytes = self.text.as_bytes();
        let mut depth = 1_u32;
        let mut at = start + 2;
        while depth > 0 && at < bytes.len() {
            match &bytes[at..(at + 2).min(bytes.len())] {
                b"/*" => {
                    depth += 1;
                    at += 2;
                }
                b"*/" => {
                    depth -= 1;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        self.advance_to(at);
        if depth > 0 {
            let span = Span { start: offset(start), end: offset(start + 2), line };
            self.errors.push(SyntaxError::new(113, Vec::new(), "/*", span));
        }
    }

    fn next_token(&mut self) -> Token {
        self.skip_blank();
        let (start, line) = (self.position, self.line);
        let kind = match self.peek() {
            None => TokenKind::End,
            Some(c) => self.token_from(c),
        };
        Token { kind, start: offset(start), end: offset(self.position), line }
    }

    /// Consumes the token that begins with `c`, which stands at the position.
    fn token_from(&mut self, c: char) -> TokenKind {
        match c {
            'N' | 'n' if self.byte(1) == b'\'' => {
                self.position += 1;
                self.string(b'\'');
                TokenKind::NationalString
            }
            'N' | 'n' if self.byte(1) == b'"' && !self.options.quoted_identifier => {
                self.position += 1;
                self.string(b'"');
                TokenKind::NationalString
            }
            '\'' => {
                self.string(b'\'');
                TokenKind::String
            }
            '"' if self.options.quoted_identifier => {
                self.delimited_name(b'"');
                TokenKind::QuotedName
            }
            '"' => {
                self.string(b'"');
                TokenKind::String
            }
            '[' => {
                self.delimited_name(b']');
                TokenKind::BracketName
            }
            '@' => self.variable(),
            '0'..='9' => self.number(),
            '.' if self.byte(1).is_ascii_digit() => self.number(),
            '$' if self.rest()[1..].chars().next().is_some_and(starts_word) => {
                self.position += 1;
                self.word();
                TokenKind::DollarName
            }
            c if starts_word(c) => self.word(),
            c if CURRENCY.contains(&c) => self.money(c),
            c => self.punctuation(c),
        }
    }

    /// Consumes a word from its first character on.
    fn word(&mut self) -> TokenKind {
        let (start, line) = (self.position, self.line);
        let bytes = self.text.as_bytes();
        // Nearly all words are ASCII: those need no decoding.
        while bytes.get(self.position).is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#' | b'@' | b'$')) {
            self.position += 1;
        }
        if bytes.get(self.position).is_some_and(|b| !b.is_ascii()) {
            let rest = self.rest();
            self.position += rest.find(|c: char| !continues_word(c)).unwrap_or(rest.len());
        }
        let word = &self.text[start..self.position];
        self.check_name_length(word, start, line);
        Keyword::find(word).map_or(TokenKind::Word, TokenKind::Keyword)
    }

    fn variable(&mut self) -> TokenKind {
        let (start, line) = (self.position, self.line);
        let rest = self.rest();
        let kind = if rest.as_bytes().get(1) == Some(&b'@') { TokenKind::GlobalVariable } else { TokenKind::Variable };
        self.position += 1 + rest[1..].find(|c: char| !continues_word(c)).unwrap_or(rest.len() - 1);
        self.check_name_length(&self.text[start..self.position], start, line);
        kind
    }

    fn check_name_length(&mut self, name: &str, start: usize, line: u32) {
        if name.len() > IDENTIFIER_UNITS_MAX && name.encode_utf16().count() > IDENTIFIER_UNITS_MAX {
            let shown: String = name.chars().take(IDENTIFIER_UNITS_MAX).collect();
            let args = vec!["identifier".to_owned(), shown.clone(), IDENTIFIER_UNITS_MAX.to_string()];
            let error = SyntaxError::new(103, args, &shown, self.span(start, line));
            self.errors.push(error);
        }
    }

    /// Finds the closing `close`, doubled ones being part of the text: the offset of the closing one, if any.
    fn find_close(&self, from: usize, close: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        loop {
            at += bytes[at..].iter().position(|&b| b == close)?;
            if bytes.get(at + 1) != Some(&close) {
                return Some(at);
            }
            at += 2;
        }
    }

    /// Consumes a string whose opening quote stands at the position.
    fn string(&mut self, quote: u8) {
        self.delimited(quote);
    }

    /// Consumes a name whose opening delimiter stands at the position, and looks at its length.
    fn delimited_name(&mut self, close: u8) {
        let (start, line) = (self.position, self.line);
        if !self.delimited(close) {
            return;
        }
        let inner = &self.text[start + 1..self.position - 1];
        if inner.is_empty() {
            let error = SyntaxError::new(1038, Vec::new(), "", self.span(start, line));
            self.errors.push(error);
        } else if inner.len() > IDENTIFIER_UNITS_MAX {
            let close = char::from(close);
            let undoubled = inner.replace(&format!("{close}{close}"), &close.to_string());
            self.check_name_length(&undoubled, start, line);
        }
    }

    /// Consumes from the delimiter at the position to its closing one, or reports 105 and consumes the rest.
    fn delimited(&mut self, close: u8) -> bool {
        let (start, line) = (self.position, self.line);
        if let Some(end) = self.find_close(start + 1, close) {
            self.advance_to(end + 1);
            return true;
        }
        let shown: String = self.text[start + 1..].chars().take(QUOTED_CHARS_MAX).collect();
        self.advance_to(self.text.len());
        let error = SyntaxError::new(105, vec![shown.clone()], &shown, self.span(start, line));
        self.errors.push(error);
        false
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.position += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X') {
            self.position += 2;
            return self.binary_digits();
        }
        self.digits();
        let mut kind = TokenKind::Integer;
        if self.byte(0) == b'.' {
            kind = TokenKind::Decimal;
            self.position += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            // `1e` is 1e0, but in `1 else` or `1end` no exponent was meant.
            let behind = self.byte(1 + sign);
            if behind.is_ascii_digit() || !(behind.is_ascii_alphabetic() || behind == b'_') {
                kind = TokenKind::Float;
                self.position += 1 + sign;
                self.digits();
            }
        }
        kind
    }

    /// Hexadecimal digits; a backslash before a line end joins the lines.
    fn binary_digits(&mut self) -> TokenKind {
        loop {
            if self.byte(0).is_ascii_hexdigit() {
                self.position += 1;
            } else if self.byte(0) == b'\\' && (self.byte(1) == b'\n' || (self.byte(1) == b'\r' && self.byte(2) == b'\n')) {
                self.advance_to(self.position + if self.byte(1) == b'\n' { 2 } else { 3 });
            } else {
                return TokenKind::Binary;
            }
        }
    }

    fn money(&mut self, sign: char) -> TokenKind {
        self.position += sign.len_utf8();
        if matches!(self.byte(0), b'+' | b'-') && (self.byte(1).is_ascii_digit() || (self.byte(1) == b'.' && self.byte(2).is_ascii_digit()))
        {
            self.position += 1;
        }
        self.digits();
        if self.byte(0) == b'.' {
            self.position += 1;
            self.digits();
        }
        TokenKind::Money
    }

    fn punctuation(&mut self, c: char) -> TokenKind {
        let (kind, length) = match (c, self.byte(1)) {
            ('+', b'=') => (TokenKind::PlusEqual, 2),
            ('-', b'=') => (TokenKind::MinusEqual, 2),
            ('*', b'=') => (TokenKind::StarEqual, 2),
            ('/', b'=') => (TokenKind::SlashEqual, 2),
            ('%', b'=') => (TokenKind::PercentEqual, 2),
            ('&', b'=') => (TokenKind::AmpersandEqual, 2),
            ('|', b'=') => (TokenKind::PipeEqual, 2),
            ('^', b'=') => (TokenKind::CaretEqual, 2),
            ('<', b'>') | ('!', b'=') => (TokenKind::NotEqual, 2),
            ('<', b'=') | ('!', b'>') => (TokenKind::LessOrEqual, 2),
            ('>', b'=') | ('!', b'<') => (TokenKind::GreaterOrEqual, 2),
            ('<', b'<') => (TokenKind::ShiftLeft, 2),
            ('>', b'>') => (TokenKind::ShiftRight, 2),
            ('|', b'|') => (TokenKind::DoublePipe, 2),
            (':', b':') => (TokenKind::DoubleColon, 2),
            _ => (single(c), c.len_utf8()),
        };
        self.position += length;
        kind
    }
}

/// The token of one character.
fn single(c: char) -> TokenKind {
    match c {
        '(' => TokenKind::LeftParen,
        ')' => TokenKind::RightParen,
        '{' => TokenKind::LeftBrace,
        '}' => TokenKind::RightBrace,
        ',' => TokenKind::Comma,
        '.' => TokenKind::Dot,
        ';' => TokenKind::Semicolon,
        ':' => TokenKind::Colon,
        '?' => TokenKind::Question,
        '+' => TokenKind::Plus,
        '-' => TokenKind::Minus,
        '*' => TokenKind::Star,
        '/' => TokenKind::Slash,
        '%' => TokenKind::Percent,
        '&' => TokenKind::Ampersand,
        '|' => TokenKind::Pipe,
        '^' => TokenKind::Caret,
        '~' => TokenKind::Tilde,
        '!' => TokenKind::Bang,
        '=' => TokenKind::Equal,
        '<' => TokenKind::Less,
        '>' => TokenKind::Greater,
        _ => TokenKind::Unknown,
    }
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).expect("text length is bounded by TEXT_BYTES_MAX")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        let (tokens, _) = lex(text, &ParseOptions::default());
        tokens.iter().map(|t| (t.kind, &text[t.start as usize..t.end as usize])).filter(|t| t.0 != TokenKind::End).collect()
    }

    #[test]
    fn numbers() {
        let cases: &[(&str, &[(TokenKind, &str)])] = &[
            ("1", &[(TokenKind::Integer, "1")]),
            ("1.", &[(TokenKind::Decimal, "1.")]),
            (".5", &[(TokenKind::Decimal, ".5")]),
            ("1.5e-3", &[(TokenKind::Float, "1.5e-3")]),
            ("1e", &[(TokenKind::Float, "1e")]),
            ("1a", &[(TokenKind::Integer, "1"), (TokenKind::Word, "a")]),
            ("1else", &[(TokenKind::Integer, "1"), (TokenKind::Keyword(Keyword::Else), "else")]),
            ("0x", &[(TokenKind::Binary, "0x")]),
            ("0xAFg", &[(TokenKind::Binary, "0xAF"), (TokenKind::Word, "g")]),
            ("$12.5", &[(TokenKind::Money, "$12.5")]),
            ("£-3", &[(TokenKind::Money, "£-3")]),
            ("$action", &[(TokenKind::DollarName, "$action")]),
        ];
        for (text, expected) in cases {
            assert_eq!(kinds(text), *expected, "{text}");
        }
    }

    #[test]
    fn names_strings_and_comments() {
        let found = kinds("sel/* a /* nested */ b */[a]]b] \"q\" N'it''s' @x @@rowcount #t ##g é --end\nx");
        let texts: Vec<&str> = found.iter().map(|t| t.1).collect();
        assert_eq!(texts, ["sel", "[a]]b]", "\"q\"", "N'it''s'", "@x", "@@rowcount", "#t", "##g", "é", "x"]);
        let off = ParseOptions { quoted_identifier: false };
        assert_eq!(lex("\"q\"", &off).0[0].kind, TokenKind::String);
    }

    #[test]
    fn lines_are_counted_inside_strings_and_comments() {
        let (tokens, _) = lex("'a\nb' /* \n */ x\r\ny", &ParseOptions::default());
        assert_eq!(tokens.iter().map(|t| t.line).collect::<Vec<_>>(), [1, 3, 4, 4]);
    }

    #[test]
    fn lexical_errors() {
        for (text, number) in [("'abc", 105), ("[abc", 105), ("/* x", 113), ("/* /* */", 113), ("[]", 1038), ("\"\"", 1038)] {
            let (_, errors) = lex(text, &ParseOptions::default());
            assert_eq!(errors.iter().map(|e| e.number).collect::<Vec<_>>(), [number], "{text}");
        }
        let (_, errors) = lex(&"a".repeat(129), &ParseOptions::default());
        assert_eq!((errors[0].number, errors[0].args[2].as_str()), (103, "128"));
        assert!(lex(&format!("[{}]", "]]".repeat(128)), &ParseOptions::default()).1.is_empty());
    }
}
