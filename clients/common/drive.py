"""Runs one driver's checks against ThawDB, without and with encryption, and counts them.

    python drive.py --server target/release/thawdb [--table FILE] NAME -- COMMAND...

Claim: a program of a driver does every check of `CHECKS`, or says that the driver has no such thing.

Method: for each setting a fresh server, on which `schema.sql` has run; the encrypted one demands encryption and has a
certificate of its own. The program finds what it needs in its environment (below), runs each check and prints one
line for each: `ok NAME`, `FAILED NAME: why` or `none NAME: why` (or Go's `--- PASS: TestDriver/NAME`). A check of `CHECKS` that it says nothing of counts
as failed; so does a program that ends badly. Ends with "N passed, M failed"; to FILE goes a line for the table.

    THAWDB_PORT, THAWDB_PASSWORD   of 127.0.0.1 and sa
    THAWDB_ENCRYPT                 off or on
    THAWDB_CERTIFICATE             the server's certificate, PEM
    THAWDB_TYPES                   path of types.json
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

COMMON = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(COMMON.parent))
from server import Server  # noqa: E402

CHECKS = [
    "login", "types", "parameters", "results", "output", "tables", "cursors", "transactions", "bulk", "cancel", "timeout",
    "errors", "metadata",
]  # fmt: skip
PROGRAM_SECONDS_MAX = 300


def certificate(folder):
    """A certificate for 127.0.0.1 and its key."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:127.0.0.1,DNS:localhost"]
    subprocess.run([*command, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def prepare(server, binary):
    """Runs schema.sql."""
    command = [binary, "sql", "-S", f"127.0.0.1,{server.port}", "-C", "-b", "-i", str(COMMON / "schema.sql")]
    done = subprocess.run(command, env=dict(os.environ, SQLCMDPASSWORD=server.password), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"schema.sql failed:\n{done.stdout}{done.stderr}")


def run_program(command, environment):
    """The program's lines, shown as they come, and its exit code; one that hangs is ended."""
    process = subprocess.Popen(["timeout", "--kill-after=10", str(PROGRAM_SECONDS_MAX), *command], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")  # fmt: skip
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return lines, process.wait()


def count(lines, status, checks):
    """Passed checks, failed ones, and those the driver does not have."""
    told = {}
    for line in lines:
        if match := re.match(r"(ok|FAILED|none) (\w+)", line):
            told[match[2]] = match[1]
        elif match := re.match(r"\s*--- (PASS|FAIL|SKIP): TestDriver/(\w+)", line):
            told[match[2]] = {"PASS": "ok", "FAIL": "FAILED", "SKIP": "none"}[match[1]]
    outcomes = list(told.values())
    missing = [name for name in checks if name not in told]
    for name in missing:
        print(f"FAILED {name}: the program said nothing of it")
    failed = outcomes.count("FAILED") + len(missing)
    if status and not failed:
        print(f"FAILED: the program ended with {status}")
        failed = 1
    return outcomes.count("ok"), failed, [name for name, outcome in told.items() if outcome == "none"]


def run_setting(arguments, encrypt):
    """A server, the program, its counts and seconds."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="thawdb-driver-") as folder:
        chain, key = certificate(pathlib.Path(folder))
        options = ["--cert", str(chain), "--key", str(key), *(["--require-encryption"] if encrypt == "on" else [])]
        with Server(arguments.server, *options) as server:
            prepare(server, arguments.server)
            environment = dict(os.environ, THAWDB_PORT=str(server.port), THAWDB_PASSWORD=server.password,
                               THAWDB_ENCRYPT=encrypt, THAWDB_CERTIFICATE=str(chain),
                               THAWDB_TYPES=str(COMMON / "types.json"))  # fmt: skip
            counts = count(*run_program(arguments.command, environment), arguments.checks.split(","))
    return (*counts, time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, help="the thawdb binary")
    parser.add_argument("--table", help="file to append a line of the table to")
    parser.add_argument("--checks", default=",".join(CHECKS), help="the checks there must be, if others than a driver's")
    parser.add_argument("name")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    passed = failed = 0
    cells = []
    for encrypt in os.environ.get("THAWDB_SETTINGS", "off on").split():
        print(f"-- {arguments.name}, encryption {encrypt}", flush=True)
        good, bad, none, seconds = run_setting(arguments, encrypt)
        passed, failed = passed + good, failed + bad
        cells.append(f"{good:6d} {bad:6d} {seconds:7.1f} s")
    if arguments.table:
        with open(arguments.table, "a") as table:
            print(f"{arguments.name:<20} {'  '.join(cells)}  {' '.join(none)}".rstrip(), file=table)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
