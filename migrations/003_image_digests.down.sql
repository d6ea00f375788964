DROP TABLE image_digests;
