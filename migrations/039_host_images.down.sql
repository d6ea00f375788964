-- Lost: which images hosts have; their workers tell it again.
DROP TABLE IF EXISTS host_images;
