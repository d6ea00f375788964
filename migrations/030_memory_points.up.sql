-- What an attempt held over time: the most in each of at most 500 intervals of its life, and the busiest that it kept its
-- GPU. NULL = not measured. A worker of an earlier version writes none.
CREATE TABLE memory_points (
    attempt_id   uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    at_second    integer NOT NULL, -- since the attempt's start, when the interval begins
    host_bytes   bigint,
    device_bytes bigint,
    sm_milli     integer, -- thousandths
    PRIMARY KEY (attempt_id, at_second),
    CONSTRAINT memory_points_second CHECK (at_second >= 0),
    CONSTRAINT memory_points_figures CHECK (host_bytes >= 0 AND device_bytes >= 0 AND sm_milli BETWEEN 0 AND 1000)
);
