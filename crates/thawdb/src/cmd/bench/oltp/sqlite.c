/* The rival in one process: the same rows and statements through SQLite's C interface. Compiled by `thawdb bench oltp
 * --sqlite` with the system's compiler and library.
 *
 *   sqlite FILE SCALE create
 *   sqlite FILE SCALE select|insert THREADS SECONDS       one connection a thread, statements prepared once
 *
 * WAL, synchronous=FULL: a commit is on stable storage before it is acknowledged. Prints one line:
 *   operations seconds cpu_seconds, then one latency in microseconds a line, of every operation. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const char *path;
static long accounts, seconds;
static int inserts;
static pthread_barrier_t together;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(sqlite3 *db, const char *what) {
    fprintf(stderr, "%s: %s\n", what, db ? sqlite3_errmsg(db) : "no database");
    exit(1);
}

static void run(sqlite3 *db, const char *text) {
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK) fail(db, text);
}

static sqlite3 *open_database(void) {
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) fail(db, path);
    sqlite3_busy_timeout(db, 60000);
    run(db, "PRAGMA journal_mode=WAL");
    run(db, "PRAGMA synchronous=FULL");
    run(db, "PRAGMA cache_size=-1048576");
    return db;
}

static void create(void) {
    sqlite3 *db = open_database();
    sqlite3_stmt *statement;
    char filler[85];
    memset(filler, ' ', 84);
    filler[84] = 0;
    run(db, "CREATE TABLE pgbench_accounts (aid INTEGER PRIMARY KEY, bid INT, abalance INT, filler CHAR(84))");
    run(db, "CREATE TABLE journal (id INTEGER PRIMARY KEY, aid INT NOT NULL, delta INT NOT NULL, note TEXT NOT NULL)");
    run(db, "BEGIN");
    if (sqlite3_prepare_v2(db, "INSERT INTO pgbench_accounts VALUES (?, ?, 0, ?)", -1, &statement, NULL) != SQLITE_OK) fail(db, "prepare");
    for (long aid = 1; aid <= accounts; aid++) {
        sqlite3_bind_int64(statement, 1, aid);
        sqlite3_bind_int64(statement, 2, (aid - 1) / 100000 + 1);
        sqlite3_bind_text(statement, 3, filler, 84, SQLITE_STATIC);
        if (sqlite3_step(statement) != SQLITE_DONE) fail(db, "insert");
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    run(db, "COMMIT");
    run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(db);
}

struct worker {
    pthread_t thread;
    unsigned long draw;
    long count, room;
    float *latencies;
};

static void *work(void *argument) {
    struct worker *me = argument;
    sqlite3 *db = open_database();
    sqlite3_stmt *statement;
    const char *text = inserts ? "INSERT INTO journal (aid, delta, note) VALUES (?, ?, 'a row of the benchmark')"
                               : "SELECT abalance FROM pgbench_accounts WHERE aid = ?";
    if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK) fail(db, text);
    pthread_barrier_wait(&together);
    for (double start = now(), at = start; at - start < seconds;) {
        me->draw = me->draw * 6364136223846793005UL + 1442695040888963407UL;
        sqlite3_bind_int64(statement, 1, 1 + (long)((me->draw >> 33) % (unsigned long)accounts));
        if (inserts) sqlite3_bind_int64(statement, 2, (long)(me->draw >> 40) % 5000);
        int outcome = sqlite3_step(statement);
        if (inserts ? outcome != SQLITE_DONE : outcome != SQLITE_ROW) fail(db, "step");
        if (!inserts && sqlite3_column_int(statement, 0) != 0) fail(db, "a balance is not 0");
        sqlite3_reset(statement);
        if (me->count == me->room) {
            me->room = me->room ? me->room * 2 : 1 << 16;
            me->latencies = realloc(me->latencies, me->room * sizeof(float));
        }
        double end = now();
        me->latencies[me->count++] = (end - at) * 1e6;
        at = end;
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    path = argv[1];
    accounts = atol(argv[2]) * 100000;
    if (!strcmp(argv[3], "create")) {
        create();
        return 0;
    }
    if (argc < 6) return 2;
    inserts = !strcmp(argv[3], "insert");
    int threads = atoi(argv[4]);
    seconds = atol(argv[5]);
    struct worker *workers = calloc(threads, sizeof *workers);
    pthread_barrier_init(&together, NULL, threads);
    for (int i = 0; i < threads; i++) {
        workers[i].draw = (i + 1) * 0x9E3779B97F4A7C15UL | 1;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    long total = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        total += workers[i].count;
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    printf("%ld %ld %f\n", total, seconds, cpu);
    for (int i = 0; i < threads; i++)
        for (long k = 0; k < workers[i].count; k++) printf("%.1f\n", workers[i].latencies[k]);
    return 0;
}
