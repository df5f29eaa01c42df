"""The chart of the incidents' ledger: everything one evaluation changes is one conditional write.

An evaluation judges each entry by the incident chart on the ledger it has just read, and writes all of it at once;
when somebody wrote in between, it judges again on what is there then. So any number of evaluators never open two
incidents for one problem. Each entry keeps the op that last changed it: an evaluator recognises its own write also
when another one wrote over it.
"""

from machines.chart import Chart, Row
from models import ledger as x
from models.ledger import Ledger, LedgerFacts, LedgerState
from models.step import ABSENT

KEPT = LedgerState.KEPT

LEDGER: Chart[Ledger, LedgerFacts] = Chart(
    "ledger",
    states=LedgerState,
    rows=[Row("write", (ABSENT, KEPT), KEPT, x.write, (x.changed,))],
    wrote=Ledger.wrote,
)
