-- What every driver's checks find in their database. Run by drive.py with `thawdb sql` before each program.
CREATE DATABASE checks
GO
USE checks
GO
CREATE TABLE dbo.numbers (n int NOT NULL PRIMARY KEY, square bigint NOT NULL, name nvarchar(20) NULL)
GO
INSERT dbo.numbers SELECT value, CAST(value AS bigint) * value, CASE WHEN value % 10 <> 0 THEN CONCAT(N'number ', value) END
FROM GENERATE_SERIES(1, 1000)
GO
CREATE TABLE dbo.accounts (id int NOT NULL CONSTRAINT PK_accounts PRIMARY KEY, balance decimal(9, 2) NOT NULL)
GO
INSERT dbo.accounts VALUES (1, 100), (2, 0)
GO
CREATE TABLE dbo.authors (
    id int IDENTITY(1, 1) NOT NULL CONSTRAINT PK_authors PRIMARY KEY,
    name nvarchar(50) NOT NULL CONSTRAINT UQ_authors_name UNIQUE,
    born date NULL)
GO
CREATE TABLE dbo.books (
    author int NOT NULL CONSTRAINT FK_books_author REFERENCES dbo.authors (id),
    number smallint NOT NULL,
    title varchar(100) NOT NULL CONSTRAINT DF_books_title DEFAULT '(untitled)',
    price decimal(9, 2) NULL,
    CONSTRAINT PK_books PRIMARY KEY (author, number))
GO
CREATE INDEX IX_books_title ON dbo.books (title)
GO
CREATE TABLE dbo.loaded (
    id int NOT NULL PRIMARY KEY, name nvarchar(40) NULL, amount float NULL, price decimal(9, 2) NULL, happened datetime2(3) NULL,
    flag bit NULL, raw varbinary(20) NULL, long nvarchar(max) NULL)
GO
CREATE TYPE dbo.lines AS TABLE (id bigint NOT NULL PRIMARY KEY, name nvarchar(40) NULL, price decimal(9, 2) NULL)
GO
CREATE PROCEDURE dbo.add_up @a int, @b int = 5, @sum int OUTPUT, @text nvarchar(50) OUTPUT AS
SET @sum = @a + @b
SET @text = UPPER(@text) + N'!'
RETURN 7
GO
CREATE PROCEDURE dbo.total @lines dbo.lines READONLY, @from bigint AS
SELECT COUNT(*) AS lines, SUM(price) AS price, MAX(name) AS last FROM @lines WHERE id >= @from
GO
CREATE PROCEDURE dbo.three_results @n int AS
SELECT @n AS n
PRINT 'between'
UPDATE dbo.accounts SET balance = balance WHERE id = 1
SELECT @n AS n, CAST('x' AS varchar(3)) AS text UNION ALL SELECT @n + 1, NULL
SELECT n FROM dbo.numbers WHERE n < 0
GO
CREATE PROCEDURE dbo.fails @how int AS
-- Line 2 of the procedure, and so on.
IF @how = 1
    RAISERROR('told by %s', 14, 9, 'fails')
IF @how = 2
    SELECT 1 / (@how - 2)
IF @how = 3
    INSERT dbo.accounts VALUES (1, 1);
IF @how = 4
    THROW 50123, 'thrown', 5
GO
