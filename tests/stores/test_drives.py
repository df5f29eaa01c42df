from pathlib import Path

import pytest
from storefakes import CountingIds, HandClock

from fdagent.errors import ConfigError
from fdagent.stores import local
from fdagent.stores.drives import network_drive

TABLE = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
24 22 0:22 / /proc rw shared:5 - proc proc rw
30 22 0:40 / /mnt/share rw - cifs //server/share rw,vers=3.1.1
31 30 254:1 / /mnt/share/local rw - xfs /dev/vdb rw
32 22 0:41 / /mnt/with\040blank rw master:1 propagate_from:2 - nfs4 server:/x rw
33 22 0:42 / /home/u/cloud rw - fuse.rclone remote: rw
34 22 0:43 / /var/lib/containers rw - fuse.fuse-overlayfs fuse-overlayfs rw
35 22 0:44 / /stacked rw - ext4 /dev/vdc rw
36 35 0:45 / /stacked rw - 9p host rw
37 22 0:46 / /dev/shm rw - tmpfs tmpfs rw
38 22 0:47 / /run rw - overlay overlay rw
broken line
"""


@pytest.fixture
def mounts(tmp_path):
    path = tmp_path / "mountinfo"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/srv/project/.local/dev", None),
        ("/mnt/share", "cifs"),
        ("/mnt/share/a/b", "cifs"),
        ("/mnt/shared", None),
        ("/mnt/share/local/x", None),
        ("/mnt/with blank/x", "nfs4"),
        ("/home/u/cloud/x", "fuse.rclone"),
        ("/var/lib/containers/x", None),
        ("/stacked/x", "9p"),
        ("/dev/shm/x", None),
        ("/run/x", None),
    ],
)
def test_the_longest_and_latest_mount_above_a_folder_says_what_it_is_on(mounts, folder, expected):
    assert network_drive(Path(folder), mounts=mounts) == expected


def test_a_link_is_followed_to_where_the_files_really_lie(mounts, tmp_path):
    (tmp_path / "link").symlink_to("/mnt/share")
    assert network_drive(tmp_path / "link" / "x", mounts=mounts) == "cifs"


def test_without_a_table_of_mounts_no_drive_is_named(tmp_path):
    assert network_drive(tmp_path, mounts=tmp_path / "none") is None


def test_this_very_folder_is_on_no_network_drive(tmp_path):
    assert network_drive(tmp_path) is None


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (r"C:\data\x", None),
        (r"Z:\data\x", "remote drive"),
        (r"\\server\share\x", "share"),
        (r"\\?\UNC\server\share\x", "share"),
        (r"\\?\C:\data", None),
    ],
)
def test_windows_tells_a_remote_drive_and_a_share(folder, expected):
    assert network_drive(Path(folder), drive_type=lambda root: 4 if root.startswith("Z:") else 3) == expected


def test_a_store_on_a_network_drive_is_refused_before_anything_is_touched(monkeypatch, tmp_path):
    monkeypatch.setattr(local, "network_drive", lambda folder: "nfs4")
    with pytest.raises(ConfigError, match=r"network drive \(nfs4\)"):
        local.LocalStore(tmp_path / "_control", clock=HandClock(), ids=CountingIds())
    assert not (tmp_path / "_control").exists()
