-- Lost: why messages to Temporal were not delivered (the messages stay).
ALTER TABLE outbox DROP last_error;
DROP TABLE schema_compat;
