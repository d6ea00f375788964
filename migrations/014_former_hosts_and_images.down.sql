-- Lost: what hosts were before they came back smaller, and which sweeps' images they lack.
DROP TABLE missing_images;
ALTER TABLE hosts
    DROP COLUMN former_memory_bytes,
    DROP COLUMN former_cpu_milli,
    DROP COLUMN shrunk_at;
