"""Runs `windlass cluster`, a Kubernetes control plane in one process, for tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_START_LIMIT = 60.0
"""The time until the control plane must be ready, in seconds. An idle machine needs less than 0.1."""

_STOP_LIMIT = 10.0
"""The time from SIGTERM to SIGKILL, in seconds."""

_POLL_INTERVAL = 0.005
"""The pause between two looks for the kubeconfig, in seconds."""


class WindlassError(Exception):
    """The control plane did not start."""


@dataclass(frozen=True)
class WindlassCluster:
    """A control plane that runs."""

    kubeconfig: Path
    """The kubeconfig of an administrator. A client reads the address and the credentials from this file."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment of this process, with `KUBECONFIG`: the `env` of a subprocess such as kubectl."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}


@pytest.fixture(scope="session")
def windlass_cluster() -> Iterator[WindlassCluster]:
    """A Kubernetes control plane with controllers and a simulated node, for all tests of the session."""
    with contextlib.ExitStack() as stack:
        try:
            started = stack.enter_context(cluster())
        except WindlassError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield started


@contextlib.contextmanager
def cluster(*arguments: str) -> Iterator[WindlassCluster]:
    """Runs a control plane until the end of the `with` block, with more arguments for `windlass cluster`, such as `--bare`.

    The control plane stops too when this process dies, even by kill -9. Raises WindlassError if the control plane does
    not start.
    """
    program = _program()
    with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
        kubeconfig, log = Path(folder, "kubeconfig"), Path(folder, "log")
        command = [program, "cluster", "--until-stdin-closes", "--kubeconfig", str(kubeconfig), *arguments]
        with log.open("wb") as output:
            try:
                # The kernel closes the write end of the pipe when this process ends.
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
            except OSError as error:
                raise WindlassError(f"cannot run {program}: {error.strerror}") from error
        try:
            _wait(process, kubeconfig, log)
            yield WindlassCluster(kubeconfig)
        finally:
            _stop(process)


def _program() -> str:
    program = os.environ.get("WINDLASS") or shutil.which("windlass")
    if program is None:
        raise WindlassError(
            "the program windlass is not on the PATH. Install it (cargo install --locked windlass-cli), "
            "or name its file in the variable WINDLASS"
        )
    return program


def _wait(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    """Waits for the kubeconfig, which is written when the control plane is ready."""
    deadline = time.monotonic() + _START_LIMIT
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise WindlassError(f"windlass cluster ended with code {process.returncode}:\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise WindlassError(f"windlass cluster was not ready within {_START_LIMIT:.0f} s:\n{_tail(log)}")
        time.sleep(_POLL_INTERVAL)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        process.stdin.close()
