"""The plugin itself, in sessions of pytest that these tests start."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlparse

import pytest
from kubernetes import client, config

import pytest_windlass


def server(kubeconfig):
    """Returns the host and port of a cluster."""
    url = urlparse(config.new_client_from_config(str(kubeconfig)).configuration.host)
    return url.hostname, url.port


def accepts(address):
    with socket.socket() as connection:
        return connection.connect_ex(address) == 0


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_clusters_run_beside_each_other_and_end_with_their_blocks():
    with pytest_windlass.cluster() as first, pytest_windlass.cluster("--bare") as second:
        addresses = [server(first.kubeconfig), server(second.kubeconfig)]
        assert addresses[0] != addresses[1]
        for cluster in (first, second):
            core = client.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))
            assert "default" in [namespace.metadata.name for namespace in core.list_namespace().items]
            assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600
            assert cluster.environ["KUBECONFIG"] == str(cluster.kubeconfig)
    assert not any(accepts(address) for address in addresses)
    assert not first.kubeconfig.exists()


def test_all_tests_of_a_session_share_a_cluster(pytester):
    pytester.makepyfile(
        """
        seen = []

        def test_one(windlass_cluster):
            seen.append(windlass_cluster)

        def test_two(windlass_cluster):
            assert seen == [windlass_cluster]
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_missing_program_is_named_without_a_traceback(pytester, monkeypatch):
    pytester.makepyfile("def test_one(windlass_cluster): pass")
    monkeypatch.delenv("WINDLASS", raising=False)
    monkeypatch.setenv("PATH", str(pytester.path))
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*windlass is not on the PATH*WINDLASS"])
    for part in ["Traceback", "def _program", "During handling"]:
        assert part not in result.stdout.str()


def test_a_program_that_ends_or_cannot_run_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(pytest_windlass.WindlassError, match=r"(?s)code 2.*--bogus"):
        with pytest_windlass.cluster("--bogus"):
            pass
    monkeypatch.setenv("WINDLASS", str(tmp_path / "absent"))
    with pytest.raises(pytest_windlass.WindlassError, match="cannot run .*absent"):
        with pytest_windlass.cluster():
            pass


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_cluster_ends_when_pytest_is_killed(pytester):
    pytester.makepyfile(
        """
        import pathlib, time

        def test_one(windlass_cluster):
            pathlib.Path("draft").write_text(str(windlass_cluster.kubeconfig))
            pathlib.Path("draft").rename("path")
            time.sleep(600)
        """
    )
    path = Path(pytester.path, "path")
    session = subprocess.Popen([sys.executable, "-m", "pytest"], cwd=pytester.path, stdout=subprocess.DEVNULL)
    try:
        wait_until(path.exists)
        address = server(path.read_text())
        assert accepts(address)
    finally:
        session.send_signal(signal.SIGKILL)
        session.wait()
    wait_until(lambda: not accepts(address))
