-- What each host and each GPU held over time: the most that its worker told of in each minute. An older worker tells the same,
-- an older server stores none.
CREATE TABLE machine_points (
    host_id        uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    device_id      text NOT NULL DEFAULT '', -- empty = the host itself
    at             timestamptz NOT NULL, -- when the minute begins
    memory_bytes   bigint NOT NULL, -- in all
    reserved_bytes bigint NOT NULL,
    measured_bytes bigint, -- what attempts held; NULL = nothing was measured of any
    others_bytes   bigint, -- used outside Berth; NULL = not measured
    activity_milli bigint, -- thousandths of the GPU's SMs that worked; NULL = not measured
    cpu_milli      bigint NOT NULL DEFAULT 0, -- reserved of a host
    attempts       integer NOT NULL,
    PRIMARY KEY (host_id, device_id, at)
);

CREATE INDEX machine_points_age ON machine_points (at);
