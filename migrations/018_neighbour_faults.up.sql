-- The placer asks in each round whom a fault on a shared GPU took down: few of all attempts.
CREATE INDEX attempts_neighbour_fault ON attempts (trial_id) WHERE failure_kind = 'neighbour_fault';
