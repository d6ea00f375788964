-- Whoever watches hears when a host or a GPU takes attempts, takes none, or says why. A dozen statements change that, those
-- of older servers included, so it is told here. A worker's round that changes nothing of it writes nothing.
CREATE OR REPLACE FUNCTION announce_host() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (kind, subject, data) VALUES ('host.state', NEW.id::text, jsonb_build_object(
        'state', NEW.state, 'problem', NEW.problem, 'cordoned', NEW.cordoned_at IS NOT NULL,
        'removed', coalesce(NEW.removed_at >= NEW.last_seen_at, false)));
    PERFORM pg_notify('berth_events', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER hosts_announce_new AFTER INSERT ON hosts FOR EACH ROW EXECUTE FUNCTION announce_host();
CREATE OR REPLACE TRIGGER hosts_announce AFTER UPDATE ON hosts FOR EACH ROW
    WHEN ((OLD.state, OLD.problem, OLD.cordoned_at IS NULL, OLD.boot_id, coalesce(OLD.removed_at >= OLD.last_seen_at, false))
        IS DISTINCT FROM (NEW.state, NEW.problem, NEW.cordoned_at IS NULL, NEW.boot_id, coalesce(NEW.removed_at >= NEW.last_seen_at, false)))
    EXECUTE FUNCTION announce_host();

CREATE OR REPLACE FUNCTION announce_device() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (kind, subject, data) VALUES ('device.state', NEW.id, jsonb_build_object(
        'host_id', NEW.host_id, 'mode', NEW.mode, 'problem', NEW.problem, 'mps_problem', NEW.mps_problem,
        'cordoned', NEW.cordoned_at IS NOT NULL, 'lost', NEW.lost_at IS NOT NULL));
    PERFORM pg_notify('berth_events', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER devices_announce_new AFTER INSERT ON devices FOR EACH ROW EXECUTE FUNCTION announce_device();
CREATE OR REPLACE TRIGGER devices_announce AFTER UPDATE ON devices FOR EACH ROW
    WHEN ((OLD.host_id, OLD.mode, OLD.problem, OLD.mps_problem, OLD.cordoned_at IS NULL, OLD.cordon_reason, OLD.lost_at IS NULL)
        IS DISTINCT FROM (NEW.host_id, NEW.mode, NEW.problem, NEW.mps_problem, NEW.cordoned_at IS NULL, NEW.cordon_reason, NEW.lost_at IS NULL))
    EXECUTE FUNCTION announce_device();
