-- Where the value of an attempt came from: file, stdout, tensorboard or shim; empty = nothing reported the objective, or a
-- worker of before 038 ran it. And of the periods of 0.1 s in which its processes ran, in how many their limit of cores held them back.
ALTER TABLE attempts
    ADD metric_source text NOT NULL DEFAULT '' CONSTRAINT attempts_metric_source CHECK (metric_source IN ('', 'file', 'stdout', 'tensorboard', 'shim')),
    ADD cpu_periods bigint NOT NULL DEFAULT 0,
    ADD cpu_throttled bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT attempts_cpu_throttled CHECK (0 <= cpu_throttled AND cpu_throttled <= cpu_periods);
