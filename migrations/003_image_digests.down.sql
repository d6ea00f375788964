-- Lost: what images were when a machine last looked; it looks again.
DROP TABLE image_digests;
