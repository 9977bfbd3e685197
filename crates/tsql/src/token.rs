//! Tokens: the reserved words, the punctuation, and what a token carries.
//!
//! 1. A token is 16 bytes: kind, byte range, line. Its value (quotes undone, keyword found) is derived when asked for.
//! 2. Only the documented reserved words are [`Keyword`]s ([`Keyword::ALL`] is the table); every other word is a
//!    [`TokenKind::Word`] that the grammar recognises by its place.
//! 3. `Keyword::ALL` is sorted by text, so that [`Keyword::find`] may search it (test `reserved_words_are_sorted`).

macro_rules! keywords {
    ($($variant:ident $text:literal)*) => {
        /// A reserved word of T-SQL, as documented for SQL Server 2022.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // each variant is the word of its name
        pub enum Keyword { $($variant,)* }

        impl Keyword {
            /// All reserved words in upper case, sorted by text.
            pub const ALL: &[(&'static str, Keyword)] = &[$(($text, Keyword::$variant),)*];
        }
    };
}

keywords! {
    Add "ADD"
    All "ALL"
    Alter "ALTER"
    And "AND"
    Any "ANY"
    As "AS"
    Asc "ASC"
    Authorization "AUTHORIZATION"
    Backup "BACKUP"
    Begin "BEGIN"
    Between "BETWEEN"
    Break "BREAK"
    Browse "BROWSE"
    Bulk "BULK"
    By "BY"
    Cascade "CASCADE"
    Case "CASE"
    Check "CHECK"
    Checkpoint "CHECKPOINT"
    Close "CLOSE"
    Clustered "CLUSTERED"
    Coalesce "COALESCE"
    Collate "COLLATE"
    Column "COLUMN"
    Commit "COMMIT"
    Compute "COMPUTE"
    Constraint "CONSTRAINT"
    Contains "CONTAINS"
    Containstable "CONTAINSTABLE"
    Continue "CONTINUE"
    Convert "CONVERT"
    Create "CREATE"
    Cross "CROSS"
    Current "CURRENT"
    CurrentDate "CURRENT_DATE"
    CurrentTime "CURRENT_TIME"
    CurrentTimestamp "CURRENT_TIMESTAMP"
    CurrentUser "CURRENT_USER"
    Cursor "CURSOR"
    Database "DATABASE"
    Dbcc "DBCC"
    Deallocate "DEALLOCATE"
    Declare "DECLARE"
    Default "DEFAULT"
    Delete "DELETE"
    Deny "DENY"
    Desc "DESC"
    Disk "DISK"
    Distinct "DISTINCT"
    Distributed "DISTRIBUTED"
    Double "DOUBLE"
    Drop "DROP"
    Dump "DUMP"
    Else "ELSE"
    End "END"
    Errlvl "ERRLVL"
    Escape "ESCAPE"
    Except "EXCEPT"
    Exec "EXEC"
    Execute "EXECUTE"
    Exists "EXISTS"
    Exit "EXIT"
    External "EXTERNAL"
    Fetch "FETCH"
    File "FILE"
    Fillfactor "FILLFACTOR"
    For "FOR"
    Foreign "FOREIGN"
    Freetext "FREETEXT"
    Freetexttable "FREETEXTTABLE"
    From "FROM"
    Full "FULL"
    Function "FUNCTION"
    Goto "GOTO"
    Grant "GRANT"
    Group "GROUP"
    Having "HAVING"
    Holdlock "HOLDLOCK"
    Identity "IDENTITY"
    Identitycol "IDENTITYCOL"
    IdentityInsert "IDENTITY_INSERT"
    If "IF"
    In "IN"
    Index "INDEX"
    Inner "INNER"
    Insert "INSERT"
    Intersect "INTERSECT"
    Into "INTO"
    Is "IS"
    Join "JOIN"
    Key "KEY"
    Kill "KILL"
    Left "LEFT"
    Like "LIKE"
    Lineno "LINENO"
    Load "LOAD"
    Merge "MERGE"
    National "NATIONAL"
    Nocheck "NOCHECK"
    Nonclustered "NONCLUSTERED"
    Not "NOT"
    Null "NULL"
    Nullif "NULLIF"
    Of "OF"
    Off "OFF"
    Offsets "OFFSETS"
    On "ON"
    Open "OPEN"
    Opendatasource "OPENDATASOURCE"
    Openquery "OPENQUERY"
    Openrowset "OPENROWSET"
    Openxml "OPENXML"
    Option "OPTION"
    Or "OR"
    Order "ORDER"
    Outer "OUTER"
    Over "OVER"
    Percent "PERCENT"
    Pivot "PIVOT"
    Plan "PLAN"
    Primary "PRIMARY"
    Print "PRINT"
    Proc "PROC"
    Procedure "PROCEDURE"
    Public "PUBLIC"
    Raiserror "RAISERROR"
    Read "READ"
    Readtext "READTEXT"
    Reconfigure "RECONFIGURE"
    References "REFERENCES"
    Replication "REPLICATION"
    Restore "RESTORE"
    Restrict "RESTRICT"
    Return "RETURN"
    Revert "REVERT"
    Revoke "REVOKE"
    Right "RIGHT"
    Rollback "ROLLBACK"
    Rowcount "ROWCOUNT"
    Rowguidcol "ROWGUIDCOL"
    Rule "RULE"
    Save "SAVE"
    Schema "SCHEMA"
    Securityaudit "SECURITYAUDIT"
    Select "SELECT"
    Semantickeyphrasetable "SEMANTICKEYPHRASETABLE"
    Semanticsimilaritydetailstable "SEMANTICSIMILARITYDETAILSTABLE"
    Semanticsimilaritytable "SEMANTICSIMILARITYTABLE"
    SessionUser "SESSION_USER"
    Set "SET"
    Setuser "SETUSER"
    Shutdown "SHUTDOWN"
    Some "SOME"
    Statistics "STATISTICS"
    SystemUser "SYSTEM_USER"
    Table "TABLE"
    Tablesample "TABLESAMPLE"
    Textsize "TEXTSIZE"
    Then "THEN"
    To "TO"
    Top "TOP"
    Tran "TRAN"
    Transaction "TRANSACTION"
    Trigger "TRIGGER"
    Truncate "TRUNCATE"
    TryConvert "TRY_CONVERT"
    Tsequal "TSEQUAL"
    Union "UNION"
    Unique "UNIQUE"
    Unpivot "UNPIVOT"
    Update "UPDATE"
    Updatetext "UPDATETEXT"
    Use "USE"
    User "USER"
    Values "VALUES"
    Varying "VARYING"
    View "VIEW"
    Waitfor "WAITFOR"
    When "WHEN"
    Where "WHERE"
    While "WHILE"
    With "WITH"
    Writetext "WRITETEXT"
}

/// Bytes of the longest reserved word.
const LONGEST: usize = 31;

impl Keyword {
    /// The reserved word `word` spells in any case, if it is one.
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        let mut upper = [0_u8; LONGEST];
        let bytes = word.as_bytes();
        if bytes.len() < 2 || bytes.len() > LONGEST || !bytes[0].is_ascii_alphabetic() {
            return None;
        }
        for (to, from) in upper.iter_mut().zip(bytes) {
            *to = from.to_ascii_uppercase();
        }
        let upper = &upper[..bytes.len()];
        Self::ALL.binary_search_by(|entry| entry.0.as_bytes().cmp(upper)).ok().map(|at| Self::ALL[at].1)
    }

    /// The word in upper case.
    #[must_use]
    pub fn text(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A reserved word.
    Keyword(Keyword),
    /// A word that is not reserved.
    Word,
    /// `[name]`
    BracketName,
    /// `"name"` while QUOTED_IDENTIFIER is ON.
    QuotedName,
    /// `@name`
    Variable,
    /// `@@name`
    GlobalVariable,
    /// `$name`
    DollarName,
    /// Digits only.
    Integer,
    /// Digits and a point.
    Decimal,
    /// Digits with an exponent.
    Float,
    /// A currency sign and digits.
    Money,
    /// `0x` and hexadecimal digits.
    Binary,
    /// `'text'`, or `"text"` while QUOTED_IDENTIFIER is OFF.
    String,
    /// `N'text'`
    NationalString,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `::`
    DoubleColon,
    /// `?`
    Question,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `&`
    Ampersand,
    /// `|`
    Pipe,
    /// `||`
    DoublePipe,
    /// `^`
    Caret,
    /// `~`
    Tilde,
    /// `!`
    Bang,
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<>` and `!=`
    NotEqual,
    /// `<=` and `!>`
    LessOrEqual,
    /// `>=` and `!<`
    GreaterOrEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+=`
    PlusEqual,
    /// `-=`
    MinusEqual,
    /// `*=`
    StarEqual,
    /// `/=`
    SlashEqual,
    /// `%=`
    PercentEqual,
    /// `&=`
    AmpersandEqual,
    /// `|=`
    PipeEqual,
    /// `^=`
    CaretEqual,
    /// A character no token begins with.
    Unknown,
    /// Behind the last token.
    End,
}

/// One token: its kind and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset behind its last byte.
    pub end: u32,
    /// Line of its first byte, from 1.
    pub line: u32,
}

const _: () = assert!(size_of::<Token>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted() {
        assert!(Keyword::ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for &(text, keyword) in Keyword::ALL {
            assert!(text.len() <= LONGEST, "{text}");
            assert_eq!(Keyword::find(&text.to_lowercase()), Some(keyword));
            assert_eq!(keyword.text(), text);
        }
        assert_eq!(Keyword::find("nocount"), None);
        assert_eq!(Keyword::find("SELECTS"), None);
        assert_eq!(Keyword::find(""), None);
    }
}
