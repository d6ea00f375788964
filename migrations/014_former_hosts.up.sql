-- former is what a host had for attempts before it came back smaller, at shrunk_at: a trial that needs as much waits for a
-- while. NULL = it did not come back smaller.
ALTER TABLE hosts
    ADD former_memory_bytes bigint,
    ADD former_cpu_milli bigint,
    ADD shrunk_at timestamptz;
