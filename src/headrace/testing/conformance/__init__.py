"""Certification of a sink: what every output must do, whatever its system, tested on the real system.

from headrace.testing.conformance import CASES, Subject

@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_my_sink(case):
    case(MySubject())       # a `Subject` with an empty target

`headrace.testing.conformance.inputs` certifies a source likewise.
"""

from headrace.testing.conformance.cases import CASES as CASES
from headrace.testing.conformance.subject import COLUMNS as COLUMNS
from headrace.testing.conformance.subject import KEY as KEY
from headrace.testing.conformance.subject import Subject as Subject
