-- Why a device takes no clients of MPS now, though it has a daemon; empty = it takes them.
ALTER TABLE devices ADD mps_problem text NOT NULL DEFAULT '';
