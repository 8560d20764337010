"""How files are written: whole or not at all."""

import os
import subprocess
import sys

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


def test_what_a_killed_process_left_beside_a_file_is_gone_with_the_next(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    own, other, alive = (
        tmp_path / f"{name}.part" for name in (f"a[b.{done.pid}", f"c.{done.pid}", f"a[b.{os.getppid()}")
    )
    for path in (own, other, alive):
        path.write_text("half")
    write_whole(tmp_path / "a[b", b"whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["a[b", other.name, alive.name])
    assert part("x") == f"x.{os.getpid()}.part"


def test_what_cannot_be_taken_away_is_left(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    stuck = tmp_path / f"file.{done.pid}.part"
    stuck.mkdir()  # as little to be unlinked as somebody else's file
    write_whole(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert stuck.is_dir()


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there a circle of links leads to itself")
def test_links_that_lead_round_in_a_circle_lead_nowhere(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(UnwrittenError, match="one: cannot be written"):
        write_whole(one, b"whole")
    assert one.is_symlink()
