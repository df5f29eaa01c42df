"""A Delta table with a deletion vector, written by hand: no library here writes one."""

import base64
import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = 1681511377
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def inline(deleted: list[int]) -> tuple[str, int]:
    """The row numbers as Delta writes them into the log: a 64-bit Roaring bitmap of one array container, in Z85."""
    values = b"".join(struct.pack("<H", row) for row in deleted)
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(deleted) - 1, 16) + values
    body = struct.pack("<IQI", MAGIC, 1, 0) + bitmap
    padded = body + b"\0" * (-len(body) % 4)
    return base64.b85encode(padded).decode().translate(str.maketrans(B85, Z85)), len(body)


def write_table(folder: Path, names: list[str], deleted: list[int]) -> None:
    """A table of one text column `id`, of which some rows are deleted by a vector."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    pq.write_table(pa.table({"id": names}), folder / "a.parquet")
    vector, size = inline(deleted)
    schema = {"type": "struct", "fields": [{"name": "id", "type": "string", "nullable": True, "metadata": {}}]}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {
            "metaData": {
                "id": "6a1b7e0c-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {"delta.enableDeletionVectors": "true"},
                "createdTime": 0,
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (folder / "a.parquet").stat().st_size,
                "modificationTime": 0,
                "dataChange": True,
                "stats": json.dumps({"numRecords": len(names)}),
                "deletionVector": {
                    "storageType": "i",
                    "pathOrInlineDv": vector,
                    "sizeInBytes": size,
                    "cardinality": len(deleted),
                },
            }
        },
    ]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
