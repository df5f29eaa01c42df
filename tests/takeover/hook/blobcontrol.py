"""The control root of an environment on a Blob server, for agents that a test starts: called instead of `open_control`.

FDAGENT_BLOB_CONTROL says where, as JSON: `container` (its URL), `folder`, `account`, `key`, `try_seconds`.
"""

import functools
import json
import os

from fdagent.stores.blob import BlobStore
from fdagent.stores.blobauth import SharedKey
from fdagent.stores.blobhttp import open_client


@functools.cache
def client(try_seconds):
    return open_client(try_seconds=try_seconds)


def open_control(places, *, clock, ids):
    at = json.loads(os.environ["FDAGENT_BLOB_CONTROL"])
    return BlobStore(
        at["container"],
        at["folder"],
        auth=SharedKey(at["account"], at["key"], clock),
        clock=clock,
        ids=ids,
        client=client(at["try_seconds"]),
    )
