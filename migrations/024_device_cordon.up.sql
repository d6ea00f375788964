-- A person may cordon one GPU: it takes no new attempts until a person lets it. A worker's word changes nothing of it.
ALTER TABLE devices
    ADD cordoned_at timestamptz,
    ADD cordon_reason text NOT NULL DEFAULT '',
    ADD CONSTRAINT devices_cordon_has_a_time CHECK (cordoned_at IS NOT NULL OR cordon_reason = '');
