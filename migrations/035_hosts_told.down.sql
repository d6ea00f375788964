-- Lost: that hosts whose worker is of an older version have no data sets and store no files. They keep what a newer worker told.
DROP TRIGGER hosts_forget_told ON hosts;
DROP FUNCTION forget_told();
ALTER TABLE hosts DROP told;
