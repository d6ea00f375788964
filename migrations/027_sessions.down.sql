-- Lost: which browsers are logged in. Their users log in again.
DROP TABLE sessions;
