-- Lost: how long steps took, and which phase of an attempt held how much of its GPU.
ALTER TABLE attempts
    DROP steps,
    DROP step_ns,
    DROP start_peak_bytes,
    DROP training_peak_bytes,
    DROP validation_peak_bytes;
