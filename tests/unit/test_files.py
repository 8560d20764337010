"""How files are written: whole or not at all."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from saccade.files import UnwrittenError, part, write_whole, written


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"one")
    with pytest.raises(ZeroDivisionError), written(path) as beside:
        beside.write_bytes(path.read_bytes() * (1 // 0))
    with (
        pytest.raises(UnwrittenError, match=r"file: cannot be written \(No space left on device\); what"),
        written(path),
    ):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), written(path) as beside:  # which is not about what is written
        beside.write_bytes((tmp_path / "gone").read_bytes())
    with pytest.raises(UnwrittenError, match="Is a directory"):
        write_whole(tmp_path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def left_by(process: int, path, days: float = 2):
    """What this process left half made of a file so long ago."""
    half = path.with_name(part(path.name).replace(f".{os.getpid()}.", f".{process}."))
    half.write_text("half")
    os.utime(half, (time.time() - days * 24 * 3600,) * 2)
    return half


@pytest.fixture
def killed() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_what_a_killed_process_left_beside_a_file_is_gone_with_the_next(tmp_path, killed):
    own = left_by(killed, tmp_path / "a[b")
    kept = [left_by(killed, tmp_path / "c"), left_by(os.getppid(), tmp_path / "a[b")]
    write_whole(tmp_path / "a[b", b"whole")
    assert not own.exists()
    assert all(path.exists() for path in kept)


def test_what_may_be_written_on_another_machine_is_left(tmp_path, killed):
    recent = left_by(killed, tmp_path / "file", days=0.5)  # there a process has this number, perhaps
    write_whole(tmp_path / "file", b"whole")
    assert recent.exists()


def test_a_file_of_somebody_else_is_left_whatever_it_is_called(tmp_path, killed):
    theirs = tmp_path / f"file.{killed}.part"
    theirs.write_text("of an archive that was split")
    os.utime(theirs, (0, 0))
    write_whole(tmp_path / "file", b"whole")
    assert theirs.exists()


def test_what_cannot_be_taken_away_is_left(tmp_path, killed):
    stuck = left_by(killed, tmp_path / "file")
    stuck.unlink()
    stuck.mkdir()  # as little to be unlinked as somebody else's file
    os.utime(stuck, (0, 0))
    write_whole(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert stuck.is_dir()


def test_a_name_may_be_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("가" * 85)  # 255 bytes
    write_whole(path, b"whole")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_device_that_takes_nothing_is_named():
    with pytest.raises(UnwrittenError, match="/dev/full: cannot be written"):
        write_whole(Path("/dev/full"), b"whole")


def test_below_a_file_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("plain")
    with pytest.raises(UnwrittenError, match="Not a directory"):
        write_whole(tmp_path / "file" / "below", b"whole")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there a circle of links leads to itself")
def test_links_that_lead_round_in_a_circle_lead_nowhere(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(UnwrittenError, match="one: cannot be written"):
        write_whole(one, b"whole")
    assert one.is_symlink()
