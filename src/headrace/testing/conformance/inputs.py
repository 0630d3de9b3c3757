"""Certification of an input: what every source of a job must do, whatever its system, tested on the real system.

from headrace.testing.conformance.inputs import SOURCE_CASES, SourceSubject

@pytest.mark.parametrize("case", SOURCE_CASES, ids=lambda case: case.__name__)
def test_my_source(case):
    subject = MySubject()   # a `SourceSubject` with an empty stream
    if reason := subject.inapplicable.get(case.__name__):
        pytest.skip(reason)
    case(subject)
"""

from headrace.testing.conformance.source_cases import SOURCE_CASES
from headrace.testing.conformance.source_subject import SOURCE_COLUMNS, STREAM, SourceSubject, Transaction

__all__ = ["SOURCE_CASES", "SOURCE_COLUMNS", "STREAM", "SourceSubject", "Transaction"]
