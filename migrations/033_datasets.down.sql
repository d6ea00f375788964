-- Lost: which data sets hosts have and attempts had. Sweeps that mount one go to any host, and fail there.
ALTER TABLE attempts DROP datasets;
ALTER TABLE hosts DROP datasets;
