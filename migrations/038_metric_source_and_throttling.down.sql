-- Lost: where the values of attempts came from, and how often their limit of cores held them back.
ALTER TABLE attempts
    DROP metric_source,
    DROP cpu_periods,
    DROP cpu_throttled;
