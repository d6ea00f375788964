-- Lost: which stores of artifacts were in use. One whose disk is away is taken for a new one.
DROP TABLE artifact_stores;
