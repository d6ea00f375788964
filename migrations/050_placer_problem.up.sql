-- placer_problem says since when and why the rounds of the placer fail; empty = they do not.
ALTER TABLE installation ADD placer_problem text NOT NULL DEFAULT '';
