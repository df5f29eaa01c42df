"""What a person may do about a shared record that can't be read: its file, and what may safely become of it.

Guarantees: the sentence names the record's key and its folder's way out, none of which loses a run or lets two agents
run the same. Nothing here is done by itself: a damaged record is left alone until a person or a newer version reads it.
"""

from collections.abc import Callable
from typing import TypeVar

from fdagent.errors import BadRecord, NewerContract

R = TypeVar("R")

ANY = "Mend that file, or delete it once nobody needs what it holds."
WAYS = {
    "agents": "Delete that file: the agent of that name, if it lives, writes it anew; until then nobody takes over "
    "what it holds.",
    "leases": "Delete that file once no worker is at that table.",
    "requests": "Ask anew under another id: the agents reject one whose file was unreadable for a minute.",
    "status": "Once no agent works on it, delete first requests/{id}.json, for which it would be run anew, and then that "
    "file.",
}
"""By the key's folder."""


def naming(key: str, parse: Callable[[bytes], R]) -> Callable[[bytes], R]:
    """The same parser, whose errors name the record and the way out.

    Args:
        key: The record's key, such as `status/<id>.json`.
        parse: Bytes to a record; raises BadRecord or NewerContract.
    """

    def parsed(body: bytes) -> R:
        try:
            return parse(body)
        except (BadRecord, NewerContract) as err:
            folder, _, name = key.partition("/")
            way = WAYS.get(folder, ANY).format(id=name.removesuffix(".json"))
            newer = isinstance(err, NewerContract)
            what = f"The record {key} of the control root can't be used: {err.what}"
            raise type(err)(what, fix=err.fix if newer else way) from err

    return parsed
