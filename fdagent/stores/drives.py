"""Whether a folder lies on a network drive, where locks and replaces can't be trusted.

Guarantees: on Linux a folder on a file system that another machine serves is named; on Windows, on a remote drive or
share. Does not guarantee anything on other systems, or where /proc/self/mountinfo can't be read: no drive is named.
"""

import sys
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

MOUNTS = Path("/proc/self/mountinfo")

_SERVED = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "ncpfs", "coda", "davfs", "davfs2"),
        *("9p", "virtiofs", "vboxsf", "prl_fs", "drvfs"),
        *(
            "ceph",
            "lustre",
            "gpfs",
            "beegfs",
            "glusterfs",
            "orangefs",
            "pvfs2",
            "panfs",
            "ocfs2",
            "gfs",
            "gfs2",
            "acfs",
        ),
    )
)
"""By what another machine, the host of a virtual one, or several machines at once serve."""

_LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.lxcfs"})
"""File systems in user space that keep their files on this machine; every other `fuse.*` is taken to be remote."""

_DRIVE_REMOTE = 4


def network_drive(folder: Path, *, mounts: Path = MOUNTS, drive_type: Callable[[str], int] | None = None) -> str | None:
    """The kind of network drive that `folder` lies on, such as `nfs4`; None when on none.

    Args:
        folder: It need not exist yet.
        mounts: The kernel's table of mounts.
        drive_type: Windows' GetDriveType, another in tests; on Windows the system's own.
    """
    if sys.platform == "win32" or drive_type is not None:
        return _windows_drive(str(folder), drive_type or _system_drive_type)
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = _mounted(folder.resolve(), table)
    remote = kind in _SERVED or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
    return kind if remote else None


def _mounted(folder: Path, table: str) -> str:
    """The type of the file system at `folder`: the longest mount point above it, the latest of equals."""
    best, kind = -1, ""
    for line in table.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = Path(_unescaped(fields[4]))
        if len(point.parts) >= best and folder.is_relative_to(point):
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def _unescaped(text: str) -> str:
    r"""A mount point as the kernel writes it: blanks and backslashes as `\040`."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _windows_drive(folder: str, drive_type: Callable[[str], int]) -> str | None:
    if folder.upper().startswith("\\\\?\\UNC\\"):
        return "share"
    drive = PureWindowsPath(folder.removeprefix("\\\\?\\")).drive
    if drive.startswith("\\\\"):
        return "share"
    return "remote drive" if drive and drive_type(drive + "\\") == _DRIVE_REMOTE else None


def _system_drive_type(root: str) -> int:
    if sys.platform == "win32":
        import ctypes

        return int(ctypes.windll.kernel32.GetDriveTypeW(ctypes.c_wchar_p(root)))
    return 0
