"""Card fraud: payments are judged by four rules and a model, with the profile of their card.

The rules are in `headrace.cli.demos.fraud.rules`, which `headrace demo fraud` runs too. With `FRAUD_KAFKA=host:9092` payments, cards and
alerts are topics of Kafka, otherwise of the log. `FRAUD_DISORDER` says how much out of order payments may come.
"""

import os

import headrace as hr
from headrace.cli.demos.fraud.rules import Options, declare

app = hr.App("fraud")
declare(app, Options(kafka=os.environ.get("FRAUD_KAFKA"), disorder=os.environ.get("FRAUD_DISORDER", "1 second")))
