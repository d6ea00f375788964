-- What a summary of a sweep asks for does not grow with its trials.
CREATE INDEX trials_by_value ON trials (sweep_id, value, number) WHERE value IS NOT NULL;
CREATE INDEX attempts_out_of_memory ON attempts (trial_id) WHERE failure_kind IN ('host_oom', 'device_oom');
