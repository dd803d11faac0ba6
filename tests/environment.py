"""The environment of every test: made-up credentials and the variables of the settings.

It is set on import, since Powertools reads its part when the hub's modules are imported.
"""

from __future__ import annotations

import os
from typing import Final

TABLE: Final = "relayhub-ledger"
BUCKET: Final = "relayhub-answers"
_QUEUES: Final = "https://sqs.eu-west-1.amazonaws.com/123456789012"

ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
    "AWS_LAMBDA_FUNCTION_NAME": "relay",
    "POWERTOOLS_SERVICE_NAME": "relayhub",
    "POWERTOOLS_METRICS_NAMESPACE": "relayhub",
    "TABLE_NAME": TABLE,
    "DEAD_LETTER_QUEUE_URL": f"{_QUEUES}/relayhub-hints",
    "HINT_REJECTS_QUEUE_URL": f"{_QUEUES}/relayhub-rejects",
    "INTAKE_QUEUE_URL": f"{_QUEUES}/relayhub-intake",
    "INTAKE_REJECTS_QUEUE_URL": f"{_QUEUES}/relayhub-intake-rejects",
    "ANSWERS_BUCKET": BUCKET,
    "CIRCUIT_AFTER": "0",  # A count of its own would be one more request of each doubt.
    "CORE_URL": "http://127.0.0.1:9",
}

os.environ.update(ENVIRONMENT)
