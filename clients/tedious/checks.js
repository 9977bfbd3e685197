// tedious (TDS in JavaScript itself) through the checks that common/drive.py counts.
//
// Claim and method are those of common/dbapi.py: each value is read from a literal, sent as a parameter, read back, and
// compared by the server with the literal. Run by drive.py; with names of checks as arguments only those run.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

// Where clients/run keeps the packages, apart from the sources.
const packages = createRequire(path.join(process.env.THAWDB_NODE_PACKAGES || __dirname, "package.json"));
const { Connection, Request, TYPES, ISOLATION_LEVEL } = packages("tedious");

const ENCRYPTED = process.env.THAWDB_ENCRYPT === "on";
const ENDLESS = "DECLARE @n int = 1 WHILE 1 = 1 SET @n = @n + 1 - 1";

class Without extends Error {}

function connect(settings = {}) {
    const options = {
        port: Number(process.env.THAWDB_PORT),
        database: settings.database || "checks",
        encrypt: ENCRYPTED,
        trustServerCertificate: false,
        cryptoCredentialsDetails: { ca: fs.readFileSync(process.env.THAWDB_CERTIFICATE) },
        serverName: "localhost",
        useUTC: true,
        requestTimeout: settings.timeout || 60_000,
        rowCollectionOnRequestCompletion: false,
    };
    const password = settings.password || process.env.THAWDB_PASSWORD;
    const authentication = { type: "default", options: { userName: "sa", password } };
    return new Promise((resolve, reject) => {
        const connection = new Connection({ server: "localhost", options, authentication });
        connection.on("errorMessage", (error) => (connection.lastError = error));
        connection.on("infoMessage", (info) => (connection.infos ||= []).push(info.message));
        connection.connect((error) => (error ? reject(Object.assign(error, { server: connection.lastError })) : resolve(connection)));
    });
}

// Runs a request; resolves to its result sets, row count, outputs and status. `how` is the connection's method.
function run(connection, sql, parameters = [], how = "execSql", started = () => {}) {
    return new Promise((resolve, reject) => {
        const result = { sets: [], outputs: {}, status: undefined, count: 0, names: [] };
        const errors = [];
        const request = new Request(sql, (error, count) => {
            connection.removeListener("errorMessage", note);
            result.count = count;
            if (error) reject(Object.assign(error, { server: errors[errors.length - 1] || error }));
            else resolve(result);
        });
        const note = (error) => errors.push(error);
        connection.on("errorMessage", note);
        for (const [name, type, value, options, output] of parameters) {
            if (output) request.addOutputParameter(name, type, value, options);
            else request.addParameter(name, type, value, options);
        }
        request.on("columnMetadata", (columns) => {
            result.names.push(columns.map((column) => column.colName));
            result.sets.push([]);
        });
        request.on("row", (row) => result.sets[result.sets.length - 1].push(row.map((column) => column.value)));
        request.on("returnValue", (name, value) => (result.outputs[name] = value));
        request.on("doneProc", (_count, _more, status) => (result.status = status));
        connection[how](request);
        started(request);
    });
}

async function rows(connection, sql, parameters) {
    return (await run(connection, sql, parameters)).sets[0];
}

async function within(work, settings) {
    const connection = await connect(settings);
    try {
        return await work(connection);
    } finally {
        connection.close();
    }
}

async function failing(connection, sql, parameters) {
    try {
        await run(connection, sql, parameters);
    } catch (error) {
        return error.server;
    }
    throw new Error(`no error from ${sql}`);
}

const day = (...parts) => new Date(Date.UTC(...parts));

// How each type's values are sent.
function typed(name, value) {
    const length = Number((name.match(/\((\d+)/) || [])[1]);
    const [, precision, scale] = name.match(/\((\d+),(\d+)\)/) || [];
    const bare = name.replace(/\(.*/, "");
    const at = { bit: "Bit", tinyint: "TinyInt", smallint: "SmallInt", int: "Int", float: "Float", real: "Real", text: "Text", ntext: "NText",
        date: "Date", datetime: "DateTime", smalldatetime: "SmallDateTime", uniqueidentifier: "UniqueIdentifier", image: "Image",
        bigint: "BigInt", money: "Money", smallmoney: "SmallMoney", char: "Char", nchar: "NChar", binary: "Binary" };
    if (bare === "decimal" || bare === "numeric") return [TYPES.Decimal, { precision: Number(precision), scale: Number(scale) }];
    if (bare === "time" || bare === "datetime2" || bare === "datetimeoffset") {
        return [{ time: TYPES.Time, datetime2: TYPES.DateTime2, datetimeoffset: TYPES.DateTimeOffset }[bare], { scale: length }];
    }
    if (bare === "varchar" || bare === "nvarchar" || bare === "varbinary") {
        const type = { varchar: TYPES.VarChar, nvarchar: TYPES.NVarChar, varbinary: TYPES.VarBinary }[bare];
        return [type, { length: Number.isNaN(length) ? "max" : length }];
    }
    if (bare === "char" || bare === "nchar" || bare === "binary") return [TYPES[at[bare]], { length }];
    return [TYPES[at[bare]], {}];
}

// Values that pass through a float of JavaScript, which has 53 bits.
const INEXACT = /^-?\d{16,}|^-?\d+\.\d{10}$|99999999999999\.9999|^-?922337203685477/;

async function roundTrip(connection, table, entry) {
    const name = entry.type;
    const wide = entry.as || name;
    const literals = ["NULL", ...entry.values];
    if (entry.read_only) {
        for (const literal of literals) {
            const [[value]] = await rows(connection, `SELECT CAST(${literal} AS ${name})`);
            assert.equal(value === null, literal === "NULL", `${name} ${literal}`);
        }
        return;
    }
    await run(connection, `CREATE TABLE ${table} (id int NOT NULL PRIMARY KEY, v ${name} NULL)`);
    for (const [id, literal] of literals.entries()) {
        if (/decimal|numeric|money|bigint/.test(name) && INEXACT.test(literal) && name !== "bigint") continue;
        const cast = `CAST(${literal} AS ${name})`;
        const [[value]] = await rows(connection, `SELECT ${cast}`);
        const [type, options] = typed(name, value);
        const inserted = await run(connection, `INSERT ${table} (id, v) VALUES (@id, @v)`, [["id", TYPES.Int, id], ["v", type, value, options]]);
        assert.equal(inserted.count, 1, `${cast}: rows inserted`);
        const [[back]] = await rows(connection, `SELECT v FROM ${table} WHERE id = ${id}`);
        assert.deepEqual(back, value, `${cast} read back`);
        // A datetimeoffset comes as a moment, without its offset.
        const bytes = (what) => (name.startsWith("datetimeoffset") ? what : `CAST(CAST(${what} AS ${wide}) AS varbinary(max))`);
        const same = `(${bytes("v")} = ${bytes(cast)} OR (v IS NULL AND ${cast} IS NULL))`;
        const [[count]] = await rows(connection, `SELECT COUNT(*) FROM ${table} WHERE id = ${id} AND ${same}`);
        assert.equal(count, 1, `${cast} was stored as something else`);
    }
}

const checks = {
    async login() {
        await within(async (connection) => {
            const text = "SELECT encrypt_option, DB_NAME() FROM sys.dm_exec_connections WHERE session_id = @@SPID";
            assert.deepEqual(await rows(connection, text), [[ENCRYPTED ? "TRUE" : "FALSE", "checks"]]);
        });
        await assert.rejects(connect({ password: "wrong" }), (error) => error.server.number === 18456);
        await assert.rejects(connect({ database: "nonesuch" }), /nonesuch|Login failed/);
    },

    async types() {
        await within(async (connection) => {
            const known = [
                ["CAST(-42 AS int)", -42],
                ["CAST(9223372036854775807 AS bigint)", "9223372036854775807"],
                ["CAST(12345678.9 AS decimal(12,3))", 12345678.9],
                ["CAST(0.1 AS float)", 0.1],
                ["N'Zoë 日本 😀'", "Zoë 日本 😀"],
                ["CAST(N'€ ß' AS varchar(10))", "€ ß"],
                ["CAST(1 AS bit)", true],
                ["0x00FF10", Buffer.from([0, 255, 16])],
                ["CAST('2008-07-31' AS date)", day(2008, 6, 31)],
                ["CAST('2008-07-31T12:34:56.787' AS datetime)", day(2008, 6, 31, 12, 34, 56, 787)],
                ["CAST('2008-07-31 12:34:56.123 +02:00' AS datetimeoffset(3))", day(2008, 6, 31, 10, 34, 56, 123)],
                ["CAST('00112233-4455-6677-8899-AABBCCDDEEFF' AS uniqueidentifier)", "00112233-4455-6677-8899-AABBCCDDEEFF"],
                ["CAST(CAST(42 AS int) AS sql_variant)", 42],
                ["CAST(NULL AS int)", null],
            ];
            for (const [literal, value] of known) {
                const [[got]] = await rows(connection, `SELECT ${literal}`);
                // Dates carry a nanosecondsDelta beside what they are.
                if (value instanceof Date) assert.equal(got.getTime(), value.getTime(), literal);
                else assert.deepEqual(got, value, literal);
            }
            const entries = JSON.parse(fs.readFileSync(process.env.THAWDB_TYPES, "utf8"));
            for (const [at, entry] of entries.entries()) {
                if ((entry.digits || 0) <= 3) await roundTrip(connection, `dbo.type_${at}`, entry);
            }
        });
    },

    async parameters() {
        await within(async (connection) => {
            for (let n = 1; n < 30; n++) {
                const found = await rows(connection, "SELECT n, name FROM dbo.numbers WHERE n = @n AND square = @square", [["n", TYPES.Int, n], ["square", TYPES.BigInt, n * n]]);
                assert.deepEqual(found, [[n, n % 10 === 0 ? null : `number ${n}`]]);
            }
            const [[none]] = await rows(connection, "SELECT COUNT(*) FROM dbo.numbers WHERE name = @name", [["name", TYPES.NVarChar, "' OR 1 = 1 --"]]);
            assert.equal(none, 0);
            // Prepared once (sp_prepare), executed often (sp_execute).
            await new Promise((resolve, reject) => {
                const sums = [];
                const request = new Request("SELECT @a + @b AS sum, @c AS text", (error) => {
                    if (error) return reject(error);
                    if (sums.length === 20) {
                        request.removeAllListeners("prepared");
                        assert.deepEqual(sums, Array.from({ length: 20 }, (_, n) => [n + 5, `é${n}`]));
                        connection.unprepare(request);
                        request.callback = (unprepared) => (unprepared ? reject(unprepared) : resolve());
                        return undefined;
                    }
                    return connection.execute(request, { a: sums.length, b: 5, c: `é${sums.length}` });
                });
                request.addParameter("a", TYPES.Int);
                request.addParameter("b", TYPES.Int);
                request.addParameter("c", TYPES.NVarChar);
                request.on("row", (row) => sums.push(row.map((column) => column.value)));
                request.on("prepared", () => connection.execute(request, { a: 0, b: 5, c: "é0" }));
                connection.prepare(request);
            });
            assert.deepEqual(await rows(connection, "SELECT 1"), [[1]]);
        });
    },

    async results() {
        await within(async (connection) => {
            const loop = await run(connection, "DECLARE @n int = 0 WHILE @n < 3 BEGIN SET @n = @n + 1 SELECT @n AS n, @n * @n AS square END", [], "execSqlBatch");
            assert.deepEqual(loop.sets, [[[1, 1]], [[2, 4]], [[3, 9]]]);
            assert.deepEqual(loop.names[0], ["n", "square"]);
            const procedure = await run(connection, "dbo.three_results", [["n", TYPES.Int, 4]], "callProcedure");
            assert.deepEqual(procedure.sets, [[[4]], [[4, "x"], [5, null]], []]);
            assert.ok(connection.infos.includes("between"), "the PRINT");
            const [[large]] = await rows(connection, "SELECT REPLICATE(CAST('z' AS varchar(max)), 1000000)");
            assert.equal(large.length, 1_000_000);
            const many = await rows(connection, "SELECT a.n, b.n FROM dbo.numbers AS a CROSS JOIN dbo.numbers AS b WHERE a.n <= 20");
            assert.equal(many.length, 20_000);
        });
    },

    async output() {
        await within(async (connection) => {
            for (const [given, sum] of [[[["a", TYPES.Int, 1], ["b", TYPES.Int, 2]], 3], [[["a", TYPES.Int, 10]], 15], [[["a", TYPES.Int, -5], ["b", TYPES.Int, null]], null]]) {
                const wanted = [["sum", TYPES.Int, null, {}, true], ["text", TYPES.NVarChar, "é", { length: 50 }, true]];
                const told = await run(connection, "dbo.add_up", [...given, ...wanted], "callProcedure");
                assert.deepEqual([told.outputs, told.status], [{ sum, text: "É!" }, 7]);
            }
            const told = await run(connection, "SET @n = @n * 2", [["n", TYPES.Int, 21, {}, true]]);
            assert.equal(told.outputs.n, 42);
        });
    },

    async tables() {
        await within(async (connection) => {
            const columns = [{ name: "id", type: TYPES.BigInt }, { name: "name", type: TYPES.NVarChar, length: 40 }, { name: "price", type: TYPES.Decimal, precision: 9, scale: 2 }];
            const lines = Array.from({ length: 1000 }, (_, n) => [n + 1, (n + 1) % 3 === 0 ? null : `line ${String(n + 1).padStart(4, "0")} é`, 0.25]);
            const total = async (sent, start) => {
                const value = { name: "lines", schema: "dbo", columns, rows: sent };
                return (await run(connection, "dbo.total", [["lines", TYPES.TVP, value], ["from", TYPES.BigInt, start]], "callProcedure")).sets[0];
            };
            assert.deepEqual(await total(lines, 501), [[500, 125, "line 1000 é"]]);
            assert.deepEqual(await total([], 1), [[0, null, null]]);
            await assert.rejects(total([lines[0], lines[0]], 1), (error) => error.server.number === 2627);
        });
    },

    async cursors() {
        await within(async (connection) => {
            await run(connection, "DECLARE every CURSOR GLOBAL SCROLL STATIC FOR SELECT n, name FROM dbo.numbers WHERE n <= 5 ORDER BY n OPEN every", [], "execSqlBatch");
            for (const [how, n] of [["NEXT", 1], ["LAST", 5], ["PRIOR", 4], ["FIRST", 1], ["ABSOLUTE 3", 3], ["RELATIVE 2", 5]]) {
                assert.deepEqual((await run(connection, `FETCH ${how} FROM every`, [], "execSqlBatch")).sets, [[[n, `number ${n}`]]], how);
            }
            await run(connection, "CLOSE every DEALLOCATE every", [], "execSqlBatch");
        });
    },

    async transactions() {
        const balances = "SELECT balance FROM dbo.accounts ORDER BY id";
        const call = (connection, method, ...given) => new Promise((resolve, reject) => connection[method]((error) => (error ? reject(error) : resolve()), ...given));
        await within((connection) => within(async (other) => {
            for (const end of ["rollbackTransaction", "commitTransaction"]) {
                const before = await rows(other, balances);
                await call(connection, "beginTransaction", "", ISOLATION_LEVEL.READ_COMMITTED);
                await run(connection, "UPDATE dbo.accounts SET balance = balance - 30 WHERE id = 1");
                await run(connection, "UPDATE dbo.accounts SET balance = balance + 30 WHERE id = 2");
                assert.deepEqual(await rows(connection, "SELECT @@TRANCOUNT, balance FROM dbo.accounts WHERE id = 2"), [[1, before[1][0] + 30]]);
                assert.deepEqual(await rows(other, balances), before);
                await call(connection, end);
                const after = end === "rollbackTransaction" ? before : [[before[0][0] - 30], [before[1][0] + 30]];
                assert.deepEqual(await rows(connection, balances), after);
            }
            await call(connection, "beginTransaction");
            await call(connection, "saveTransaction", "here");
            await run(connection, "DELETE dbo.accounts");
            await call(connection, "rollbackTransaction", "here");
            assert.deepEqual(await rows(connection, "SELECT COUNT(*), @@TRANCOUNT FROM dbo.accounts"), [[2, 1]]);
            await call(connection, "rollbackTransaction");
        }));
    },

    async bulk() {
        await within(async (connection) => {
            const count = 20_000;
            const row = (n) => [n, n % 7 === 0 ? null : `Zeile ${n} für alle`, n / 4, n / 100, day(2008, 6, 31, 0, 0, n, n % 1000), n % 2 === 0, Buffer.from([n >> 8, n & 255]), "ü".repeat(1 + (n % 50))];
            const begin = Date.now();
            const loaded = await new Promise((resolve, reject) => {
                const load = connection.newBulkLoad("dbo.loaded", { tableLock: true }, (error, n) => (error ? reject(error) : resolve(n)));
                load.addColumn("id", TYPES.Int, { nullable: false });
                load.addColumn("name", TYPES.NVarChar, { length: 40, nullable: true });
                load.addColumn("amount", TYPES.Float, { nullable: true });
                load.addColumn("price", TYPES.Decimal, { precision: 9, scale: 2, nullable: true });
                load.addColumn("happened", TYPES.DateTime2, { scale: 3, nullable: true });
                load.addColumn("flag", TYPES.Bit, { nullable: true });
                load.addColumn("raw", TYPES.VarBinary, { length: 20, nullable: true });
                load.addColumn("long", TYPES.NVarChar, { length: Infinity, nullable: true });
                connection.execBulkLoad(load, Array.from({ length: count }, (_, n) => row(n)));
            });
            console.log(`  ${Math.round(count / ((Date.now() - begin) / 1000))} rows a second`);
            assert.equal(loaded, count);
            const sums = "SELECT COUNT(*), COUNT(name), SUM(CAST(id AS bigint)), SUM(LEN(long)) FROM dbo.loaded";
            const letters = Array.from({ length: count }, (_, n) => 1 + (n % 50)).reduce((a, b) => a + b);
            assert.deepEqual(await rows(connection, sums), [[count, count - Math.ceil(count / 7), String((count * (count - 1)) / 2), String(letters)]]);
            for (const n of [0, 1, 999, count - 1]) {
                const [got] = await rows(connection, `SELECT * FROM dbo.loaded WHERE id = ${n}`);
                got[4] = new Date(got[4].getTime());
                assert.deepEqual(got, row(n), `row ${n}`);
            }
        });
    },

    async cancel() {
        await within(async (connection) => {
            const begin = Date.now();
            await assert.rejects(run(connection, ENDLESS, [], "execSql", () => setTimeout(() => connection.cancel(), 500)), /Canceled|cancel/i);
            assert.ok(Date.now() - begin < 20_000, "the cancellation took too long");
            assert.deepEqual(await rows(connection, "SELECT 5"), [[5]]);
        });
    },

    async timeout() {
        await within(async (connection) => {
            await assert.rejects(run(connection, ENDLESS), /timeout/i);
            assert.deepEqual(await rows(connection, "SELECT 6"), [[6]]);
        }, { timeout: 1000 });
    },

    async errors() {
        const cases = [
            ["\n\nSELECT * FROM dbo.nonesuch", 208, 16, 1, 3, "", "Invalid object name 'dbo.nonesuch'."],
            ["\nINSERT dbo.accounts VALUES (1, 1)", 2627, 14, 1, 2, "", "Violation of PRIMARY KEY constraint 'PK_accounts'."],
            ["DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 16, 1, 4, "", "Divide by zero error encountered."],
            ["SELECT\n FROM", 156, 15, 1, 2, "", "Incorrect syntax near the keyword 'FROM'."],
            ["INSERT dbo.books (author, number) VALUES (999, 1)", 547, 16, 0, 1, "", 'conflicted with the FOREIGN KEY constraint "FK_books_author"'],
            ["EXEC dbo.fails 1", 50000, 14, 9, 4, "fails", "told by fails"],
            ["EXEC dbo.fails 2", 8134, 16, 1, 6, "fails", "Divide by zero error encountered."],
            ["EXEC dbo.fails 3", 2627, 14, 1, 8, "fails", "Violation of PRIMARY KEY constraint"],
            ["EXEC dbo.fails 4", 50123, 16, 5, 10, "fails", "thrown"],
        ];
        await within(async (connection) => {
            for (const [sql, number, severity, state, line, procedure, message] of cases) {
                const told = await failing(connection, sql);
                const got = [told.number, told.class, told.state, told.lineNumber, (told.procName || "").replace("dbo.", "")];
                assert.deepEqual(got, [number, severity, state, line, procedure], sql);
                assert.ok(told.message.includes(message), told.message);
                assert.deepEqual(await rows(connection, "SELECT 7"), [[7]]);
            }
        });
    },

    async metadata() {
        await within(async (connection) => {
            const named = async (procedure, parameters, ...columns) => {
                const result = await run(connection, procedure, parameters, "callProcedure");
                return result.sets[0].map((row) => columns.map((column) => row[result.names[0].indexOf(column)]));
            };
            const text = (name, value) => [name, TYPES.NVarChar, value];
            assert.deepEqual(await named("sp_columns_100", [text("table_name", "books"), ["ODBCVer", TYPES.Int, 3]], "COLUMN_NAME", "TYPE_NAME", "DATA_TYPE"),
                [["author", "int", 4], ["number", "smallint", 5], ["title", "varchar", 12], ["price", "decimal", 3]]);
            assert.deepEqual(await named("sp_pkeys", [text("table_name", "books")], "COLUMN_NAME", "PK_NAME"), [["author", "PK_books"], ["number", "PK_books"]]);
            assert.deepEqual(await named("sp_fkeys", [text("pktable_name", "authors")], "FKTABLE_NAME", "FKCOLUMN_NAME", "FK_NAME"), [["books", "author", "FK_books_author"]]);
            assert.deepEqual(await named("sp_describe_first_result_set", [text("tsql", "SELECT n, name FROM dbo.numbers")], "name", "system_type_name"),
                [["n", "int"], ["name", "nvarchar(20)"]]);
        });
    },
};

async function main() {
    let failed = 0;
    const wanted = process.argv.slice(2);
    for (const [name, check] of Object.entries(checks)) {
        if (wanted.length && !wanted.includes(name)) continue;
        try {
            await check();
            console.log(`ok ${name}`);
        } catch (error) {
            if (error instanceof Without) {
                console.log(`none ${name}: ${error.message}`);
                continue;
            }
            failed += 1;
            console.log(error.stack);
            console.log(`FAILED ${name}: ${String(error.message).split("\n").slice(0, 12).join(" ")}`);
        }
    }
    process.exit(failed ? 1 : 0);
}

main();
