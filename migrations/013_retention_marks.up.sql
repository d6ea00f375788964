-- A host says what a person must do about its files: removals that fail, and a limit that cannot be kept.
ALTER TABLE hosts ADD outputs_problem text NOT NULL DEFAULT '';
