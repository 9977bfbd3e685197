"""A server for the client tests: a fresh data folder, a free port, gone at the end."""

import os
import pathlib
import secrets
import select
import shutil
import subprocess
import tempfile
import time


class Server:
    """`with Server(path_of_thawdb) as server:` starts `thawdb serve`; `server.login()` is what drivers need."""

    def __init__(self, binary, *options):
        self.binary = binary
        self.options = options
        # Upper and lower case, digits and a sign, whatever is drawn: the password policy asks for three of the four.
        self.password = "Aa1!" + secrets.token_hex(12)

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="thawdb-clients-"))
        self.start()
        return self

    def start(self):
        """Starts it, or starts it again on the same folder after `kill` or `stop`."""
        command = [self.binary, "serve", "--data", str(self.folder / "data"), "--listen", "127.0.0.1:0", *self.options]
        environment = dict(os.environ, MSSQL_SA_PASSWORD=self.password)
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.port = self._ready_port()

    def kill(self):
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """An orderly shutdown."""
        self.process.terminate()
        self.process.wait(60)

    def _ready_port(self, seconds=30):
        """Reads the line that says where the server listens."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                line = self.process.stdout.readline()
                if "ready" in line:
                    return int(line.split("127.0.0.1:")[1].split()[0].rstrip(".,"))
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}")
        raise TimeoutError("the server did not get ready")

    def login(self):
        return {"server": "127.0.0.1", "port": str(self.port), "user": "sa", "password": self.password}

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
