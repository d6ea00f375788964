-- Lost: which GPUs a person has cordoned, and why. They take attempts again.
ALTER TABLE devices
    DROP CONSTRAINT devices_cordon_has_a_time,
    DROP cordoned_at,
    DROP cordon_reason;
